"""The tables that `tamis bench` shows, one for each kind of result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.lab.records import (
    Churn,
    Contest,
    Duel,
    Figure,
    Goal,
    OperatorRun,
    Point,
    Refusal,
    Result,
    Schedule,
    Speed,
)
from tamis.lab.scheduling import AS_A_SET, COSTS, by_setting, exceptions
from tamis.lab.timing import Spread

_Kind = TypeVar("_Kind")
_COUNTED = ("differ",)  # units of which there is no half


def show(console: Console, results: Sequence[Result]) -> None:
    """Print all results: a table for each kind, then what was refused."""
    _print(console, results, Figure, _figures)
    _print(console, results, Contest, _contests)
    _print(console, results, Duel, _duels)
    _print(console, results, Duel, _costs)
    _print(console, results, Point, _points)
    _print(console, results, Churn, _churns)
    _print(console, results, Schedule, _schedules)
    _print(console, results, Schedule, _scheduling_times)
    _print(console, results, OperatorRun, _operator_runs)
    if schedules := [each for each in results if isinstance(each, Schedule)]:
        console.print(_order(schedules))
    for each in results:
        if isinstance(each, Churn):
            console.print(_churned(each))
        if isinstance(each, OperatorRun):
            console.print(_answered(each))
        if isinstance(each, Refusal):
            console.print(Text(f"{each.workload}, {each.matcher}: {each.why}", style="yellow"))


def _print(
    console: Console,
    results: Sequence[Result],
    kind: type[_Kind],
    table: Callable[[Sequence[_Kind]], Table],
) -> None:
    if found := [each for each in results if isinstance(each, kind)]:
        console.print(table(found))
        console.print()


def _table(*columns: str, left: int, wrapped: str = "", caption: str = "") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(
            column, justify="left" if place < left else "right", no_wrap=column != wrapped
        )
    table.caption = caption or None
    table.caption_justify = "left"
    return table


def _figures(figures: Sequence[Figure]) -> Table:
    table = _table("name", "what", "median", "least", "most", "goal", left=2, wrapped="what")
    for each in figures:
        table.add_row(
            each.measurement,
            Text(each.what),
            Text(_number(each.value, each.unit), style="bold"),
            _number(each.low, each.unit),
            _number(each.high, each.unit),
            _goal(each.goal, each.value, partial(_number, unit=each.unit)),
        )
    return table


def _contests(contests: Sequence[Contest]) -> Table:
    table = _table(
        "workload", "matcher", "alone\nms", "×\nnumpy", "batch", "batched\nms", "×\nnumpy",
        "build\ns", "add\nµs", "remove\nµs", "bytes\neach", "matches", left=2,
        caption=f"{contests[0].subscriptions:,} subscriptions; ms an event, one at a time and in "
        "batches\n× numpy: how many times faster than brute force in NumPy; matches: subscriptions "
        "an event matched\nbuild: all clauses in one add, and the first match; add and remove: one "
        "clause;\nall three in the matcher alone",
    )  # fmt: skip
    before = ""
    for each in contests:
        head = "" if each.workload == before else each.workload
        before = each.workload
        table.add_row(
            head,
            Text(each.matcher, style="cyan"),
            f"{each.alone_ms:.3f}",
            _times(each.alone_times),
            f"{each.batch:,}",
            f"{each.batch_ms:.3f}",
            _times(each.batch_times),
            "-" if each.build_s is None else f"{each.build_s:.2f}",
            _or_dash(each.add_us),
            _or_dash(each.remove_us),
            _or_dash(each.bytes_each),
            f"{each.matches:,.0f}" if head else "",  # of the workload, not of the matcher
        )
    return table


_BY_COLUMNS = (
    "\n* against brute force that has a column for each attribute, over a tenth of the "
    "subscriptions\nonly; above it, one that looks at the rarest predicate of each first"
)


def _duels(duels: Sequence[Duel]) -> Table:
    table = _table(
        "workload", "matcher", "subscrip-\ntions", "matches", "numpy\nµs", "", "µs", "p50", "p99",
        "×\nnumpy", "goal", left=2,
        caption="µs an event in one thread, without encoding; alone: one at a time, p50 and p99 of "
        f"them;\nbatch: {duels[0].events:,} at once; bits: the same, answered as bitmaps\n"
        "× numpy: how many times faster than brute force in NumPy, which took turns with it"
        + (_BY_COLUMNS if any(each.columns for each in duels) else ""),
    )  # fmt: skip
    for each in duels:
        head = (
            each.title,
            Text(each.matcher, style="cyan"),
            f"{each.subscriptions:,}",
            f"{each.matches:,.0f}",
            _short(each.yardstick_us),
        )
        single = (_short(each.each.p50), _short(each.each.p99))
        table.add_row(*head, "alone", *_speed(each.alone, single))
        table.add_row("", "", "", "", "", "batch", *_speed(each.batch))
        if each.bits is not None:
            table.add_row("", "", "", "", "", "bits", *_speed(each.bits))
        if each.columns is not None:
            times, goal = _speed(each.columns)[-2:]
            table.add_row(
                "", "", "", "", _short(each.columns.us), "batch*", "", "", "", times, goal
            )
    return table


def _speed(speed: Speed, single: tuple[str, str] = ("", "")) -> tuple[Text | str, ...]:
    times = Text(_times(speed.times), style="bold")
    return (_short(speed.us), *single, times, _goal(speed.goal, speed.times, "{:g}".format))


def _costs(duels: Sequence[Duel]) -> Table:
    table = _table(
        "workload", "matcher", "batch\nµs", "engine\nµs", "2 threads\nµs", "build\ns",
        "bytes\neach", "add µs\np50", "p99", "remove µs\np50", "p99", left=2,
        caption="µs an event in batches: in the matcher alone, through the engine with the ids "
        "read, in\ntwo threads; in the matcher alone, build: all clauses in one add, and the first "
        "match;\nadd and remove: one clause",
    )  # fmt: skip
    for each in duels:
        table.add_row(
            each.title,
            Text(each.matcher, style="cyan"),
            _short(each.batch.us),
            _short(each.engine_us),
            "-" if each.two_threads_us is None else _short(each.two_threads_us),
            f"{each.build_s:.2f}",
            f"{each.bytes_each:,.0f}",
            *_spread(each.add)[:2],
            *_spread(each.remove)[:2],
        )
    return table


def _points(points: Sequence[Point]) -> Table:
    table = _table(
        "workload", "matcher", "subscriptions", "matches", "alone\nµs", "batch\nµs", "batch",
        "build\ns", "bytes\neach", "peak\nGiB", left=2,
        caption="µs an event, one at a time and in batches; build: all adds until there and the "
        "first\nmatches, in the matcher alone; peak: the most memory of the process until there",
    )  # fmt: skip
    for each in points:
        table.add_row(
            each.workload,
            Text(each.matcher, style="cyan"),
            f"{each.subscriptions:,}",
            f"{each.matches:,.0f}",
            _short(each.alone_us),
            _short(each.batch_us),
            f"{each.events:,}",
            f"{each.build_s:.2f}",
            f"{each.bytes_each:,.0f}",
            f"{each.peak_bytes / 2**30:.1f}",
        )
    return table


def _churns(churns: Sequence[Churn]) -> Table:
    table = _table(
        "workload", "matcher", "through", "what", "µs p50", "p99", "most", "of", left=4
    )  # fmt: skip
    for each in churns:
        head = (each.workload, Text(each.matcher, style="cyan"), each.through)
        table.add_row(*head, "add one", *_spread(each.add))
        table.add_row("", "", "", "remove one", *_spread(each.remove))
        table.add_row("", "", "", "match one event", *_spread(each.alone))
        table.add_row("", "", "", f"match {each.events:,} events", *_spread(each.batch))
    return table


def _churned(churn: Churn) -> Text:
    agreed = (
        f"{churn.workload}, {churn.matcher}, through the {churn.through}: "
        f"{churn.disagreements:,} disagreements with {churn.reference} in {churn.pairs:,} pairs"
    )
    replaced = (
        f"  {churn.replaced:,} of {churn.subscriptions:,} subscriptions replaced; bytes each: "
        f"{churn.bytes_before:,.0f} before, {churn.bytes_after:,.0f} after"
    )
    return Text(f"{agreed}\n{replaced}\n", style="red" if churn.disagreements else "")


def _schedules(schedules: Sequence[Schedule]) -> Table:
    groups = by_setting(schedules)
    table = _table(
        "", "subscriptions\n/ predicates", "used", *_contenders(groups[0]), left=2,
        caption="predicates evaluated an event, in the mean, and below that what an independent "
        "simulation\nof the same setting took; in rows of costs, what those predicates cost, and "
        "below that half\nof what sub-order takes; used: predicates that some subscription has; "
        "as a set: where\nsubscriptions name their predicates in the order of a set of Python",
    )  # fmt: skip
    for group in groups:
        first = group[0]
        used = f"{first.used:,.0f}"
        table.add_row(first.figure, _title(first), used, *map(_evaluated, group))
    return table


def _contenders(group: Sequence[Schedule]) -> list[str]:
    return [
        f"{each.scheduler}\nas a set" if each.written == AS_A_SET else each.scheduler
        for each in group
    ]


def _evaluated(found: Schedule) -> Text:
    costs = found.figure == COSTS
    value, goal = (found.cost, found.cost_goal) if costs else (found.evaluated, found.goal)
    text = Text(f"{value:,.0f}", style="bold")
    if goal is not None:
        met = goal.met(value)
        text.append(
            "" if met else f" +{100 * (value / goal.limit - 1):.2g} %", style="not bold red"
        )
        text.append(f"\n≤ {goal.limit:,.0f}", style=f"not bold {'green' if met else 'red'}")
    return text


def _scheduling_times(schedules: Sequence[Schedule]) -> Table:
    groups = by_setting(schedules)
    table = _table(
        "", "subscriptions\n/ predicates", "", *_contenders(groups[0]), left=3,
        caption="ms to schedule an event whose outcomes are known; first: the first one, with what "
        "is laid\nout or ordered once for the subscriptions",
    )  # fmt: skip
    for group in groups:
        times = (_scheduled(each).append(f"\n{_short(each.first_ms)}") for each in group)
        table.add_row(group[0].figure, _title(group[0]), "each\nfirst", *times)
    return table


def _title(found: Schedule) -> str:
    """On two lines, as the cells beside it are."""
    return found.title.replace(", ", "\n", 1)


def _scheduled(found: Schedule) -> Text:
    text = Text(_short(found.ms), style="bold")
    if found.ms_goal is not None:
        text.append(" ").append(_goal(found.ms_goal, found.ms, "{:g}".format))
    return text


def _order(schedules: Sequence[Schedule]) -> Text:
    said = exceptions(schedules)
    settings = len(by_setting(schedules))
    if not said:
        return Text(f"adaptive ≤ sub-order ≤ sequential ≤ naive in all {settings} settings\n")
    head = f"adaptive ≤ sub-order ≤ sequential ≤ naive in {settings} settings, but for"
    return Text("\n  ".join((head, *said)) + "\n", style="yellow")


def _operator_runs(runs: Sequence[OperatorRun]) -> Table:
    names = sorted({name for each in runs for name in each.evaluated})
    table = _table(
        "", *(f"{each.scheduler}\nplace {each.place}" for each in runs), left=1,
        caption=f"{runs[0].subscriptions:,} subscriptions with {runs[0].predicates:,} predicates "
        f"on {runs[0].events:,} events;\nof each operator how often it looked at an event, and "
        "the seconds that this took",
    )  # fmt: skip
    for name in names:
        cells = (
            f"{each.evaluated.get(name, 0):,}  {_seconds(each.operator_seconds.get(name, 0.0))}"
            for each in runs
        )
        table.add_row(name, *cells)
    totals = (
        f"{sum(each.evaluated.values()):,}  {_seconds(sum(each.operator_seconds.values()))}"
        for each in runs
    )
    table.add_row("all operators", *(Text(total, style="bold") for total in totals))
    table.add_row("seconds in all", *(Text(_seconds(each.seconds)) for each in runs))
    return table


def _seconds(seconds: float) -> str:
    return f"{seconds:6.2f} s"


def _answered(run: OperatorRun) -> Text:
    said = (
        f"{run.workload}, {run.scheduler}: {run.matches:,} matches, {run.disagreements:,} "
        f"disagreements with {run.reference}, {run.faults:,} faults"
    )
    return Text(said, style="red" if run.disagreements or run.faults else "")


def _spread(spread: Spread) -> tuple[str, ...]:
    return (_short(spread.p50), _short(spread.p99), _short(spread.most), f"{spread.count:,}")


def _goal(goal: Goal | None, value: float, written: Callable[[float], str]) -> Text:
    if goal is None:
        return Text("")
    mark, style = ("met", "green") if goal.met(value) else ("missed", "red")
    return Text(f"{'≤' if goal.at_most else '≥'} {written(goal.limit)} {mark}", style=style)


def _times(factor: float) -> str:
    return f"{factor:.1f}" if factor >= 1 else f"{factor:.2f}"  # below 1 it is slower


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _number(value: float, unit: str) -> str:
    """A figure with its unit.

    >>> _number(0.25, "ms"), _number(0.0, "differ"), _number(1250.0, "/s")
    ('0.250 ms', '0 differ', '1,250/s')
    """
    digits = 0 if value >= 100 or unit in _COUNTED else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}{unit if unit.startswith('/') else ' ' + unit}"
