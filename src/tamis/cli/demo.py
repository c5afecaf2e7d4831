"""`tamis demo`: auctions live on Spark, in a terminal. It is what `make run` runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from tamis import Schema
from tamis.cli.auctioneer import Auctioneer, bulk
from tamis.cli.screen import screen
from tamis.cli.spark_run import ended, follow, prepare, start, summary
from tamis.cli.steps import Steps
from tamis.cli.stopping import StoppedError, Stopping
from tamis.cli.stream_screen import StreamScreen
from tamis.cli.warming import Warming
from tamis.errors import StoreError
from tamis.spark.stream.progress import Standing
from tamis.spark.stream.stream import Job, Stream
from tamis.store import Log, Snapshot
from tamis.workload.auction_schema import schema

_LOG = "tamis-log.json"
_COLUMNS = ("title", "price")
_FIRST = 512 * min(os.cpu_count() or 1, 8)  # lots: so many that each worker has some
_SHORT = 0.2  # seconds


@click.command()
@click.option(
    "--folder",
    default=Path("out/demo"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Everything is in it; a second run goes on where the first stopped.",
)
@click.option("--subscriptions", default=100_000, show_default=True, type=click.IntRange(1, 10**7))
@click.option(
    "--rate", default=750.0, show_default=True, type=click.FloatRange(1, 1e5), help="Lots a second."
)
@click.option(
    "--churn",
    default=200.0,
    show_default=True,
    type=click.FloatRange(0, 1e4),
    help="Changes of subscriptions a second.",
)
@click.option("--seconds", type=click.FloatRange(0.1), help="End by itself after so long.")
@click.option("--master", help="URL of a Spark master; this machine without one.")
def demo(
    folder: Path,
    subscriptions: int,
    rate: float,
    churn: float,
    seconds: float | None,
    master: str | None,
) -> None:
    """Auctions live on Spark, until Ctrl-C.

    Lots are published into a log; people subscribe, renew and leave; a stream on Spark notifies
    each of them of what he waits for. All of it is files in a folder, which may be opened.
    """
    console = screen()
    place = folder.absolute()
    there = (place / "log" / _LOG).exists()
    console.print(_title(None if there else subscriptions, rate, folder))
    with Stopping() as stopping:
        steps = Steps(console, stopping)
        try:
            log, snapshot = _filled(steps, place / "log", subscriptions, asked=_asked())
            job = Job(place / "log", place / "index", place, place / "checkpoint", _COLUMNS)
            with ExitStack() as ending:
                stream = ending.enter_context(Stream(job, snapshot))
                _start(steps, stream, master)
                first = stream.look()
                auctioneer = Auctioneer(log, snapshot, rate, churn)
                _first_lots(steps, stream, stopping, auctioneer)
                ending.callback(auctioneer.stop)
                auctioneer.start()
                words = _words(snapshot, console)
                shown = StreamScreen(console, stream, words, _NAME, lambda: auctioneer.trouble)
                follow(shown, stream, stopping, seconds)
                auctioneer.stop()
                last = ended(console, stream)
        except StoppedError:
            console.print("Stopped before it began; the next run goes on from here.")
            return
    _end(console, folder, first, last, auctioneer, len(snapshot))


_NAME = "tamis  auctions live on Spark"


def _asked() -> bool:
    """Whether somebody said how many subscriptions there are to be."""
    source = click.get_current_context().get_parameter_source("subscriptions")
    return source is not ParameterSource.DEFAULT


def _title(subscriptions: int | None, rate: float, folder: Path) -> Text:
    many = "" if subscriptions is None else f"{subscriptions:,} "
    return Text.assemble(
        ("tamis", "bold cyan"),
        f"  about {rate:,.0f} lots a second go past {many}subscriptions that come and go.\n"
        f"All files are in {folder}. "
        "It takes about a minute to start, and two the first time.\n",
    )


def _filled(
    steps: Steps, folder: Path, subscriptions: int, *, asked: bool = False
) -> tuple[Log, Snapshot]:
    """The log with its subscriptions, as an earlier run left it or new; who is live.

    If somebody `asked` for their number, he is told where that comes too late.
    """
    snapshot = Snapshot()
    if (folder / _LOG).exists():
        log = Log.open(folder)
        if Schema.from_dict(log.schema) != Schema.from_dict(schema()) or log.ids != "int64":
            raise StoreError(f"{folder}: is the log of something else; choose another --folder")
    else:
        log = Log.create(folder, schema(), ids="int64")
    fresh, before = not log.counts(0)[0], log.counts(0)[1]
    late = asked and (not fresh or before > subscriptions)
    if fresh and before < subscriptions:
        steps.step(
            f"Subscribing {subscriptions:,}: a second for each 50,000",
            lambda: bulk(log, subscriptions, datetime.now(UTC)),
            lambda _: f"{log.counts(0)[1]:,} subscriptions are in the log",
        )
    end = log.end
    snapshot.fold(log.changes(0, end), end)
    if not fresh or late:
        told = "; --subscriptions does not change that" if late else ""
        steps.say(f"{len(snapshot):,} subscriptions are in the log of an earlier run{told}")
    return log, snapshot


def _start(steps: Steps, stream: Stream, master: str | None) -> None:
    """Spark, a version and the query; and meanwhile the loops that its workers will need."""
    warming = Warming(stream.job.out / "logs" / "warming.log")
    try:
        prepare(steps, stream, master, **{"spark.ui.enabled": False})
        steps.step(
            "Compiling the matcher's loops: about a minute, the first time only",
            warming.wait,
            lambda _: "the matcher's loops are compiled",
            warming.stop,
        )
    finally:
        warming.stop()
    start(steps, stream)


def _first_lots(steps: Steps, stream: Stream, stopping: Stopping, auctioneer: Auctioneer) -> None:
    """A few of them, and wait: lots that come before Spark is ready would stand in a row."""
    first = stream.look()
    if first.batches:
        steps.say(
            f"goes on after {first.events:,} events and {first.notifications:,} notifications; "
            f"{first.backlog:,} events wait"
        )

    def batch() -> int:
        now = first
        while now.batches == first.batches and stream.running and not stopping.wait(_SHORT):
            now = stream.look()
        if stopping.asked:
            raise StoppedError
        stream.check()
        stream.forget()
        return now.notifications - first.notifications

    auctioneer.publish(_FIRST)
    steps.step(
        "The first lots: about 10 seconds, until Spark has all its workers",
        batch,
        lambda done: f"{done:,} notifications of the first lots",
    )


def _words(
    snapshot: Snapshot, console: Console
) -> Callable[[Sequence[dict[str, Any]]], list[Text]]:
    """Notifications in words, one of a lot; those that fit on a line and say most come first."""

    def rank(text: Text) -> tuple[bool, int]:
        return text.cell_len > console.width, abs(text.cell_len - console.width)

    def lines(rows: Sequence[dict[str, Any]]) -> list[Text]:
        best: dict[int, Text] = {}
        for row in rows:
            life = snapshot.get(row["subscription"])
            if life is not None:
                text = notification(row, life.condition)
                lot = row["sequence"]
                best[lot] = min(best.get(lot, text), text, key=rank)
        return sorted(best.values(), key=rank)

    return lines


def notification(row: dict[str, Any], condition: str) -> Text:
    """A notification in words.

    >>> print(notification({"sequence": 12, "subscription": 7, "title": "Fine desk",
    ...                     "price": 80.0}, "price < 150"))
    lot 12 Fine desk 80.00 → subscription 7: price < 150
    """
    return Text.assemble(
        (f"lot {row['sequence']} ", "dim"),
        (f"{row['title']} ", "bold"),
        (f"{row['price']:,.2f}", "magenta"),
        f" → subscription {row['subscription']}: ",
        (condition, "cyan"),
    )


def _end(
    console: Console,
    folder: Path,
    first: Standing,
    last: Standing,
    auctioneer: Auctioneer,
    live: int,
) -> None:
    parts = folder / "notifications"
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    told = [
        summary(first, last),
        (
            f"{auctioneer.came:,} subscriptions came, {auctioneer.left:,} were cancelled and "
            f"{auctioneer.renewed:,} leases renewed meanwhile; {live:,} are live"
        ),
        "",
        (
            f"Everything is in {folder} ({size / 1e6:,.0f} MB): notifications/ and dead/ as "
            "Parquet, manifests/, log/, index/, logs/."
        ),
        "To look at the notifications:",
        f"  {_python()} -c \"import pandas; print(pandas.read_parquet('{parts}'))\"",
        "The same command goes on from here; remove the folder to begin anew.",
    ]
    console.print()
    console.print(Text("\n".join(told)), soft_wrap=True)
    if auctioneer.trouble:
        console.print(Text(auctioneer.trouble, style="red"), soft_wrap=True)


def _python() -> str:
    """This Python, as it can be typed here."""
    path = Path(sys.executable)
    try:
        return os.fspath(path.relative_to(Path.cwd()))
    except ValueError:
        return os.fspath(path)
