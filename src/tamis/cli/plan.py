"""`tamis plan`: what the default matcher has decided, what it expects that to cost, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click
from rich.console import Console

from tamis import Engine, Schema
from tamis.cli.counts import Count
from tamis.cli.files import read_events, read_subscriptions
from tamis.cli.matcher_options import matcher_options, parse_options
from tamis.cli.plan_tables import Measured, show
from tamis.cli.screen import screen
from tamis.match.plan import LINES
from tamis.workload import VARIANTS, make_variant

_MATCHER = "tamis"
_SUBSCRIPTIONS, _EVENTS = 100_000, 1_000  # of a workload


class _Source(NamedTuple):
    """An engine with subscriptions, events or None, and what to call the two."""

    engine: Engine
    events: Any
    name: str


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--workload", help=f"Generated data: {', '.join(VARIANTS)}.")
@click.option("--schema", type=click.Path(path_type=Path), help="Your own data: its schema.")
@click.option("--subscriptions", help="How many of a workload, or your own: a file.")
@click.option("--events", help="How many of a workload, or your own: a file.")
@click.option(
    "--stats",
    type=click.Path(path_type=Path),
    help="Folder of statistics of past events, to lay out for.",
)
@matcher_options
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--id", "id_", help="Also say where this subscription lies, and what else it could.")
@click.option(
    "--lines",
    default=LINES,
    show_default=True,
    type=click.IntRange(1),
    help="The most lines of a sort; the others are told together.",
)
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
def plan(
    folder: Path | None,
    workload: str | None,
    schema: Path | None,
    subscriptions: str | None,
    events: str | None,
    stats: Path | None,
    options: tuple[str, ...],
    seed: int,
    id_: str | None,
    lines: int,
    as_json: bool,
) -> None:
    """Show where the matcher tamis puts subscriptions, what it expects that to cost, and why.

    Of an engine saved to FOLDER, or of a --workload, or of your own data: --schema with the files
    --subscriptions and --events. Subscriptions are a table of id and condition (or predicates),
    events one with a column for each attribute: .parquet, .arrow, .csv, or .jsonl with an object a
    line.

    Events that are given are also matched, three times, and the best of the last two is shown
    beside what was expected. With an engine in a folder they are not needed, nor with the --stats
    of past events that `tamis spark stats` has gathered: it is laid out for these.
    """
    console = screen()
    if sum(given is not None for given in (folder, workload, schema)) != 1:
        raise click.UsageError("Give one of a FOLDER, --workload and --schema.")
    given = parse_options(_MATCHER, options)
    with _waiting(console, as_json):
        if workload is not None:
            source = _generated(workload, subscriptions, events, seed, given)
        elif folder is not None:
            source = _saved(folder, subscriptions, events, given)
        else:
            assert schema is not None
            source = _own(schema, subscriptions, events, given)
        if stats is not None:
            from tamis.store.stats import Stats

            source.engine.expect(Stats.open(stats))
        measured = _measure(source)
        made = source.engine.plan(_id(source.engine, id_), lines)
    if as_json:
        times = None if measured is None else asdict(measured)
        report = {"of": source.name, "plan": made.to_dict(), "measured_now": times}
        click.echo(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(console, source.name, len(source.engine), made, measured)


@contextmanager
def _waiting(console: Console, quiet: bool) -> Iterator[None]:
    if quiet or not console.is_terminal:
        yield
        return
    with console.status("Loading and laying out"):
        yield


def _generated(
    name: str, subscriptions: str | None, events: str | None, seed: int, options: Mapping[str, Any]
) -> _Source:
    many = _count("--subscriptions", subscriptions, _SUBSCRIPTIONS)
    matched = _count("--events", events, _EVENTS)
    made = make_variant(name, many, seed=seed)
    engine = Engine(Schema.from_dict(made.schema), _MATCHER, **options)
    engine.subscribe_table(made.subscriptions)
    return _Source(engine, made.events(matched), f"{name}, seed {seed}")


def _saved(
    folder: Path, subscriptions: str | None, events: str | None, options: Mapping[str, Any]
) -> _Source:
    if subscriptions is not None:
        raise click.UsageError("An engine in a FOLDER has its subscriptions already.")
    engine = Engine.open(folder, **options)
    given = None if events is None else read_events(Path(events), engine.schema)
    return _Source(engine, given, str(folder))


def _own(
    schema: Path, subscriptions: str | None, events: str | None, options: Mapping[str, Any]
) -> _Source:
    if subscriptions is None:
        raise click.UsageError("With --schema, give the file of --subscriptions as well.")
    engine = Engine(Schema.load(schema), _MATCHER, **options)
    engine.subscribe_table(read_subscriptions(Path(subscriptions)))
    given = None if events is None else read_events(Path(events), engine.schema)
    return _Source(engine, given, subscriptions)


def _count(option: str, given: str | None, usual: int) -> int:
    if given is None:
        return usual
    try:
        return Count().convert(given, None, None)
    except click.BadParameter as why:
        raise click.BadParameter(why.message, param_hint=option) from None


def _id(engine: Engine, given: str | None) -> Any:
    """The id that is meant: a number, if it is written as one and there is no such text."""
    if given is None or given in engine:
        return given
    return int(given) if given.lstrip("-").isdecimal() else given


def _measure(source: _Source) -> Measured | None:
    """How long matching takes here and now. Without events, an engine still gets its plan."""
    engine = source.engine
    batch = engine.encode([] if source.events is None else source.events)
    found = engine.matcher.match(batch)  # lays clauses out, and compiles
    if not len(batch):
        return None
    took: list[float] = []
    for _ in range(2):
        begun = perf_counter()
        engine.matcher.match(batch)
        took.append(perf_counter() - begun)
    return Measured(len(batch), 1e6 * min(took) / len(batch), found.total / len(batch))
