"""`tamis plan`: where the default matcher stores subscriptions, at what cost, and why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click
from rich.text import Text

from tamis import Engine, Schema
from tamis.cli.data.events import all_events
from tamis.cli.data.subscriptions import strict_option, subscribe_file
from tamis.cli.reports.plan import MatchTiming, show
from tamis.cli.terminal.console import spinner, stdout_console
from tamis.cli.terminal.options import (
    PATH,
    WholeNumber,
    matcher_option,
    option,
    parse_options,
    seed_option,
)
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.cli.terminal.printable import one_line
from tamis.match.capabilities import settle
from tamis.match.plan import LINES
from tamis.workload import VARIANTS, make_variant

_MATCHER = "tamis"
_SUBSCRIPTIONS, _EVENTS = 100_000, 1_000  # of a workload


class _PlanInput(NamedTuple):
    """An engine with subscriptions, events or None, and a name for both."""

    engine: Engine
    events: Any
    name: str


@click.command()
@click.argument("folder", required=False, type=PATH)
@option("--workload", f"Generated data: {', '.join(VARIANTS)}.")
@option("--schema", "Schema of your own data.", PATH)
@option("--subscriptions", "Number of a workload's subscriptions, or your own file.")
@option("--events", "Number of a workload's events, or your own file.")
@strict_option
@option("--stats", "Folder of statistics of past events, to plan for.", PATH)
@matcher_option
@seed_option()
@click.option("--id", "id_", help="Also show the place of this subscription, and alternatives.")
@option("--lines", "Most lines of a kind; the others are summed up.", click.IntRange(1), LINES)
@json_option
def plan(
    folder: Path | None,
    workload: str | None,
    schema: Path | None,
    subscriptions: str | None,
    events: str | None,
    strict: bool,
    stats: Path | None,
    options: tuple[str, ...],
    seed: int,
    id_: str | None,
    lines: int,
    as_json: bool,
) -> None:
    """Show where the matcher `tamis` stores subscriptions, at what expected cost, and why.

    Give the FOLDER of a saved engine, a --workload, or your own data: --schema with the files
    --subscriptions and --events. Subscriptions are a table of id and condition (or predicates);
    wrong ones are left out and reported, unless --strict refuses the file. Events have a column for
    each attribute. Formats: .parquet, .arrow, .csv, .tsv, and .jsonl with one object on each line.

    The events are matched three times, and the best of the last two times is shown next to the
    expected time. Events are optional for an engine in a folder, and with --stats of past events
    from `tamis spark stats`: the plan is then made for those.
    """
    console = stdout_console()
    if sum(given is not None for given in (folder, workload, schema)) != 1:
        raise click.UsageError("Give one of FOLDER, --workload and --schema.")
    given = parse_options(_MATCHER, options)
    with nullcontext() if as_json else spinner(console, "Loading and planning"):
        if workload is not None:
            source = _generated(workload, subscriptions, events, seed, given)
        elif folder is not None:
            source = _saved(folder, subscriptions, events, given)
        else:
            assert schema is not None
            source = _own(schema, subscriptions, events, strict, given)
        if stats is not None:
            from tamis.store.stats import Stats

            source.engine.expect(Stats.open(stats))
        timing = _measure(source)
        made = source.engine.plan(_id(source.engine, id_), lines)
    if as_json:
        times = None if timing is None else asdict(timing)
        ignored = dict(source.engine.report().ignored)
        report = {
            "of": source.name,
            "plan": made.to_dict(),
            "measured_now": times,
            "ignored": ignored,
        }
        print_answer(report, as_json, "")
    else:
        show(console, source.name, len(source.engine), made, timing)
        called = source.engine.report()
        if called.ignored:
            console.print()
            what = f"Attributes that the schema does not know, {called.ignored_text}"
            console.print(Text(one_line(what)), soft_wrap=True)


def _generated(
    name: str, subscriptions: str | None, events: str | None, seed: int, options: Mapping[str, Any]
) -> _PlanInput:
    many = _number("--subscriptions", subscriptions, _SUBSCRIPTIONS)
    matched = _number("--events", events, _EVENTS)
    made = make_variant(name, many, seed=seed)
    engine = Engine(Schema.from_dict(made.schema), _MATCHER, **options)
    engine.subscribe_table(made.subscriptions)
    return _PlanInput(engine, made.events(matched), f"{name}, seed {seed}")


def _saved(
    folder: Path, subscriptions: str | None, events: str | None, options: Mapping[str, Any]
) -> _PlanInput:
    if subscriptions is not None:
        raise click.UsageError("Leave --subscriptions out: the engine in FOLDER has its own.")
    engine = Engine.open(folder, **options)
    given = None if events is None else all_events(Path(events), engine.schema)
    return _PlanInput(engine, given, str(folder))


def _own(
    schema: Path,
    subscriptions: str | None,
    events: str | None,
    strict: bool,
    options: Mapping[str, Any],
) -> _PlanInput:
    if subscriptions is None:
        raise click.UsageError("With --schema, give a file with --subscriptions as well.")
    engine = Engine(Schema.load(schema), _MATCHER, **options)
    found = subscribe_file(engine, Path(subscriptions), strict=strict, empty=True)
    for line in found.report():
        click.echo(line, err=True)
    given = None if events is None else all_events(Path(events), engine.schema)
    return _PlanInput(engine, given, subscriptions)


def _number(option: str, given: str | None, default: int) -> int:
    if given is None:
        return default
    try:
        return WholeNumber().convert(given, None, None)
    except click.BadParameter as why:
        raise click.BadParameter(why.message, param_hint=option) from None


def _id(engine: Engine, given: str | None) -> Any:
    """The id: a number, if it looks like one and no subscription has that text as its id."""
    if given is None or given in engine:
        return given
    return int(given) if given.lstrip("-").isdecimal() else given


def _measure(source: _PlanInput) -> MatchTiming | None:
    """Time matching. Without events, the engine still makes its plan."""
    engine = source.engine
    batch = engine.encode([] if source.events is None else source.events)
    found = engine.matcher.match(batch)  # makes the plan, and compiles
    settle(engine.matcher)  # makes the plan if there are no events
    if not len(batch):
        return None
    took: list[float] = []
    for _ in range(2):
        begun = perf_counter()
        engine.matcher.match(batch)
        took.append(perf_counter() - begun)
    return MatchTiming(len(batch), 1e6 * min(took) / len(batch), found.total / len(batch))
