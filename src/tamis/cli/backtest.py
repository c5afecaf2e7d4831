"""`tamis backtest`: which of the events that a log keeps a condition would have matched."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np
from rich.text import Text

from tamis.cli.reports.backtest import sparkline
from tamis.cli.terminal.console import bar, stdout_console
from tamis.cli.terminal.numbers import percent
from tamis.language.dialects import NATIVE

_LOG = "log"  # in a data folder


def _moment(ctx: click.Context, param: click.Parameter, value: datetime | None) -> datetime | None:
    return None if value is None else value.replace(tzinfo=UTC)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("condition")
@click.option("--language", default=NATIVE, show_default=True, help="The language of CONDITION.")
@click.option("--first", type=click.IntRange(0), help="From this sequence number on.")
@click.option("--end", type=click.IntRange(0), help="To before this sequence number.")
@click.option("--since", type=click.DateTime(), callback=_moment, help="From this moment on, UTC.")
@click.option("--until", type=click.DateTime(), callback=_moment, help="Before this moment, UTC.")
@click.option("--samples", default=5, show_default=True, type=click.IntRange(0, 1000))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def backtest(
    folder: Path,
    condition: str,
    language: str,
    first: int | None,
    end: int | None,
    since: datetime | None,
    until: datetime | None,
    samples: int,
    as_json: bool,
) -> None:
    """Count the events in FOLDER that CONDITION would have matched.

    FOLDER is a log, or the data folder of a service, which may be running. It runs in this process;
    for very many events use `tamis spark backtest`.
    """
    from tamis.engine import Engine
    from tamis.replay.past.log_backtest import backtest_log, range_of
    from tamis.store.log import DOCUMENT, Log

    log = Log.open(folder / _LOG if (folder / _LOG / DOCUMENT).exists() else folder)
    console = stdout_console()
    with Engine(log.schema_at()) as engine:
        engine.subscribe(condition, language=language)
        low, high = range_of(log, first, end, since, until)
        total = log.counts(low, high)[0]
        with bar(console, "events") as shown:

            def progress(done: int) -> bool:
                shown.update(done, total)
                return True

            found = backtest_log(log, engine, low, high, samples=samples, progress=progress)
    if as_json:
        click.echo(json.dumps(found._asdict(), default=str))
        return
    share = percent(found.matched / max(1, found.events))
    console.print(
        Text(
            f"{found.matched:,} of {found.events:,} events match, {share}; "
            f"{found.dead:,} are not valid"
        )
    )
    if found.over_time:
        line = sparkline(np.array([each.matched for each in found.over_time]))
        begin, last = found.over_time[0].begin, found.over_time[-1].end
        console.print(Text(f"{line}  from {begin:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"))
    if found.samples:
        numbers = ", ".join(f"{number:,}" for number in found.samples)
        console.print(Text(f"for example the events {numbers}"), soft_wrap=True)
