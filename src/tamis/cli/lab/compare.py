"""`tamis lab compare`: all matchers that fit, on a user's data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import click
import pyarrow as pa
from rich.console import Console

from tamis import Engine, Schema
from tamis.cli.data import events as event_files
from tamis.cli.data import subscription_rows
from tamis.cli.data.bad_events import BadEvents, absent_option, bad_option
from tamis.cli.data.events import EventFiles, check_events
from tamis.cli.data.subscriptions import strict_option, subscribe_file
from tamis.cli.terminal.console import bar, print_lines, spinner, stderr_console, stdout_console
from tamis.cli.terminal.numbers import short
from tamis.cli.terminal.options import FOLDER, PATH, WholeNumber, option, seed_option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.cli.terminal.tables import table
from tamis.errors import TamisError
from tamis.lab.experiments.data_comparison import DataComparison, recommendation
from tamis.lab.experiments.experiment import LabScale, Observation
from tamis.lab.experiments.result_files import plain
from tamis.lab.experiments.runner import LabRun
from tamis.lab.instruments.matcher_runs import MatcherRuns, RunEffort
from tamis.lab.plots.experiments import ExperimentPicture
from tamis.match import registry
from tamis.replay.pipeline import BatchPace, read_events

_OPERATIONS = ("predicates", "nodes", "subscriptions")  # in the tally of a matcher
_LOADING = "naive"  # checks conditions and encodes them; has no index to build


@click.command()
@option("--schema", "Schema of the events, YAML or JSON.", PATH, required=True)
@option(
    "--subscriptions",
    f"File or folder of subscriptions: {' '.join(subscription_rows.FORMATS)}.",
    PATH,
    required=True,
)
@option(
    "--events",
    f"File or folder of events: {' '.join(event_files.FORMATS)}.",
    PATH,
    required=True,
)
@click.option(
    "--matcher",
    "matchers",
    multiple=True,
    help="Only this matcher; may be repeated.  [default: all]",
)
@option("--sample", "Most events to match, from the first on.", WholeNumber(), 1_000)
@option(
    "--seconds",
    "Time for each measurement of a matcher; there are three.",
    click.FloatRange(0, min_open=True),
    1.0,
)
@seed_option(of="the clauses that are removed and added again")
@bad_option
@absent_option
@strict_option
@option("--out", "Folder of the results and the picture.", FOLDER, Path("out/lab"))
@json_option
def compare(
    schema: Path,
    subscriptions: Path,
    events: Path,
    matchers: tuple[str, ...],
    sample: int,
    seconds: float,
    seed: int,
    bad: str,
    absent: tuple[str, ...],
    strict: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Compare matchers on your own data, and recommend one.

    For each matcher: the time of an event alone, with the deviation between events, and in batches;
    memory; operations an event; the time to add and to remove a clause. Answers are compared with
    those of another matcher before anything is timed. A matcher that refuses the data is named with
    its reason.

    Times are those of the matcher, with its default options, for encoded events. Parts of
    conditions that no matcher indexes (calls of operators, for example) take the same time with
    every matcher, and are not included.
    """
    for name in matchers:
        registry.entry(name)
    check_events(events)
    console = stdout_console()
    said = stderr_console()
    with spinner(said, "Compiling subscriptions"):
        engine = Engine(Schema.load(schema), _LOADING)
        found = subscribe_file(engine, subscriptions, strict=strict)
        refused = BadEvents(said, bad)
        given = _first_events(engine, EventFiles(events, engine.schema, absent), refused, sample)
    print_lines(said, [*found.report(), *refused.report()])
    if not given.num_rows:
        raise TamisError(f"{events}: has no events")
    loaded = engine.matcher
    if not len(loaded):
        raise TamisError(f"{subscriptions}: no subscription has a clause for a matcher")
    runs = MatcherRuns(
        loaded.terms(loaded.clauses.live_slots()),
        engine.encode(given),
        RunEffort(events=given.num_rows, seconds=seconds),
        seed,
    )
    parameters = {"subscriptions": len(engine), "clauses": len(loaded), "events": given.num_rows}
    experiment = DataComparison(runs, matchers or tuple(registry.matchers()), parameters)
    run = LabRun(experiment, LabScale.SMALL, seed, out / "compare.json", fresh=True)
    with bar(said, "Comparing", run.result.size) as progress:
        for each in run.observe():
            progress.advance()
            progress.describe(f"measured {each.curve}")
    observations = run.result.observations
    if as_json:
        print_answer([plain(vars(each)) for each in observations], as_json, "")
    else:
        _show(console, observations, parameters)
        print_lines(console, recommendation(observations))
    _draw(said, run, experiment)
    refused.leave()


def _first_events(engine: Engine, source: EventFiles, bad: BadEvents, most: int) -> pa.Table:
    """The first good events of files."""
    tables: list[pa.Table] = []
    for events in read_events(source.chunks(), engine.encoder, BatchPace(most, most)):
        bad.take(source.bad(events))
        tables.append(events.valid.table)
        if sum(each.num_rows for each in tables) >= most:
            break
    bad.take(source.bad())
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="permissive").slice(0, most)


def _show(
    console: Console, observations: Sequence[Observation], parameters: dict[str, int]
) -> None:
    fit = [each for each in observations if not each.refusal]
    fit.sort(key=lambda each: median(each.measured["batch_ms"]))
    names = [each.curve + " *" * (not registry.entry(each.curve).exact) for each in fit]
    times = [
        (
            name,
            short(1e3 * median(each.measured["match_ms"])),
            short(1e3 * each.deviation("match_ms")),
            short(1e3 * median(each.measured["batch_ms"])),
            short(each.value("memory_mb")),
            short(each.value("build_s")),
            short(median(each.measured["add_us"])) if "add_us" in each.measured else "",
            short(median(each.measured["remove_us"])) if "remove_us" in each.measured else "",
        )
        for name, each in zip(names, fit, strict=True)
    ]
    headings = (
        "matcher",
        "µs\nalone",
        "±",
        "µs in\nbatches",
        "MB",
        "build\ns",
        "add\nµs",
        "remove\nµs",
    )
    matched = f", {fit[0].counts['matches']:.3g} matches an event" if fit else ""
    caption = (
        f"{parameters['subscriptions']:,} subscriptions, {parameters['clauses']:,} clauses, "
        f"{parameters['events']:,} events{matched}. Times are medians; ± is the standard "
        "deviation between events."
    )
    if any(name.endswith("*") for name in names):
        caption += " * may find too much."
    console.print(table("lrrrrrrr", headings, times, caption))
    work = [
        (name, *(short(each.counts[what]) for what in _OPERATIONS))
        for name, each in zip(names, fit, strict=True)
    ]
    console.print()
    console.print(table("lrrr", ("operations an event", *_OPERATIONS), work))
    for each in observations:
        if each.refusal:
            print_lines(console, [f"{each.curve} refuses: {each.refusal}"])


def _draw(console: Console, run: LabRun, experiment: DataComparison) -> None:
    written = [run.path]
    if any(not each.refusal for each in run.result.observations):
        written += ExperimentPicture(experiment, run.result).save(run.path)
    print_lines(console, [f"written to {', '.join(map(str, written))}"])
