"""`tamis demo`: the whole system on auctions. `make run` runs it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.demo.auction_run import AuctionRun
from tamis.cli.demo.city import city
from tamis.cli.demo.demo_files import DemoFiles
from tamis.cli.demo.demo_service import DemoService, start_service
from tamis.cli.demo.spark_handover import SparkHandover
from tamis.cli.reports.stream import Row, StreamView, summary
from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.interrupt import InterruptGuard, StartupSteps, StoppedError
from tamis.cli.terminal.numbers import file_size
from tamis.cli.terminal.options import FOLDER, option
from tamis.cli.terminal.printable import one_line
from tamis.errors import SparkError, TamisError, counted
from tamis.spark.stream.progress import StreamStatus
from tamis.store import SubscriptionSnapshot
from tamis.workload.auction_schema import schema

_TITLE = "tamis  auctions live"
_COLUMNS = ("title", "price")
_POLL = 0.25  # seconds


@click.group(invoke_without_command=True)
@click.pass_context
@option(
    "--folder",
    "Folder of all files. A second run continues where the first stopped.",
    FOLDER,
    Path("out/demo"),
)
@click.option("--fresh", is_flag=True, help="Remove the data of earlier runs first.")
@option("--subscriptions", "Number of subscriptions.", click.IntRange(1, 10**7), 100_000)
@option("--rate", "Lots a second.", click.FloatRange(1, 1e5), 750.0)
@option("--churn", "Changes of subscriptions a second.", click.FloatRange(0, 1e4), 200.0)
@option("--seconds", "Stop after this many seconds.", click.FloatRange(0.1))
@option(
    "--port",
    "Port of the service and its console.  [default: 8080, or a free one]",
    click.IntRange(1, 65535),
)
@option("--master", "URL of a Spark master.  [default: this machine]")
def demo(
    context: click.Context,
    folder: Path,
    fresh: bool,
    subscriptions: int,
    rate: float,
    churn: float,
    seconds: float | None,
    port: int | None,
    master: str | None,
) -> None:
    """Run the whole system on auctions, until Ctrl-C.

    A service with its console, a publisher of lots, subscriptions that come and go, and a receiver
    of webhooks. The service matches until Spark has started and takes over. Everything is files in
    one folder, which you may open.
    """
    if context.invoked_subcommand is not None:
        return
    began = time.monotonic()
    console = stdout_console()
    files = DemoFiles(folder.absolute(), schema())
    continued = files.prepare(fresh=fresh)
    console.print(_introduction(subscriptions, rate, folder))
    with InterruptGuard() as interrupt, ExitStack() as cleanup:
        steps = StartupSteps(console, interrupt)
        try:
            service = start_service(steps, cleanup, files, port, "--matching", "inline")
            run = AuctionRun(service, files.data, subscriptions, rate, churn)
            cleanup.callback(run.stop)
            if continued:
                steps.report(_continued(run))
            _notify_first(steps, interrupt, run, began)
            first = run.watch.look()
            spark = SparkHandover(
                files.data, _COLUMNS, master, run.subscribers.complete.wait, steps.report
            )
            cleanup.callback(spark.stop)
            _Show(console, interrupt, service, run, spark).until_stopped(seconds)
        except StoppedError:
            console.print("Stopped during the start; the next run continues from here.")
            return
        with console.status("Stopping: a batch that is under way is dropped, and matched again"):
            run.stop()
            spark.stop()
            last = run.watch.look()
            cleanup.close()
    _print_end(console, folder, first, last, run)


def _introduction(subscriptions: int, rate: float, folder: Path) -> Text:
    return Text.assemble(
        ("tamis", "bold cyan"),
        f"  A service with a console, {rate:,.0f} lots a second, {subscriptions:,} subscriptions "
        "that come and go,\nwebhooks, and Spark, which takes the matching over from the service "
        f"after a minute or two.\nAll files are in {folder}.\n",
    )


def _continued(run: AuctionRun) -> str:
    live = counted(len(run.watch.snapshot), "subscription")
    return f"continues after {counted(run.watch.events, 'event')}, with {live} of the earlier run"


def _notify_first(
    steps: StartupSteps, interrupt: InterruptGuard, run: AuctionRun, began: float
) -> None:
    """Publish, and wait for the first notification."""
    steps.run(
        "Adding the first subscriptions",
        run.subscribe,
        lambda many: (
            f"{counted(many, 'subscription is', 'subscriptions are')} there; the others follow"
        ),
    )
    run.lots.start()

    def wait() -> float:
        while not run.has_notification():
            if interrupt.requested:
                raise StoppedError
        return time.monotonic() - began

    steps.run(
        "Waiting for the first notification: the first time on a machine, code is compiled",
        wait,
        lambda passed: f"the first notification came {passed:.1f} s after the start",
    )
    run.subscribers.start()


class _Show:
    """The live table, while Spark starts and takes over."""

    def __init__(
        self,
        console: Console,
        interrupt: InterruptGuard,
        service: DemoService,
        run: AuctionRun,
        spark: SparkHandover,
    ) -> None:
        self._interrupt, self._service, self._run, self._spark = interrupt, service, run, spark
        words = _words(run.watch.snapshot, console)
        self._view = StreamView(
            console, run.watch, words, _TITLE, lambda: run.trouble, more=self._rows
        )
        self._console, self._updated = console, 0.0
        self._failure: str | None = None  # of Spark, which was shown
        self._end: float | None = None
        self._stopping = False

    def until_stopped(self, seconds: float | None) -> None:
        """Show everything until Ctrl-C, or for some seconds."""
        self._end = None if seconds is None else time.monotonic() + seconds
        with self._view.shown():
            self._interrupt.run(self._spark.run, self._spark.interrupt, self._look)
            while not self._is_over:
                self._look()
                self._interrupt.wait(_POLL)
        if not self._service.is_running:
            raise TamisError(self._service.end_reason)

    @property
    def _is_over(self) -> bool:
        late = self._end is not None and time.monotonic() > self._end
        return late or self._interrupt.requested or not self._service.is_running

    def _look(self) -> None:
        """Show the figures as they are now. Called several times a second."""
        now = time.monotonic()
        if now < self._updated + _POLL:
            return
        self._updated = now
        spark = self._spark
        if self._is_over:
            if spark.step and not self._stopping:
                self._stopping = True
                self._console.print("Stopping, after this step of Spark's start")
                spark.interrupt()
            return
        if spark.stream is not None:
            try:
                if not spark.stream.running:
                    spark.stream.check()
                    raise SparkError("its stream has ended")
            except SparkError as why:
                spark.give_up(why)
        self._tell_failure(spark.failure)
        self._run.watch.follow(spark.stream)
        self._view.update()

    def _tell_failure(self, why: str | None) -> None:
        if why is not None and why != self._failure:
            line = f"the service goes on matching, without Spark: {one_line(why)}"
            self._console.print(Text.assemble(("! ", "yellow"), line), soft_wrap=True)
        self._failure = why

    def _rows(self) -> Sequence[Row]:
        spark = self._spark
        if spark.stream is not None:
            who, more = "Spark", f"from sequence number {spark.start:,} on"
        elif spark.failure is not None:
            who, more = "inline", f"by the service; {spark.failure}"
        else:
            who, more = "inline", f"by the service; {spark.step}" if spark.step else ""
        return [("matching", who, one_line(more)), *self._run.rows()]


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
    console: Console, folder: Path, first: StreamStatus, last: StreamStatus, run: AuctionRun
) -> None:
    data = folder / "data"
    parts = data / "notifications" / "notifications"
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    changes, live = run.subscribers, len(run.watch.snapshot)
    lines = [
        summary(first, last),
        (
            f"{counted(changes.subscribed, 'subscription was', 'subscriptions were')} added, "
            f"{changes.cancelled:,} cancelled and {counted(changes.renewed, 'lease')} renewed; "
            f"{counted(live, 'is', 'are')} live"
        ),
        f"{counted(run.receiver.received, 'webhook')} received",
        "",
        f"Everything is in {folder} ({file_size(size)}): data/ is the data folder of the service.",
        "To look at the notifications:",
        f"  {_python()} -c \"import pandas; print(pandas.read_parquet('{parts}'))\"",
        "The same command continues from here; with --fresh it begins again.",
    ]
    console.print()
    console.print(Text("\n".join(lines)), soft_wrap=True)
    if run.trouble:
        console.print(Text(run.trouble, style="red"), soft_wrap=True)


def _python() -> str:
    """The path of this Python, relative where possible."""
    path = Path(sys.executable)
    try:
        return os.fspath(path.relative_to(Path.cwd()))
    except ValueError:
        return os.fspath(path)


demo.add_command(city)
