"""`tamis bench`: run the lab's measurements, show them, keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tamis.cli.bench_tables import show
from tamis.cli.counts import Count
from tamis.cli.matcher_options import matcher_options, parse_options
from tamis.cli.screen import screen
from tamis.errors import TamisError
from tamis.lab import foundation, peers, sparking
from tamis.lab.foundation import Measurement
from tamis.lab.plots import plot, plottable
from tamis.lab.progress import Step
from tamis.lab.records import Result
from tamis.lab.results import machine, prepare, write
from tamis.lab.setting import FASTEST, Setting
from tamis.lab.spark_data import SPARK
from tamis.match import registry

_NAMES = ", ".join(foundation.MEASUREMENTS)
_NAMED = ", ".join(each.name for each in foundation.MEASUREMENTS.values() if each.named)


@click.command(
    help=f"""Measure this installation on this machine.

    NAMES are any of {_NAMES}; without one, all but {_NAMED} are measured, in about a quarter of an
    hour.

    Figures are medians of repeated runs. `match` compares every matcher with a careful NumPy brute
    force measured in the same run, on events encoded beforehand. `peers` does so for {FASTEST} (or
    --matcher) at the sizes at which others publish figures, `scale` with up to ten million
    subscriptions, `churn` while half of a million subscriptions are replaced one by one. `schedule`
    counts what the schedulers evaluate where up to 80,000 subscriptions share predicates,
    `operators` has them call real operators on pictures, `spark` compares jobs on Spark with the
    engine alone and with SQL, their memory and their answers. The results are also written to a
    JSON file with parameters, versions and facts about the machine, and plotted beside it (`tamis
    plot` does that again without measuring).
    """
)
@click.argument("names", nargs=-1)
@click.option("--matcher", "matchers", multiple=True, help="Only this matcher; may be repeated.")
@matcher_options
@click.option(
    "--rows",
    multiple=True,
    help=f"Only these rows, with commas between; of peers: {', '.join(peers.ROWS)}; of spark: "
    f"{', '.join(sparking.ROWS)}.",
)
@click.option(
    "--subscriptions",
    type=Count(100),
    help="At most so many in peers and in what is measured only if named.",
)
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
    names: tuple[str, ...],
    matchers: tuple[str, ...],
    options: tuple[str, ...],
    rows: tuple[str, ...],
    subscriptions: int | None,
    seed: int,
    quick: bool,
    out: Path,
) -> None:
    for matcher in matchers:
        registry.entry(matcher)
    if options and len(matchers) != 1:
        raise TamisError("--option belongs to one matcher; name it with --matcher")
    parsed = parse_options(matchers[0], options) if options else {}
    chosen = tuple(name.strip() for given in rows for name in given.split(","))
    (sparking if names == (SPARK,) else peers).rows(chosen)
    setting = Setting(seed=seed, matchers=matchers, options=parsed, rows=chosen)
    if subscriptions is not None:
        setting = replace(setting, most_subscriptions=subscriptions)
    setting = setting.quick() if quick else setting
    measurements = foundation.chosen(names)
    prepare(out)  # the last thing that can be refused: from here on it takes minutes
    started = datetime.now(UTC)
    console = screen()
    results = _run(console, measurements, setting)
    show(console, results)
    path = write(out, results, {"names": list(names), "quick": quick, **asdict(setting)}, started)
    facts = machine()
    console.print(
        f"{facts['cpus']} CPUs ({facts['cpu']}), Python {facts['python']}, seed {seed}"
        + (", quick: sizes too small to quote" if quick else "")
    )
    console.print(f"written to {path}")
    if plottable(results):
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
            for given in each.run(setting):
                if isinstance(given, Step):
                    progress.update(task, description=f"{each.name}: {given.what}")
                else:
                    results.append(given)
                progress.advance(task)
    return results
