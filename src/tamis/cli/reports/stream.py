"""A running stream on the console: a live view in a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import Any, NamedTuple, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tamis.cli.terminal.numbers import clock
from tamis.cli.terminal.printable import one_line
from tamis.errors import counted
from tamis.operators.report import Report
from tamis.replay.parts import DEAD, NOTIFICATIONS
from tamis.spark.runtime.operator_reports import NOTHING
from tamis.spark.stream.progress import NO_VERSION, StreamStatus
from tamis.store.subscription_snapshot import SubscriptionSnapshot

_LINE_SECONDS = 5.0  # between two lines, outside a terminal
_OTHER_LINES = 16  # lines of the view that are not notifications
_SAMPLED = 400  # notifications from which the shown ones are chosen
_REFRESH_SECONDS = 1.0  # how long notifications stay: any shorter and nobody can read them

Words = Callable[[Sequence[dict[str, Any]]], list[Text]]
"""Turns rows of notifications into lines, the best first."""


Row = tuple[str, str, str]
"""A line of figures: name, number and explanation."""


class Upkeep(Protocol):
    """The state of what is done besides matching."""

    @property
    def snapshot(self) -> SubscriptionSnapshot | None: ...
    @property
    def expired(self) -> int: ...
    @property
    def compiling(self) -> float | None: ...
    @property
    def trouble(self) -> str | None: ...
    def changed(self) -> tuple[int, int]: ...


class Viewed(Protocol):
    """What a view shows: a stream, or whatever else matches a log."""

    @property
    def keeper(self) -> Upkeep: ...
    def look(self) -> StreamStatus: ...
    def newest(self, kind: str = NOTIFICATIONS, rows: int = 100) -> list[dict[str, Any]]: ...
    def operators(self) -> Report: ...


class StreamFacts(NamedTuple):
    """Figures of the view that are not in the progress."""

    live: int | None  # subscriptions
    expired: int
    changed: int  # since the latest version
    enough: int  # changes that trigger the next version
    compiling: float | None
    trouble: str | None
    operators: Report = NOTHING


class StreamView:
    """Shows a stream at each `update`."""

    def __init__(
        self,
        console: Console,
        stream: Viewed,
        words: Words,
        title: str,
        trouble: Callable[[], str | None] = lambda: None,
        told: str | None = None,
        more: Callable[[], Sequence[Row]] = lambda: (),
    ) -> None:
        """`more` gives rows that the figures of the stream do not have."""
        self._console, self._stream, self._words, self._title = console, stream, words, title
        self._trouble, self._more = trouble, more
        self._told = told  # trouble that was shown before, and is not shown again
        self._began = monotonic()
        self._printed = self._sampled = -1e9
        self._notifications: list[Text] = []
        self._reason = ""
        self._operators = NOTHING
        self._live: Live | None = None

    def shown(self) -> AbstractContextManager[Any]:
        """In this block the view is on the screen."""
        if not self._console.is_terminal:
            return nullcontext()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        return self._live

    def update(self) -> StreamStatus:
        progress, now = self._stream.look(), monotonic()
        if self._live is not None:
            if now - self._sampled > _REFRESH_SECONDS:
                self._sampled = now
                self._notifications = self._words(self._stream.newest(rows=_SAMPLED))
                dead = self._stream.newest(DEAD, 1)
                self._reason = str(dead[0]["reason"]) if dead else ""
                self._operators = self._stream.operators()
            self._live.update(self._picture(progress), refresh=True)
        elif now - self._printed > _LINE_SECONDS:
            self._printed = now
            self._operators = self._stream.operators()
            facts = self._facts()
            text = line(now - self._began, progress, facts, self._more())
            self._told = facts.trouble or self._told
            self._console.print(Text(text), soft_wrap=True)
        return progress

    def _facts(self) -> StreamFacts:
        keeper = self._stream.keeper
        changed, enough = keeper.changed()
        live = None if keeper.snapshot is None else len(keeper.snapshot)
        trouble = keeper.trouble or self._trouble()
        trouble = None if trouble == self._told else trouble
        return StreamFacts(
            live, keeper.expired, changed, enough, keeper.compiling, trouble, self._operators
        )

    def _picture(self, progress: StreamStatus) -> Group:
        facts = self._facts()
        figures = Table.grid(padding=(0, 2, 0, 0), expand=True)
        figures.add_column(style="dim", no_wrap=True, min_width=14)
        figures.add_column(justify="right", no_wrap=True, min_width=11)
        figures.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        extra_rows = self._more()
        for name, value, more in (*extra_rows, *rows(progress, facts, self._reason)):
            figures.add_row(name, Text(value, style="bold"), one_line(more))
        head = Text.assemble(
            (self._title, "bold cyan"),
            f"  for {clock(monotonic() - self._began)}",
            ("   Ctrl-C stops it", "dim"),
        )
        trouble = [Text(facts.trouble, style="red")] if facts.trouble else []
        label = [Text("last notifications", style="dim")] if self._notifications else []
        extra = (len(facts.operators) > 0) + bool(facts.operators.ignored) + len(extra_rows)
        taken = _OTHER_LINES + len(trouble) + extra
        notifications = self._fitting(max(2, self._console.height - taken))
        return Group(Text(), head, Text(), figures, Text(), *trouble, *label, notifications)

    def _fitting(self, lines: int) -> Table:
        """The notifications that fit on `lines` lines; a long one takes two."""
        shown = Table.grid(padding=(0, 1, 0, 0))
        for each in self._notifications:
            lines -= -(-each.cell_len // (self._console.width - 4))
            if lines < 0:
                break
            shown.add_row("·", each)
        return shown


def rows(progress: StreamStatus, facts: StreamFacts, reason: str = "") -> list[Row]:
    """The figures of the view."""
    found = [
        ("events", f"{progress.events:,}", per_second(progress.rate)),
        ("notifications", f"{progress.notifications:,}", per_second(progress.matches)),
        ("latency", seconds(progress.p50), f"p95 {seconds(progress.p95)}, append to manifest"),
        ("backlog", f"{progress.backlog:,}", "events"),
    ]
    if facts.live is not None:
        expired = f"; {counted(facts.expired, 'lease')} expired" if facts.expired else ""
        found.append(("subscriptions", f"{facts.live:,}", f"live{expired}"))
    changes = counted(facts.changed, "change")
    pending = f"{changes} since the latest; the next at {facts.enough:,}"
    if facts.compiling is not None:
        pending = f"compiling the next, {facts.compiling:.0f} s so far"
    found.append(("version in use", version(progress), pending))
    found.append(("dead letters", f"{progress.dead:,}", reason and f"the last: {reason}"))
    if len(facts.operators):
        found.append(("operator faults", f"{facts.operators.faults:,}", faults(facts.operators)))
    if facts.operators.ignored:
        ignored = facts.operators.ignored_text.removeprefix("ignored: ")
        found.append(("ignored values", f"{sum(facts.operators.ignored.values()):,}", ignored))
    return found


def faults(report: Report) -> str:
    """The faults of operators in a few words.

    >>> from tamis.operators import CallCounts
    >>> face = CallCounts("face", events=90, timeouts=2, last="no answer")
    >>> faults(Report((face, CallCounts("locIn", 7))))
    'of 97 events; face: 2 timeouts, the last: no answer'
    """
    evaluated = f"of {counted(sum(count.events for count in report), 'event')}"
    kinds = ("raised", "refused", "timeouts", "nonsense", "set_aside")
    wrong = sorted((count for count in report if count.faults), key=lambda count: -count.faults)
    parts = [
        f"{count.operator}: "
        + ", ".join(
            f"{getattr(count, kind):,} {kind.replace('_', ' ')}"
            for kind in kinds
            if getattr(count, kind)
        )
        + (f", the last: {count.last}" if count.last else "")
        for count in wrong
    ]
    return "; ".join([evaluated, *parts])


def line(
    elapsed: float, progress: StreamStatus, facts: StreamFacts, more: Sequence[Row] = ()
) -> str:
    """The figures on one line.

    >>> line(75, StreamStatus(9, 900, 100, 800, 4000, 2, 7, 80.0, 400.0, 0.31, 0.62),
    ...      StreamFacts(100, 0, 3, 1000, None, None))
    '1 min 15 s: 800 events (80 a second), 4,000 notifications (400 a second), latency 0.31 s, \
p95 0.62 s, backlog 7, 100 subscriptions, version 100, 2 dead'
    """
    parts = [
        f"{counted(progress.events, 'event')} ({per_second(progress.rate)})",
        f"{counted(progress.notifications, 'notification')} ({per_second(progress.matches)})",
        f"latency {seconds(progress.p50)}",
        f"p95 {seconds(progress.p95)}",
        f"backlog {progress.backlog:,}",
        *([counted(facts.live, "subscription")] if facts.live is not None else []),
        f"version {version(progress)}",
        f"{progress.dead:,} dead",
        *([counted(facts.operators.faults, "operator fault")] if facts.operators.faults else []),
        *(f"{name} {value}" for name, value, _ in more),
        *([facts.trouble] if facts.trouble else []),
    ]
    return f"{clock(elapsed)}: " + ", ".join(parts)


def version(progress: StreamStatus) -> str:
    return "none" if progress.version == NO_VERSION else f"{progress.version:,}"


def per_second(rate: float | None) -> str:
    """A rate, or a dash while it is unknown."""
    return "– a second" if rate is None else f"{rate:,.0f} a second"


def seconds(value: float | None) -> str:
    """A latency, or a dash while it is unknown."""
    return "–" if value is None else f"{value:,.2f} s"


def summary(first: StreamStatus, last: StreamStatus) -> str:
    """The work done between two looks."""
    return (
        f"{counted(last.events - first.events, 'event')}, "
        f"{counted(last.notifications - first.notifications, 'notification')} and "
        f"{counted(last.dead - first.dead, 'dead letter')} in "
        f"{counted(last.batches - first.batches, 'batch')}; "
        f"{counted(last.backlog, 'event waits', 'events wait')} for the next run"
    )
