"""How a stream is shown while it runs: a picture that moves in a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tamis.operators.faults import Report
from tamis.spark.runtime.operator_reports import NOTHING
from tamis.spark.stream.notification_sink import DEAD
from tamis.spark.stream.progress import NO_VERSION, Standing
from tamis.spark.stream.stream import Stream

_LINES = 5.0  # seconds between two lines where there is no terminal
_OTHERS = 16  # lines that are no notifications
_SAMPLED = 400  # notifications, among which those shown are chosen
_REFRESHED = 1.0  # seconds for which notifications stay: shorter and nobody can read them

Words = Callable[[Sequence[dict[str, Any]]], list[Text]]
"""Rows of notifications as lines, the best of them first."""


class StreamScreen:
    """Shows a stream, again and again, from `shown` on."""

    def __init__(
        self,
        console: Console,
        stream: Stream,
        words: Words,
        title: str,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._console, self._stream, self._words, self._title = console, stream, words, title
        self._trouble = trouble
        self._began = monotonic()
        self._told = self._read = -1e9
        self._lines: list[Text] = []
        self._reason = ""
        self._asked = NOTHING
        self._live: Live | None = None

    def shown(self) -> AbstractContextManager[Any]:
        """In this block the picture is on the screen."""
        if not self._console.is_terminal:
            return nullcontext()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        return self._live

    def update(self) -> Standing:
        """Look at the stream and show it."""
        progress, now = self._stream.look(), monotonic()
        if self._live is not None:
            if now - self._read > _REFRESHED:
                self._read = now
                self._lines = self._words(self._stream.newest(rows=_SAMPLED))
                dead = self._stream.newest(DEAD, 1)
                self._reason = str(dead[0]["reason"]) if dead else ""
                self._asked = self._stream.operators()
            self._live.update(self._picture(progress), refresh=True)
        elif now - self._told > _LINES:
            self._told = now
            self._asked = self._stream.operators()
            self._console.print(Text(self._line(progress)), soft_wrap=True)
        return progress

    def _facts(self) -> Facts:
        keeper = self._stream.keeper
        changed, enough = keeper.changed()
        live = None if keeper.snapshot is None else len(keeper.snapshot)
        trouble = keeper.trouble or self._trouble()
        return Facts(live, keeper.expired, changed, enough, keeper.compiling, trouble, self._asked)

    def _line(self, progress: Standing) -> str:
        return line(monotonic() - self._began, progress, self._facts())

    def _picture(self, progress: Standing) -> Group:
        facts = self._facts()
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(style="dim", no_wrap=True, min_width=14)
        table.add_column(justify="right", no_wrap=True, min_width=11)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for name, value, more in rows(progress, facts, self._reason):
            table.add_row(name, Text(value, style="bold"), more)
        head = Text.assemble(
            (self._title, "bold cyan"),
            f"  for {clock(monotonic() - self._began)}",
            ("   Ctrl-C stops it", "dim"),
        )
        trouble = [Text(facts.trouble, style="red")] if facts.trouble else []
        besides = _OTHERS + len(trouble) + (len(facts.operators) > 0)
        room = max(2, self._console.height - besides)
        last = Table.grid(padding=(0, 1, 0, 0))
        for each in self._lines:
            room -= -(-each.cell_len // (self._console.width - 4))  # long ones take two
            if room < 0:
                break
            last.add_row("·", each)
        label = [Text("last notifications", style="dim")] if self._lines else []
        return Group(Text(), head, Text(), table, Text(), *trouble, *label, last)


class Facts(NamedTuple):
    """What the screen tells besides the progress."""

    live: int | None  # subscriptions
    expired: int
    changed: int  # since the latest version
    enough: int  # changes for another
    compiling: float | None
    trouble: str | None
    operators: Report = NOTHING


def rows(progress: Standing, facts: Facts, reason: str = "") -> list[tuple[str, str, str]]:
    """Name, number, and what else there is to say."""
    found = [
        ("events", f"{progress.events:,}", per_second(progress.rate)),
        ("notifications", f"{progress.notifications:,}", per_second(progress.matches)),
        ("latency", seconds(progress.p50), f"p95 {seconds(progress.p95)}, append to manifest"),
        ("backlog", f"{progress.backlog:,}", "events"),
    ]
    if facts.live is not None:
        expired = f"; {facts.expired:,} leases ran out" if facts.expired else ""
        found.append(("subscriptions", f"{facts.live:,}", f"live{expired}"))
    pending = f"{facts.changed:,} changes since the latest; another at {facts.enough:,}"
    if facts.compiling is not None:
        pending = f"another is being compiled, {facts.compiling:.0f} s so far"
    found.append(("version in use", version(progress), pending))
    found.append(("dead letters", f"{progress.dead:,}", reason and f"the last: {reason}"))
    if len(facts.operators):
        found.append(("operator faults", f"{facts.operators.faults:,}", faults(facts.operators)))
    return found


def faults(report: Report) -> str:
    """What operators did wrong, in a few words.

    >>> from tamis.operators import Count
    >>> faults(Report((Count("face", events=90, timeouts=2, last="no answer"), Count("locIn", 7))))
    'of 97 events; face: 2 timeouts, the last: no answer'
    """
    asked = f"of {sum(count.events for count in report):,} events"
    wrong = [count for count in report if count.faults]
    kinds = ("raised", "refused", "timeouts", "nonsense", "set_aside")
    told = [
        f"{count.operator}: "
        + ", ".join(
            f"{getattr(count, kind):,} {kind.replace('_', ' ')}"
            for kind in kinds
            if getattr(count, kind)
        )
        + (f", the last: {count.last}" if count.last else "")
        for count in sorted(wrong, key=lambda count: -count.faults)
    ]
    return "; ".join([asked, *told])


def line(elapsed: float, progress: Standing, facts: Facts) -> str:
    """The same in one line.

    >>> line(75, Standing(9, 900, 100, 800, 4000, 2, 7, 80.0, 400.0, 0.31, 0.62),
    ...      Facts(100, 0, 3, 1000, None, None))
    '1 min 15 s: 800 events (80 a second), 4,000 notifications (400 a second), latency 0.31 s, \
p95 0.62 s, backlog 7, 100 subscriptions, version 100, 2 dead'
    """
    parts = [
        f"{progress.events:,} events ({per_second(progress.rate)})",
        f"{progress.notifications:,} notifications ({per_second(progress.matches)})",
        f"latency {seconds(progress.p50)}",
        f"p95 {seconds(progress.p95)}",
        f"backlog {progress.backlog:,}",
        *([f"{facts.live:,} subscriptions"] if facts.live is not None else []),
        f"version {version(progress)}",
        f"{progress.dead:,} dead",
        *([f"{facts.operators.faults:,} operator faults"] if facts.operators.faults else []),
        *([facts.trouble] if facts.trouble else []),
    ]
    return f"{clock(elapsed)}: " + ", ".join(parts)


def version(progress: Standing) -> str:
    """The version that is in use."""
    return "none" if progress.version == NO_VERSION else f"{progress.version:,}"


def per_second(rate: float | None) -> str:
    """A rate, or a dash where it is not known yet."""
    return "– a second" if rate is None else f"{rate:,.0f} a second"


def seconds(value: float | None) -> str:
    """A short time."""
    return "–" if value is None else f"{value:,.2f} s"


def clock(elapsed: float) -> str:
    """A long time.

    >>> clock(9), clock(3723)
    ('9 s', '1 h 2 min')
    """
    whole = int(elapsed)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
