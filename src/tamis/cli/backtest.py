"""`tamis backtest`: which of the events that a log keeps a condition would have matched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.text import Text

from tamis.cli.reports.backtest import sparkline
from tamis.cli.service.connection import at_most_one, connected, service_command
from tamis.cli.terminal.console import bar, stderr_console, stdout_console
from tamis.cli.terminal.numbers import percent
from tamis.cli.terminal.outcomes import print_answer
from tamis.errors import counted
from tamis.language.dialects import NATIVE

if TYPE_CHECKING:
    from tamis.replay.past.log_backtest import LogBacktest

_PAUSE = 0.5  # seconds between two looks at the progress
_LOG = "log"  # in a data folder


def _moment(ctx: click.Context, param: click.Parameter, value: datetime | None) -> datetime | None:
    return None if value is None else value.replace(tzinfo=UTC)


@click.command()
@click.argument(
    "folder",
    metavar="[FOLDER]",
    nargs=-1,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    callback=at_most_one,
)
@click.argument("condition")
@click.option("--language", default=NATIVE, show_default=True, help="Language of CONDITION.")
@click.option("--first", type=click.IntRange(0), help="From this sequence number on.")
@click.option("--end", type=click.IntRange(0), help="Before this sequence number.")
@click.option("--since", type=click.DateTime(), callback=_moment, help="From this moment on, UTC.")
@click.option("--until", type=click.DateTime(), callback=_moment, help="Before this moment, UTC.")
@click.option(
    "--samples",
    default=5,
    show_default=True,
    type=click.IntRange(0, 100),
    help="Most matching events to show.",
)
@service_command
def backtest(
    folder: Path | None,
    condition: str,
    language: str,
    first: int | None,
    end: int | None,
    since: datetime | None,
    until: datetime | None,
    samples: int,
    server: str,
    as_json: bool,
) -> None:
    """Count the past events that CONDITION would have matched.

    FOLDER is a log, or the data folder of a service, which may be running. This process counts its
    events; for very many events, use `tamis spark backtest`. Without FOLDER, the service counts.
    """
    wanted = {"first": first, "end": end, "since": since, "until": until}
    if folder is None:
        found = _of_service(server, condition, language, samples, wanted)
    else:
        found = _of_log(folder, condition, language, samples, wanted)
    if as_json:
        print_answer(found._asdict(), as_json, "")
        return
    console = stdout_console()
    share = percent(found.matched / max(1, found.events))
    of = f"of {counted(found.events, 'event')}"
    matching = counted(found.matched, f"{of} matches", f"{of} match")
    dead = counted(found.dead, "is", "are")
    console.print(Text(f"{matching}, {share}; {dead} not valid"))
    if found.over_time:
        line = sparkline(np.array([each.matched for each in found.over_time]))
        begin, last = found.over_time[0].begin, found.over_time[-1].end
        console.print(Text(f"{line}  from {begin:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"))
    if found.samples:
        numbers = ", ".join(f"{number:,}" for number in found.samples)
        console.print(Text(f"for example the events {numbers}"), soft_wrap=True)


def _of_log(
    folder: Path, condition: str, language: str, samples: int, wanted: dict[str, Any]
) -> LogBacktest:
    """A back-test in this process."""
    from tamis.engine import Engine
    from tamis.replay.past.log_backtest import backtest_log, range_of
    from tamis.store.log import DOCUMENT, Log

    log = Log.open(folder / _LOG if (folder / _LOG / DOCUMENT).exists() else folder)
    with Engine(log.schema_at()) as engine, bar(stderr_console(), "events") as shown:
        engine.subscribe(condition, language=language)
        low, high = range_of(log, **wanted)
        total = log.counts(low, high)[0]

        def progress(done: int) -> bool:
            shown.update(done, total)
            return True

        return backtest_log(log, engine, low, high, samples=samples, progress=progress)


def _of_service(
    server: str, condition: str, language: str, samples: int, wanted: dict[str, Any]
) -> LogBacktest:
    """A back-test by a running service."""
    from tamis.replay.past.log_backtest import LogBacktest, TimeBucket

    with connected(server) as client, bar(stderr_console(), "events") as shown:
        report = client.start_backtest(condition, language=language, samples=samples, **wanted)
        while report.matched is None:
            shown.update(round(report.progress * report.events), report.events)
            sleep(_PAUSE)
            report = client.show_backtest(report.id)
    spans = report.over_time or []
    return LogBacktest(
        events=report.events,
        matched=report.matched,
        dead=report.dead or 0,
        first=report.first or 0,
        end=report.end or 0,
        over_time=[TimeBucket(each.begin, each.end, each.events, each.matched) for each in spans],
        samples=[each.sequence for each in report.samples or []],
    )
