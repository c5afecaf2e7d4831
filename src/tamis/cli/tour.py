"""`tamis tour`: the engine at work on generated auctions, in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import click
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tamis import Engine, Schema, workload
from tamis.cli.language import explanation_text
from tamis.cli.screen import screen
from tamis.engine.engine import DEFAULT
from tamis.match.registry import entry
from tamis.model.explain import Explanation
from tamis.workload import Workload, as_dicts

BATCH = 100  # events matched at once; small enough for the bar to move
SHOWN = 8  # lots that are shown, spread over the run
CHURN = 5  # subscriptions that leave, and others that come, after each batch
YOU = "you"
YOUR_CONDITION = "category <= furniture and price <= 150 and not state <= worn"
_MOST_CHANGES = 1_000  # batches after which subscriptions change; a long run then goes on as it is
_SAMPLE = 400  # subscriptions among which something good to show is looked for


@dataclass
class Totals:
    """What happened while the auctions went by."""

    events: int = 0
    matches: int = 0
    seconds: float = 0.0  # encoding and matching alone, without the showing
    came: int = 0
    left: int = 0
    yours: int = 0


@click.command()
@click.option("--subscriptions", default=30_000, show_default=True, type=click.IntRange(1, 10**7))
@click.option("--events", default=5_000, show_default=True, type=click.IntRange(1))
@click.option(
    "--seconds",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Stop the stream after this long, even if events are left.",
)
@click.option("--matcher", default=DEFAULT, show_default=True, help="A name from `tamis matchers`.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
def tour(subscriptions: int, events: int, seconds: float, matcher: str, seed: int) -> None:
    """Auctions flow past tens of thousands of subscriptions.

    Ends by itself after --events or --seconds, whichever comes first. Ctrl-C ends the stream early
    and still shows the summary.
    """
    entry(matcher)  # a wrong name is refused before any work
    show = Show(screen())
    show.title(subscriptions, matcher)
    _warm_up(show, matcher)
    made = workload.make("auctions", subscriptions + _newcomers(events), seed=seed)
    engine = Engine(Schema.from_dict(made.schema), matcher)
    _load(show, engine, made.subscriptions.slice(0, subscriptions))
    totals = Totals()
    try:
        last = _stream(show, engine, made, totals, events, seconds)
        _explain(show, engine, last)
    except KeyboardInterrupt:
        # Stopping is a normal way to end a demonstration, and what was seen so far still counts.
        show.line()
        show.line(Text("stopped", style="yellow"))
    show.summary(engine, totals)


def _newcomers(events: int) -> int:
    return CHURN * min(events // BATCH + 1, _MOST_CHANGES)


def _warm_up(show: Show, matcher: str) -> None:
    """Compile, or fetch from the cache, every loop that the run will use."""
    begun = perf_counter()
    with show.waiting("Compiling the matcher's loops: about 5 seconds, on first use only"):
        small = workload.make("auctions", 500, seed=0)
        engine = Engine(Schema.from_dict(small.schema), matcher)
        engine.subscribe_table(small.subscriptions)
        engine.match_batch(small.events(3))
        engine.unsubscribe(engine.subscribe(YOUR_CONDITION))
    show.done(f"matcher {matcher} ready", perf_counter() - begun)


def _load(show: Show, engine: Engine, table: pa.Table) -> None:
    begun = perf_counter()
    with show.progress("Loading subscriptions", table.num_rows) as progress:
        task = progress.task_ids[0]
        engine.subscribe_table(table, lambda done, _: progress.update(task, completed=done))
    taken = perf_counter() - begun
    show.done(f"{len(engine):,} conditions parsed, checked and loaded", taken)


def _stream(
    show: Show, engine: Engine, made: Workload, totals: Totals, events: int, seconds: float
) -> tuple[dict[str, Any], list[Any]]:
    """Let events pass; gives the last one and what it matched."""
    rng = np.random.default_rng(made.seed)
    newcomers = made.subscriptions.slice(len(engine)).to_pylist()
    begun, shown = perf_counter(), 0
    last: tuple[dict[str, Any], list[Any]] = ({}, [])
    with show.progress("Auctions", events) as progress:
        while totals.events < events:
            spent = (perf_counter() - begun) / seconds
            if spent >= 1:
                break
            # How far the run is, by whichever of its two ends is nearer.
            part = max(spent, totals.events / events)
            size = min(BATCH, events - totals.events)
            table = made.events(size, seed=totals.events)
            before = perf_counter()
            matches = engine.match_batch(table)
            totals.seconds += perf_counter() - before
            totals.events += size
            totals.matches += matches.total
            yours = [row for row, ids in enumerate(matches) if YOU in ids] if YOU in engine else []
            totals.yours += len(yours)
            pick = yours[0] if yours else 0
            last = (as_dicts(table.slice(pick, 1))[0], matches[pick])
            if part * SHOWN >= shown:
                show.lot(engine, *last)
                shown += 1
            _change(show, engine, totals, rng, newcomers, part)
            progress.update(progress.task_ids[0], completed=totals.events)
    return last


def _change(
    show: Show,
    engine: Engine,
    totals: Totals,
    rng: np.random.Generator,
    newcomers: list[dict[str, Any]],
    part: float,
) -> None:
    """Subscriptions come and go between two batches, yours among them."""
    coming = newcomers[totals.came : totals.came + CHURN]
    for row in coming:
        engine.subscribe(row["condition"], id=row["id"])
        totals.came += 1
    for id in rng.integers(newcomers[0]["id"], size=len(coming)).tolist():
        if id in engine and len(engine) > 1:
            engine.unsubscribe(id)
            totals.left += 1
    if YOU not in engine and 0.3 <= part < 0.7:
        engine.subscribe(YOUR_CONDITION, id=YOU)
        show.change("+ you subscribe", YOUR_CONDITION, "green")
    elif YOU in engine and part >= 0.7:
        engine.unsubscribe(YOU)
        show.change("- you unsubscribe", f"after {totals.yours:,} lots for you", "yellow")


def _explain(show: Show, engine: Engine, last: tuple[dict[str, Any], list[Any]]) -> None:
    """One match and one near miss of the last lot shown."""
    event, matched = last
    live = [id for id in matched if id in engine][:_SAMPLE]
    if live:
        show.explanation("Why it matches", engine, show.telling(engine, live, 1)[0], event)
    others = [id for id in engine.ids()[:_SAMPLE] if id not in set(matched)]
    missed = [(id, engine.explain(id, event)) for id in others]
    if missed:
        near = min(missed, key=lambda pair: _distance(pair[1]))
        show.explanation("Why another does not", engine, near[0], event)


def _distance(explanation: Explanation) -> tuple[int, int, int]:
    """Least for a plain conjunction of which one predicate fails and many hold."""
    verdicts = [verdict for branch in explanation.branches for verdict in branch.verdicts]
    failed = sum(not verdict.holds for verdict in verdicts)
    return len(explanation.branches), failed, -len(verdicts)


def _text(engine: Engine, id: Any) -> str:
    return engine.condition(id) or "every event"


class Show:
    """What the demonstration prints: live in a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: Text | str = "") -> None:
        self.console.print(text, no_wrap=True, overflow="ellipsis", crop=True)

    def title(self, subscriptions: int, matcher: str) -> None:
        self.line(
            Text.assemble(
                ("tamis", "bold cyan"),
                f"  auctions flow past {subscriptions:,} subscriptions, through the matcher ",
                (matcher, "bold"),
            )
        )
        self.line()

    def waiting(self, what: str) -> Any:
        """A spinner, or one line where nothing can move."""
        if not self.console.is_terminal:
            self.line(what)
        return self.console.status(what)

    def progress(self, what: str, total: int) -> Progress:
        """A bar that disappears when it is full; none where there is no terminal."""
        bar = Progress(
            TextColumn(f"{what:<22}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        bar.add_task(what, total=total)
        return bar

    def done(self, what: str, seconds: float) -> None:
        self.line(Text.assemble(("✓ ", "green"), what, (f"  {seconds:.1f} s", "dim")))

    def lot(self, engine: Engine, event: dict[str, Any], matched: list[Any]) -> None:
        """One event with some of the subscriptions that it matched."""
        facts = [" + ".join(event["event_type"])]
        facts += [str(event[name]) for name in ("period", "state") if name in event]
        facts += [", ".join(event["tags"])] if "tags" in event else []
        self.line()
        self.line(
            Text.assemble(
                (f"{event['title']:<34}", "bold"),
                (f"{event['price']:>9,.2f}  ", "magenta"),
                (" · ".join(facts), "dim"),
            )
        )
        if not matched:
            self.line("  nobody waits for it")
            return
        first = [YOU] if YOU in matched else []
        rest = [id for id in matched[:_SAMPLE] if id != YOU]
        number = f"{len(matched):,} subscription{'' if len(matched) == 1 else 's'}"
        self.line(f"  → {number}, for instance")
        for id in first + self.telling(engine, rest, 3 - len(first)):
            style = "bold green" if id == YOU else "cyan"
            self.line(Text.assemble((f"  {id:>9}  ", style), _text(engine, id)))

    def telling(self, engine: Engine, ids: list[Any], number: int) -> list[Any]:
        """The subscriptions that ask most, and so say most; those that fit on a line first."""
        texts = {id: _text(engine, id) for id in ids}
        room = self.console.width - 13

        def rank(id: Any) -> tuple[bool, int]:
            text = texts[id]
            return " or " not in text and len(text) <= room, len(text)

        return sorted(ids, key=rank, reverse=True)[:number]

    def change(self, what: str, detail: str, style: str) -> None:
        self.line()
        self.line(Text.assemble((what, f"bold {style}"), f"  {detail}"))

    def explanation(self, title: str, engine: Engine, id: Any, event: dict[str, Any]) -> None:
        self.line()
        self.line(Text.assemble((title, "bold"), f"  {event['title']}, subscription {id}"))
        self.console.print(Padding(Text(_text(engine, id), style="cyan"), (0, 0, 0, 2)))
        for line in explanation_text(engine.explain(id, event)).split("\n"):
            self.line(Text("  ") + line)

    def summary(self, engine: Engine, totals: Totals) -> None:
        rate = totals.events / totals.seconds if totals.seconds else 0.0
        each = totals.matches / totals.events if totals.events else 0.0
        self.line()
        self.line(
            Text.assemble(
                (f"{rate:,.0f} events a second", "bold green"),
                f"  {totals.events:,} events past {len(engine):,} subscriptions, one process",
            )
        )
        self.line(
            f"{totals.matches:,} matches, {each:,.0f} an event; {totals.came:,} subscriptions "
            f"came and {totals.left:,} left meanwhile"
        )
