"""`tamis demo`: auctions matched live on Spark. `make run` runs it."""

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
from tamis.cli.demo.publisher import AuctionPublisher, load_subscriptions
from tamis.cli.demo.warmup import KernelWarmup
from tamis.cli.reports.stream import StreamView, summary
from tamis.cli.spark.run import follow, prepare, start, stop
from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.interrupt import InterruptGuard, StartupSteps, StoppedError
from tamis.cli.terminal.numbers import file_size
from tamis.cli.terminal.options import FOLDER, option
from tamis.cli.terminal.printable import one_line
from tamis.errors import StoreError
from tamis.spark.stream.progress import StreamStatus
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log, SubscriptionSnapshot
from tamis.workload.auction_schema import schema

_TITLE = "tamis  auctions live on Spark"
_LOG = "tamis-log.json"
_COLUMNS = ("title", "price")
_FIRST = 512 * min(os.cpu_count() or 1, 8)  # lots, enough for every worker
_POLL = 0.2  # seconds


@click.command()
@option(
    "--folder",
    "Folder of all files. A second run continues where the first stopped.",
    FOLDER,
    Path("out/demo"),
)
@option(
    "--subscriptions", "Number of subscriptions at the start.", click.IntRange(1, 10**7), 100_000
)
@option("--rate", "Lots a second.", click.FloatRange(1, 1e5), 750.0)
@option("--churn", "Changes of subscriptions a second.", click.FloatRange(0, 1e4), 200.0)
@option("--seconds", "Stop after this many seconds.", click.FloatRange(0.1))
@option("--master", "URL of a Spark master.  [default: this machine]")
def demo(
    folder: Path,
    subscriptions: int,
    rate: float,
    churn: float,
    seconds: float | None,
    master: str | None,
) -> None:
    """Match auctions live on Spark, until Ctrl-C.

    A publisher appends lots to a log; people subscribe, renew and cancel; a stream on Spark writes
    the notifications. Everything is files in one folder, which you may open.
    """
    console = stdout_console()
    place = folder.absolute()
    continued = (place / "log" / _LOG).exists()
    console.print(_introduction(None if continued else subscriptions, rate, folder))
    with InterruptGuard() as interrupt:
        steps = StartupSteps(console, interrupt)
        try:
            log, snapshot = _open_log(steps, place / "log", subscriptions, given=_given())
            job = StreamJob(place / "log", place / "index", place, place / "checkpoint", _COLUMNS)
            with ExitStack() as cleanup:
                stream = cleanup.enter_context(Stream(job, snapshot))
                _start(steps, stream, master)
                first = stream.look()
                publisher = AuctionPublisher(log, snapshot, rate, churn)
                _publish_first_lots(steps, stream, interrupt, publisher)
                cleanup.callback(publisher.stop)
                publisher.start()
                words = _words(snapshot, console)
                view = StreamView(console, stream, words, _TITLE, lambda: publisher.trouble)
                follow(view, stream, interrupt, seconds)
                publisher.stop()
                last = stop(console, stream)
        except StoppedError:
            console.print("Stopped during the start; the next run continues from here.")
            return
    _print_end(console, folder, first, last, publisher, len(snapshot))


def _given() -> bool:
    """Whether the user gave --subscriptions."""
    source = click.get_current_context().get_parameter_source("subscriptions")
    return source is not ParameterSource.DEFAULT


def _introduction(subscriptions: int | None, rate: float, folder: Path) -> Text:
    many = "" if subscriptions is None else f"{subscriptions:,} "
    return Text.assemble(
        ("tamis", "bold cyan"),
        f"  matches about {rate:,.0f} lots a second against {many}changing subscriptions.\n"
        f"All files are in {folder}. "
        "The start takes about a minute, and two the first time.\n",
    )


