"""`tamis bench`: run the lab's measurements, show them, keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tamis.cli.screen import screen
from tamis.errors import TamisError
from tamis.lab import foundation
from tamis.lab.foundation import Measurement
from tamis.lab.plots import plot
from tamis.lab.results import Contest, Figure, Refusal, Result, machine, prepare, write
from tamis.lab.setting import Setting
from tamis.match import registry

_NAMES = ", ".join(foundation.MEASUREMENTS)


@click.command(
    help=f"""Measure this installation on this machine.

    NAMES are any of {_NAMES}; without one, all are measured, in under ten minutes.

    Figures are medians of repeated runs. `match` compares every matcher with a careful NumPy brute
    force measured in the same run, on events encoded beforehand. The results are also written to a
    JSON file with parameters, versions and facts about the machine, and plotted beside it
    (`tamis plot` does that again without measuring).
    """
)
@click.argument("names", nargs=-1)
@click.option("--matcher", "matchers", multiple=True, help="Only this matcher; may be repeated.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--quick", is_flag=True, help="Small sizes: to see that it works, not to quote.")
@click.option(
    "--out",
    default=Path("out/bench"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the result files.",
)
def bench(
    names: tuple[str, ...], matchers: tuple[str, ...], seed: int, quick: bool, out: Path
) -> None:
    for matcher in matchers:
        registry.entry(matcher)
    setting = Setting(seed=seed, matchers=matchers)
    setting = setting.quick() if quick else setting
    measurements = foundation.chosen(names)
    prepare(out)  # the last thing that can be refused: from here on it takes minutes
    started = datetime.now(UTC)
    console = screen()
    results = _run(console, measurements, setting)
    _show(console, results)
    path = write(out, results, {"names": list(names), "quick": quick, **asdict(setting)}, started)
    facts = machine()
    console.print(
        f"{facts['cpus']} CPUs ({facts['cpu']}), Python {facts['python']}, seed {seed}"
        + (", quick: sizes too small to quote" if quick else "")
    )
    console.print(f"written to {path}")
    if any(isinstance(each, Contest) for each in results):
        try:
            console.print(f"plotted in {plot(path)}")
        except TamisError as why:  # the figures are safe; a picture can be had later
            console.print(f"not plotted: {why}")


def _run(console: Console, measurements: Sequence[Measurement], setting: Setting) -> list[Result]:
    results: list[Result] = []
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        total = sum(each.steps(setting) for each in measurements)
        task = progress.add_task("", total=total)
        for each in measurements:
            progress.update(task, description=f"{each.name}: {each.what}")
            for result in each.run(setting):
                results.append(result)
                progress.advance(task)
    return results


def _show(console: Console, results: Sequence[Result]) -> None:
    figures = [each for each in results if isinstance(each, Figure)]
    contests = [each for each in results if isinstance(each, Contest)]
    if figures:
        console.print(_figures(figures))
        console.print()
    if contests:
        console.print(_contests(contests))
        console.print()
    for each in results:
        if isinstance(each, Refusal):
            console.print(Text(f"{each.workload}, {each.matcher}: {each.why}", style="yellow"))


def _table(*columns: str, left: int, wrapped: str = "") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(
            column, justify="left" if place < left else "right", no_wrap=column != wrapped
        )
    return table


def _figures(figures: Sequence[Figure]) -> Table:
    table = _table("name", "what", "median", "least", "most", "goal", left=2, wrapped="what")
    for each in figures:
        goal = Text("")
        if each.goal is not None:
            mark, style = ("met", "green") if each.goal.met(each.value) else ("missed", "red")
            sign = "≤" if each.goal.at_most else "≥"
            goal = Text(f"{sign} {_number(each.goal.limit, each.unit)} {mark}", style=style)
        table.add_row(
            each.measurement,
            Text(each.what),
            Text(_number(each.value, each.unit), style="bold"),
            _number(each.low, each.unit),
            _number(each.high, each.unit),
            goal,
        )
    return table


def _contests(contests: Sequence[Contest]) -> Table:
    table = _table(
        "workload", "matcher", "alone\nms", "×\nnumpy", "batch", "batched\nms", "×\nnumpy",
        "build\ns", "add\nµs", "remove\nµs", "bytes\neach", "matches", left=2,
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
    table.caption = (
        f"{contests[0].subscriptions:,} subscriptions; ms an event, one at a time and in batches\n"
        "× numpy: how many times faster than brute force in NumPy; matches: subscriptions an event "
        "matched\nbuild: all clauses in one add, and the first match; add and remove: one clause;\n"
        "all three in the matcher alone"
    )
    table.caption_justify = "left"
    return table


def _times(factor: float) -> str:
    return f"{factor:.1f}" if factor >= 1 else f"{factor:.2f}"  # below 1 it is slower


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}{unit if unit.startswith('/') else ' ' + unit}"
