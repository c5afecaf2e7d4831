"""`tamis bench` and `tamis plot`: run measurements, print and store them, draw them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from tamis.cli.reports.bench import show
from tamis.cli.terminal.console import bar, report_console, spinner, stderr_console
from tamis.cli.terminal.options import (
    FOLDER,
    WholeNumber,
    matcher_option,
    option,
    parse_options,
    seed_option,
    split_names,
)
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError
from tamis.lab import plots
from tamis.lab.bench import measurements, peers
from tamis.lab.bench.doors import single
from tamis.lab.bench.measurements import Measurement
from tamis.lab.bench.service import rows as service
from tamis.lab.bench.setting import FASTEST, BenchSetting, chosen_rows
from tamis.lab.bench.spark import jobs as spark_jobs
from tamis.lab.bench.spark.data import SPARK
from tamis.lab.results.files import machine, prepare, write
from tamis.lab.results.records import Result
from tamis.match import registry

_NAMES = ", ".join(measurements.MEASUREMENTS)
_ON_REQUEST = ", ".join(each.name for each in measurements.MEASUREMENTS.values() if each.on_request)


@click.command(
    help=f"""Measure this installation on this machine.

    NAMES are any of {_NAMES}. Without names, everything but {_ON_REQUEST} is measured, in about
    20 minutes.

    Figures are medians of repeated runs. `match` compares every matcher with a careful brute force
    in NumPy, measured in the same run, on events encoded beforehand. `peers` does so for {FASTEST}
    (or --matcher) at the sizes for which others publish figures, `scale` with up to ten million
    subscriptions, `churn` while half of a million subscriptions are replaced one by one.
    `single`, `json`, `small` and `threads` call the engine as programs do, and compare it with what
    you would write without it.

    `operators` lets the schedulers call real operators on pictures, `spark` compares jobs on Spark
    with the engine alone and with SQL. `service` puts a server on one core under load from another.

    The results go to a JSON file with parameters, versions and facts about the machine, and to
    a picture in the same folder; `tamis plot` draws it again.
    """
)
@click.argument("names", nargs=-1)
@click.option("--matcher", "matchers", multiple=True, help="Only this matcher; may be repeated.")
@matcher_option
@click.option(
    "--rows",
    multiple=True,
    help=f"Only these rows, separated by commas. Rows of peers: {', '.join(peers.ROWS)}. Rows of "
    f"single: {', '.join(single.ROWS)}. Rows of spark: {', '.join(spark_jobs.ROWS)}. Rows of "
    f"service: {', '.join(service.ROWS)}.",
)
@option("--subscriptions", f"Most subscriptions in peers, single, {_ON_REQUEST}.", WholeNumber(100))
@seed_option()
@click.option("--quick", is_flag=True, help="Small sizes: to see that it works, not to quote.")
@option("--out", "Folder of the result files.", FOLDER, Path("out/bench"))
@json_option
def bench(
    names: tuple[str, ...],
    matchers: tuple[str, ...],
    options: tuple[str, ...],
    rows: tuple[str, ...],
    subscriptions: int | None,
    seed: int,
    quick: bool,
    out: Path,
    as_json: bool,
) -> None:
    for matcher in matchers:
        registry.entry(matcher)
    if options and len(matchers) != 1:
        raise TamisError("--option belongs to one matcher; name it with --matcher")
    parsed = parse_options(matchers[0], options) if options else {}
    chosen = tuple(name for given in rows for name in split_names(given))
    for name, known in (
        (single.SINGLE, single.ROWS),
        (SPARK, spark_jobs.ROWS),
        (service.SERVICE, service.ROWS),
    ):
        if names == (name,):
            chosen_rows(chosen, known, name)
            break
    else:
        peers.rows(chosen)
    setting = BenchSetting(seed=seed, matchers=matchers, options=parsed, rows=chosen)
    if subscriptions is not None:
        setting = replace(
            setting,
            most_subscriptions=subscriptions,
            service_subscriptions=min(subscriptions, setting.service_subscriptions),
        )
    setting = setting.quick() if quick else setting
    selected = measurements.chosen(names)
    prepare(out)  # the last check: measuring takes minutes
    started = datetime.now(UTC)
    console = report_console(as_json)
    results: list[Result] = []
    failure: TamisError | None = None
    try:
        _run(console, selected, setting, results)
    except TamisError as why:
        if not results:
            raise
        failure = why  # what was measured is shown and stored first
    show(console, results)
    path = write(out, results, {"names": list(names), "quick": quick, **asdict(setting)}, started)
    facts = machine()
    console.print(
        f"{facts['cpus']} CPUs ({facts['cpu']}), Python {facts['python']}, seed {seed}"
        + (", quick: sizes too small to quote" if quick else "")
    )
    console.print(f"written to {path}")
    if plots.plottable(results):
        try:
            console.print(f"plotted in {plots.plot(path)}")
        except TamisError as why:  # the results are stored; `tamis plot` can draw them later
            console.print(f"not plotted: {why}")
    if as_json:
        print_answer(json.loads(path.read_text(encoding="utf-8")), as_json, "")
    if failure is not None:
        raise failure


def _run(
    console: Console,
    selected: Sequence[Measurement],
    setting: BenchSetting,
    results: list[Result],
) -> None:
    """Measure, and add each result as it comes."""
    with bar(console, "", sum(each.steps(setting) for each in selected)) as progress:
        for each in selected:
            progress.describe(f"{each.name}: {each.what}")
            for given in each.run(setting):
                if isinstance(given, str):
                    progress.describe(f"{each.name}: {given}")
                else:
                    results.append(given)
                progress.advance()


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@option(
    "--out",
    "The picture; its suffix names the format.  [default: FILE with the suffix .png]",
    click.Path(dir_okay=False, path_type=Path),
)
@json_option
def plot(file: Path, out: Path | None, as_json: bool) -> None:
    """Plot FILE, a result file of `tamis bench`. Measures nothing.

    For `match`: a panel for each workload, with the time of an event on a logarithmic axis. Light
    bars are events one at a time, dark bars events in batches; the dashed line is the brute force
    in NumPy. For `peers`: how many times faster than that line. For `single`, `json`, `small` and
    `threads`: how many times faster than their baselines. For `scale`: time by subscriptions. For
    `churn`: the time of single changes and matches.
    """
    with spinner(stderr_console(), "Drawing"):
        picture = plots.plot(file, out)
    print_answer({"picture": picture}, as_json, f"plotted in {picture}")