def _open_log(
    steps: StartupSteps, folder: Path, subscriptions: int, *, given: bool = False
) -> tuple[Log, SubscriptionSnapshot]:
    """The log of an earlier run or a new one, and its live subscriptions.

    If the user gave --subscriptions and an earlier run decided it already, a line says so.
    """
    snapshot = SubscriptionSnapshot()
    if (folder / _LOG).exists():
        log = Log.open(folder)
        if Schema.from_dict(log.schema) != Schema.from_dict(schema()) or log.ids != "int64":
            raise StoreError(f"{folder}: belongs to something else; choose another --folder")
    else:
        log = Log.create(folder, schema(), ids="int64")
    fresh, before = not log.counts(0)[0], log.counts(0)[1]
    late = given and (not fresh or before > subscriptions)
    if fresh and before < subscriptions:
        steps.run(
            f"Adding {subscriptions:,} subscriptions: about a second for each 50,000",
            lambda: load_subscriptions(log, subscriptions, datetime.now(UTC)),
            lambda _: f"{log.counts(0)[1]:,} subscriptions are in the log",
        )
    end = log.end
    snapshot.fold(log.changes(0, end), end)
    if not fresh or late:
        more = "; --subscriptions does not change that" if late else ""
        steps.report(f"{len(snapshot):,} subscriptions are in the log of an earlier run{more}")
    return log, snapshot


def _start(steps: StartupSteps, stream: Stream, master: str | None) -> None:
    """Start Spark, compile a version and start the query, while kernels compile."""
    warmup = KernelWarmup(stream.job.out / "logs" / "warmup.log")
    try:
        prepare(steps, stream, master, **{"spark.ui.enabled": False})
        steps.run(
            "Compiling the matcher's kernels: about a minute, the first time only",
            warmup.wait,
            lambda _: "the matcher's kernels are compiled",
            warmup.stop,
        )
    finally:
        warmup.stop()
    start(steps, stream)


def _publish_first_lots(
    steps: StartupSteps, stream: Stream, interrupt: InterruptGuard, publisher: AuctionPublisher
) -> None:
    """Publish a few lots and wait: later ones would queue until Spark has its workers."""
    first = stream.look()
    if first.batches:
        steps.report(
            f"continues after {first.events:,} events and {first.notifications:,} notifications; "
            f"{first.backlog:,} events wait"
        )

    def wait_for_batch() -> int:
        now = first
        while now.batches == first.batches and stream.running and not interrupt.wait(_POLL):
            now = stream.look()
        if interrupt.requested:
            raise StoppedError
        stream.check()
        stream.forget()
        return now.notifications - first.notifications

    publisher.publish(_FIRST)
    steps.run(
        "Matching the first lots: about 10 seconds, until Spark has all its workers",
        wait_for_batch,
        lambda done: f"{done:,} notifications of the first lots",
    )


def _words(
    snapshot: SubscriptionSnapshot, console: Console
) -> Callable[[Sequence[dict[str, Any]]], list[Text]]:
    """Notifications in words, one for each lot; long ones that fit on a line come first."""

    def rank(text: Text) -> tuple[bool, int]:
        return text.cell_len > console.width, abs(text.cell_len - console.width)

    def lines(rows: Sequence[dict[str, Any]]) -> list[Text]:
        best: dict[int, Text] = {}
        for row in rows:
            live = snapshot.get(row["subscription"])
            if live is not None:
                text = notification(row, live.condition)
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
        (one_line(f"{row['title']} "), "bold"),
        (f"{row['price']:,.2f}", "magenta"),
        f" → subscription {row['subscription']}: ",
        (one_line(condition), "cyan"),
    )


def _print_end(
    console: Console,
    folder: Path,
    first: StreamStatus,
    last: StreamStatus,
    publisher: AuctionPublisher,
    live: int,
) -> None:
    parts = folder / "notifications"
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    lines = [
        summary(first, last),
        (
            f"{publisher.subscribed:,} subscriptions were added, {publisher.cancelled:,} cancelled "
            f"and {publisher.renewed:,} leases renewed; {live:,} are live"
        ),
        "",
        (
            f"Everything is in {folder} ({file_size(size)}): notifications/ and dead/ as Parquet, "
            "manifests/, log/, index/, logs/."
        ),
        "To look at the notifications:",
        f"  {_python()} -c \"import pandas; print(pandas.read_parquet('{parts}'))\"",
        "The same command continues from here; remove the folder to start afresh.",
    ]
    console.print()
    console.print(Text("\n".join(lines)), soft_wrap=True)
    if publisher.trouble:
        console.print(Text(publisher.trouble, style="red"), soft_wrap=True)


def _python() -> str:
    """The path of this Python, relative where possible."""
    path = Path(sys.executable)
    try:
        return os.fspath(path.relative_to(Path.cwd()))
    except ValueError:
        return os.fspath(path)
