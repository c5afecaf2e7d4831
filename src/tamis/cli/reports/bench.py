"""The tables of `tamis bench`, one or more for each kind of result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from tamis.cli.terminal.numbers import short
from tamis.cli.terminal.tables import Cell, Columns, blank_repeats, record_table, table
from tamis.lab.results.records import (
    ChurnResult,
    DoorResult,
    Figure,
    Goal,
    MatcherResult,
    OperatorResult,
    PeerResult,
    RefusedResult,
    ResidualResult,
    Result,
    ScaleResult,
    Speed,
)

_COUNTED = ("differ",)  # units that have no fractions


def show(console: Console, results: Sequence[Result]) -> None:
    """Print a table for each kind of result, then summaries and refusals."""
    makers: tuple[tuple[type[Any], Callable[[Sequence[Any]], RenderableType]], ...] = (
        (Figure, partial(record_table, _FIGURES)),
        (MatcherResult, _matchers),
        (PeerResult, _peers),
        (PeerResult, _peer_costs),
        (ResidualResult, _residuals),
        (DoorResult, _doors),
        (ScaleResult, _scale),
        (ChurnResult, _churn),
        (OperatorResult, _operators),
    )
    for kind, make in makers:
        if found := [each for each in results if isinstance(each, kind)]:
            console.print(make(found))
            console.print()
    for each in results:
        if isinstance(each, ChurnResult):
            console.print(_churn_summary(each))
        if isinstance(each, OperatorResult):
            console.print(_operator_summary(each))
        if isinstance(each, RefusedResult):
            console.print(Text(f"{each.workload}, {each.matcher}: {each.why}", style="yellow"))


_FIGURES: Columns[Figure] = (
    ("l", "name", lambda each: each.measurement),
    ("w", "what", lambda each: each.what),
    ("r", "median", lambda each: Text(_with_unit(each.value, each.unit), style="bold")),
    ("r", "least", lambda each: _with_unit(each.low, each.unit)),
    ("r", "most", lambda each: _with_unit(each.high, each.unit)),
    ("r", "goal", lambda each: _goal(each.goal, each.value, partial(_with_unit, unit=each.unit))),
)
_MATCHERS: Columns[MatcherResult] = (
    ("l", "workload", lambda each: each.workload),
    ("l", "matcher", lambda each: _name(each.matcher)),
    ("r", "alone\nms", lambda each: f"{each.alone_ms:.3f}"),
    ("r", "×\nnumpy", lambda each: _times(each.alone_times)),
    ("r", "batch", lambda each: f"{each.batch:,}"),
    ("r", "batched\nms", lambda each: f"{each.batch_ms:.3f}"),
    ("r", "×\nnumpy", lambda each: _times(each.batch_times)),
    ("r", "build\ns", lambda each: _or_dash(each.build_s, "{:.2f}".format)),
    ("r", "add\nµs", lambda each: _or_dash(each.add_us)),
    ("r", "remove\nµs", lambda each: _or_dash(each.remove_us)),
    ("r", "bytes\neach", lambda each: _or_dash(each.bytes_each)),
    ("r", "matches", lambda each: f"{each.matches:,.0f}"),
)


def _matchers(results: Sequence[MatcherResult]) -> RenderableType:
    caption = (
        f"{results[0].subscriptions:,} subscriptions. alone, batched: ms an event, one at a time "
        "and in batches. × numpy: how many times faster than brute force in NumPy. matches: "
        "subscriptions that match an event, on average. In the matcher alone: build, all clauses "
        "in one add and the first match; add, remove: one clause."
    )
    return record_table(_MATCHERS, results, caption, blank=1)


_BY_COLUMNS = (
    " * against brute force with a column for each attribute, over a tenth of the subscriptions; "
    "the other brute force starts with the most selective predicate of each subscription"
)


def _peers(results: Sequence[PeerResult]) -> RenderableType:
    headings = (
        "workload", "matcher", "subscrip-\ntions", "matches", "numpy\nµs", "", "µs", "p50", "p99",
        "×\nnumpy", "goal",
    )  # fmt: skip
    return table(
        "llrrrlrrrrr",
        headings,
        (row for each in results for row in _peer_rows(each)),
        "µs an event in one thread, without encoding. alone: one at a time, with p50 and p99; "
        f"batch: {results[0].events:,} at once; bits: the same, with bitmaps as answers. × numpy: "
        "how many times faster than brute force in NumPy, which takes turns with the matcher."
        + (_BY_COLUMNS if any(each.columns for each in results) else ""),
    )


def _peer_rows(each: PeerResult) -> Iterator[Sequence[Cell]]:
    head = (
        each.title,
        _name(each.matcher),
        f"{each.subscriptions:,}",
        f"{each.matches:,.0f}",
        short(each.yardstick_us),
    )
    blank = ("",) * len(head)
    yield *head, "alone", *_speed(each.alone, (short(each.each.p50), short(each.each.p99)))
    yield *blank, "batch", *_speed(each.batch)
    if each.bits is not None:
        yield *blank, "bits", *_speed(each.bits)
    if each.columns is not None:
        times, goal = _speed(each.columns)[-2:]
        yield *blank[:-1], short(each.columns.us), "batch*", "", "", "", times, goal


def _speed(speed: Speed, single: tuple[str, str] = ("", "")) -> tuple[Cell, ...]:
    times = Text(_times(speed.times), style="bold")
    return (short(speed.us), *single, times, _goal(speed.goal, speed.times, "{:g}".format))


_PEER_COSTS: Columns[PeerResult] = (
    ("l", "workload", lambda each: each.title),
    ("l", "matcher", lambda each: _name(each.matcher)),
    ("r", "batch\nµs", lambda each: short(each.batch.us)),
    ("r", "engine\nµs", lambda each: short(each.engine_us)),
    ("r", "2 threads\nµs", lambda each: _or_dash(each.two_threads_us, short)),
    ("r", "build\ns", lambda each: f"{each.build_s:.2f}"),
    ("r", "bytes\neach", lambda each: f"{each.bytes_each:,.0f}"),
    ("r", "add µs\np50", lambda each: short(each.add.p50)),
    ("r", "p99", lambda each: short(each.add.p99)),
    ("r", "remove µs\np50", lambda each: short(each.remove.p50)),
    ("r", "p99", lambda each: short(each.remove.p99)),
)


def _peer_costs(results: Sequence[PeerResult]) -> RenderableType:
    return record_table(
        _PEER_COSTS,
        results,
        "µs an event in batches: in the matcher alone, through the engine with the ids read, and "
        "in two threads. In the matcher alone: build, all clauses in one add and the first match; "
        "add, remove: one clause.",
    )


def _residuals(results: Sequence[ResidualResult]) -> RenderableType:
    headings = (
        "workload", "matcher", "residuals", "clauses", "matches", "alone\nµs", "batch\nµs",
        "load\ns", "bytes\neach",
    )  # fmt: skip
    return table(
        "llrrrrrrr",
        headings,
        (row for each in results for row in _residual_rows(each)),
        f"{results[0].subscriptions:,} subscriptions. µs an event through the engine, with the "
        f"ids read: alone, and {results[0].events:,} at once. of it: in batches, the evaluation of "
        "residuals. load: all subscriptions and the first match. bytes: the matcher and the "
        f"residuals. {results[0].verified:,} residuals were verified against the semantics.",
    )


def _residual_rows(each: ResidualResult) -> Iterator[Sequence[Cell]]:
    alone, batch = each.alone, each.batch
    factors = (
        alone.times,
        batch.times,
        each.load_s / each.plain_load_s,
        each.bytes_each / each.plain_bytes_each,
    )
    yield (
        *(each.title, _name(each.matcher), f"{each.residuals:,}", f"{each.clauses:,}"),
        *(f"{each.matches:,.1f}", short(alone.us), short(batch.us)),
        *(f"{each.load_s:.2f}", f"{each.bytes_each:,.0f}"),
    )
    yield (
        *("", "", "0", f"{each.subscriptions:,}"),
        *(f"{each.plain_matches:,.1f}", short(alone.plain_us), short(batch.plain_us)),
        *(f"{each.plain_load_s:.2f}", f"{each.plain_bytes_each:,.0f}"),
    )
    yield *("", "", "×", "", ""), *(Text(f"{factor:.2f}", style="bold") for factor in factors)
    yield *("", "", "of it", "", "", ""), short(each.residuals_us)


_DOORS: Columns[DoorResult] = (
    ("l", "name", lambda each: each.measurement),
    ("w", "what", lambda each: each.title),
    ("l", "matcher", lambda each: _name(each.matcher)),
    ("r", "subscrip-\ntions", lambda each: f"{each.subscriptions:,}"),
    ("r", "median", lambda each: Text(_with_unit(each.value, each.unit), style="bold")),
    ("r", "p99\nµs", lambda each: short(each.each.p99) if each.each else ""),
    ("r", "goal", lambda each: _goal(each.goal, each.value, short)),
    ("l", "baseline", lambda each: each.baseline),
    ("r", "median", lambda each: _with_unit(each.baseline_value, each.unit)),
    ("r", "×", lambda each: Text(_times(each.times), style="bold")),
)


def _doors(results: Sequence[DoorResult]) -> RenderableType:
    return record_table(
        _DOORS,
        results,
        "The engine as users call it, next to what they would write without it; the two take "
        "turns. ×: how many times faster. hash join: dicts by the values that rules equal, in "
        "plain Python; numpy: brute force. The answers of both are those of scan.",
    )


_SCALE: Columns[ScaleResult] = (
    ("l", "workload", lambda each: each.workload),
    ("l", "matcher", lambda each: _name(each.matcher)),
    ("r", "subscriptions", lambda each: f"{each.subscriptions:,}"),
    ("r", "matches", lambda each: f"{each.matches:,.0f}"),
    ("r", "alone\nµs", lambda each: short(each.alone_us)),
    ("r", "batch\nµs", lambda each: short(each.batch_us)),
    ("r", "batch", lambda each: f"{each.events:,}"),
    ("r", "build\ns", lambda each: f"{each.build_s:.2f}"),
    ("r", "bytes\neach", lambda each: f"{each.bytes_each:,.0f}"),
    ("r", "peak\nGiB", lambda each: f"{each.peak_bytes / 2**30:.1f}"),
)


def _scale(results: Sequence[ScaleResult]) -> RenderableType:
    return record_table(
        _SCALE,
        results,
        "µs an event, one at a time and in batches. build: all adds up to this size and the first "
        "matches, in the matcher alone. peak: the largest memory of the process up to this size.",
    )


def _churn(results: Sequence[ChurnResult]) -> RenderableType:
    rows: Iterator[Sequence[Cell]] = (
        (
            *(each.workload, _name(each.matcher), each.through, what),
            *(short(spread.p50), short(spread.p99), short(spread.most), f"{spread.count:,}"),
        )
        for each in results
        for what, spread in each.spreads().items()
    )
    headings = ("workload", "matcher", "through", "what", "µs p50", "p99", "most", "of")
    return table("llllrrrr", headings, blank_repeats(rows, 3))


def _churn_summary(churn: ChurnResult) -> Text:
    return Text(
        f"{churn.workload}, {churn.matcher}, through the {churn.through}: "
        f"{churn.disagreements:,} disagreements with {churn.reference} in {churn.pairs:,} pairs\n"
        f"  {churn.replaced:,} of {churn.subscriptions:,} subscriptions replaced; bytes each: "
        f"{churn.bytes_before:,.0f} before, {churn.bytes_after:,.0f} after\n",
        style="red" if churn.disagreements else "",
    )


def _operators(runs: Sequence[OperatorResult]) -> RenderableType:
    names = sorted({name for each in runs for name in each.evaluated})
    rows: list[Sequence[Cell]] = [
        (
            name,
            *(
                f"{each.evaluated.get(name, 0):,}  {_seconds(each.operator_seconds.get(name, 0.0))}"
                for each in runs
            ),
        )
        for name in names
    ]
    totals = (
        f"{sum(each.evaluated.values()):,}  {_seconds(sum(each.operator_seconds.values()))}"
        for each in runs
    )
    rows.append(("all operators", *(Text(total, style="bold") for total in totals)))
    rows.append(("total time", *(_seconds(each.seconds) for each in runs)))
    return table(
        "l" + "r" * len(runs),
        ("", *(f"{each.scheduler}\nplace {each.place}" for each in runs)),
        rows,
        f"{runs[0].subscriptions:,} subscriptions with {runs[0].predicates:,} predicates, "
        f"{runs[0].events:,} events. For each operator: how many events it evaluated, and its "
        "time.",
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:6.2f} s"


def _operator_summary(run: OperatorResult) -> Text:
    return Text(
        f"{run.workload}, {run.scheduler}: {run.matches:,} matches, {run.disagreements:,} "
        f"disagreements with {run.reference}, {run.faults:,} faults",
        style="red" if run.disagreements or run.faults else "",
    )


def _name(matcher: str) -> Text:
    return Text(matcher, style="cyan")


def _goal(goal: Goal | None, value: float, written: Callable[[float], str]) -> Text:
    if goal is None:
        return Text("")
    mark, style = ("met", "green") if goal.met(value) else ("missed", "red")
    return Text(f"{'≤' if goal.at_most else '≥'} {written(goal.limit)} {mark}", style=style)


def _times(factor: float) -> str:
    # Below 1 it is slower.
    return f"{factor:.1f}" if factor >= 1 else f"{factor:.2f}" if factor >= 0.1 else f"{factor:.1g}"


def _or_dash(value: float | None, written: Callable[[float], str] = "{:,.0f}".format) -> str:
    return "-" if value is None else written(value)


def _with_unit(value: float, unit: str) -> str:
    """A figure with its unit.

    >>> _with_unit(0.25, "ms"), _with_unit(0.0, "differ"), _with_unit(1250.0, "/s")
    ('0.250 ms', '0 differ', '1,250/s')
    """
    digits = 0 if value >= 100 or unit in _COUNTED else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}{unit if unit.startswith('/') else ' ' + unit}"
