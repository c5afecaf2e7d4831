"""`tamis demo city`: drones over New York, pictures, and operators that look at them."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tamis.cli.demo.demo_files import DemoFiles
from tamis.cli.demo.demo_service import DemoService, start_service
from tamis.cli.demo.webhook_receiver import WebhookReceiver
from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.interrupt import InterruptGuard, StartupSteps, StoppedError
from tamis.cli.terminal.numbers import clock
from tamis.cli.terminal.options import FOLDER, option
from tamis.client import Client
from tamis.errors import TamisError, counted
from tamis.workload import drones

_PACKS = "spatial,vision,drones"
_BODY = ("drone", "position")  # what a webhook shows of an event
_BLOCK = 20  # pictures that are drawn at once
_LATE = 1.0  # seconds: a machine that slept longer does not catch up
_TICK = 0.05  # seconds
_POLL = 0.5  # seconds
_LINE_SECONDS = 5.0  # between two lines, outside a terminal


@click.command()
@option(
    "--folder",
    "Folder of all files. A second run continues where the first stopped.",
    FOLDER,
    Path("out/demo-city"),
)
@click.option("--fresh", is_flag=True, help="Remove the data of earlier runs first.")
@option("--rate", "Pictures a second.", click.FloatRange(0.1, 1000), 10.0)
@option("--seconds", "Stop after this many seconds.", click.FloatRange(0.1))
@option(
    "--port",
    "Port of the service and its console.  [default: 8080, or a free one]",
    click.IntRange(1, 65535),
)
def city(folder: Path, fresh: bool, rate: float, seconds: float | None, port: int | None) -> None:
    """Watch a city from drones, on a map, until Ctrl-C.

    Drones over New York publish pictures with positions. Five subscriptions ask for places and for
    what is seen there: operators look at the pictures, as few as possible. The console has a map.
    """
    console = stdout_console()
    files = DemoFiles(folder.absolute(), drones.schema())
    files.prepare(fresh=fresh)
    console.print(_introduction(rate, folder))
    with InterruptGuard() as interrupt, ExitStack() as cleanup:
        steps = StartupSteps(console, interrupt)
        try:
            service = start_service(steps, cleanup, files, port, "--operators", _PACKS)
            run = CityRun(service, rate)
            cleanup.callback(run.stop)
            steps.run(
                "Subscribing",
                run.subscribe,
                lambda many: f"{counted(many, 'subscription')}, each with a webhook",
            )
        except StoppedError:
            console.print("Stopped during the start.")
            return
        run.start()
        _show(console, interrupt, run, service, seconds)
        cleanup.close()
        console.print(f"\n{run.line()}\nEverything is in {folder}; --fresh begins again.")


def _introduction(rate: float, folder: Path) -> Text:
    return Text.assemble(
        ("tamis", "bold cyan"),
        f"  Drones over New York publish {rate:,g} pictures a second. Open the link, and there the "
        f"page Map.\nAll files are in {folder}.\n",
    )


class CityRun:
    """A publisher of pictures, the subscriptions, and a receiver of their webhooks."""

    def __init__(self, service: DemoService, rate: float) -> None:
        self._rate = rate
        self._client = Client(service.url, key=service.new_key())
        self.receiver = WebhookReceiver()
        self.published = 0
        self.trouble: str | None = None
        self.names: dict[Any, str] = {}
        self._stop = Event()
        self._thread = Thread(target=self._run, name="drones", daemon=True)

    def subscribe(self) -> int:
        """Subscribe as in the paper, in place of what an earlier run has left; how many."""
        for left in self._client.subscriptions():
            self._client.cancel(left.id)
        sink = {"url": self.receiver.url, "body": list(_BODY)}
        for name, condition in drones.SUBSCRIPTIONS.items():
            made = self._client.subscribe(condition, lease=None, name=name, sink=sink)
            self.names[made.id] = name
            if made.secret is not None:
                self.receiver.expect(made.secret)
        return len(self.names)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop publishing. Webhooks that nobody will receive any more end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(TamisError):  # the service may be gone
            for id in self.names:
                self._client.update(id, remove=("sink",))
        self._client.close()
        self.receiver.stop()

    def rows(self) -> Iterator[tuple[str, int, str]]:
        """The subscriptions: name, notifications, condition."""
        for id, name in self.names.items():
            yield name, self.receiver.by_subscription[id], drones.SUBSCRIPTIONS[name]

    def line(self) -> str:
        """The figures on one line."""
        found = ", ".join(f"{name} {many:,}" for name, many, _ in self.rows())
        return f"{counted(self.published, 'picture')}; notifications: {found}"

    def _run(self) -> None:
        try:
            self._publish_until_stopped()
        except Exception as why:  # noqa: BLE001 - shown on the screen
            if not self._stop.is_set():
                self.trouble = f"publishing failed: {why}"

    def _publish_until_stopped(self) -> None:
        pictures, before, due = self._pictures(), time.monotonic(), 0.0
        while not self._stop.wait(_TICK):
            now = time.monotonic()
            due += min(now - before, _LATE) * self._rate
            before = now
            several = [next(pictures) for _ in range(int(due))]
            if several:
                self._client.publish(several)
                self.published += len(several)
            due %= 1

    def _pictures(self) -> Iterator[dict[str, Any]]:
        """Pictures with positions, taken now."""
        made, seed = drones.make(0), time.time_ns()
        while True:
            for row in made.events(_BLOCK, seed=seed).to_pylist():
                event = {name: value for name, value in row.items() if value is not None}
                event["image"] = base64.b64encode(event["image"]).decode()
                event["time"] = datetime.now(UTC)
                yield event
            seed += 1


def _show(
    console: Console,
    interrupt: InterruptGuard,
    run: CityRun,
    service: DemoService,
    seconds: float | None,
) -> None:
    """Show how often each subscription was notified, until Ctrl-C or for some seconds."""
    began = time.monotonic()
    printed = began - _LINE_SECONDS
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while not interrupt.wait(_POLL):
            now = time.monotonic()
            if console.is_terminal:
                live.update(_picture(run, now - began), refresh=True)
            elif now - printed >= _LINE_SECONDS:
                printed = now
                console.print(Text(f"{clock(now - began)}: {run.line()}"), soft_wrap=True)
            if not service.is_running:
                raise TamisError(service.end_reason)
            if run.trouble is not None:
                raise TamisError(run.trouble)
            if seconds is not None and now - began > seconds:
                return


def _picture(run: CityRun, elapsed: float) -> Group:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(style="bold cyan", no_wrap=True)
    shown.add_column(justify="right", no_wrap=True, min_width=8)
    shown.add_column(style="dim", overflow="ellipsis")
    for name, many, condition in run.rows():
        shown.add_row(name, f"{many:,}", condition)
    head = Text.assemble(
        ("tamis  drones over New York", "bold cyan"),
        f"  for {clock(elapsed)}: {counted(run.published, 'picture')}",
        ("   Ctrl-C stops it", "dim"),
    )
    return Group(Text(), head, Text(), shown)
