"""`tamis spark run`: a log is matched as it grows, and notifications are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.screen import screen
from tamis.cli.spark_jobs import operators_option, tell_operators
from tamis.cli.steps import Steps
from tamis.cli.stopping import StoppedError, Stopping
from tamis.cli.stream_screen import StreamScreen
from tamis.errors import SparkError
from tamis.spark.stream.progress import Standing
from tamis.spark.stream.stream import Job, Stream

AVAILABLE_NOW = "available-now"
_LOOK = 0.25  # seconds between two looks
_TIME = re.compile(r"(\d+)(ms|s|min)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000}


def _trigger(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """Milliseconds between batches, as Spark takes them; None: all there is, and end."""
    if value == AVAILABLE_NOW:
        return None
    time = _TIME.fullmatch(value)
    if time is None:
        raise click.BadParameter(
            f"a time such as 0s, 500ms or 2min, or {AVAILABLE_NOW}; got {value!r}"
        )
    return int(time[1]) * _MILLISECONDS[time[2]]


@click.command()
@click.option("--log", required=True, type=click.Path(path_type=Path), help="Folder of the log.")
@click.option(
    "--index",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder of the compiled versions; it may be empty.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for notifications, dead letters, manifests and logs.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False),
    help="Spark's checkpoint, from which the next run goes on.  [default: OUT/checkpoint]",
)
@click.option("--columns", default="", help="Attributes to write beside, with commas between.")
@click.option("--max-events", type=click.IntRange(1), help="Events of a batch at most.")
@click.option(
    "--trigger",
    default="0s",
    show_default=True,
    callback=_trigger,
    help=f"Time between batches, or {AVAILABLE_NOW}: all there is, and end.",
)
@operators_option
@click.option("--master", help="URL of a Spark master or of a Connect server.")
@click.option(
    "--compile-every",
    type=click.IntRange(1),
    help="Changes after which a version is compiled.  [default: a tenth of the subscriptions]",
)
def run(
    log: Path,
    index: Path,
    out: Path,
    checkpoint: Path | None,
    columns: str,
    max_events: int | None,
    trigger: int | None,
    modules: tuple[str, ...],
    master: str | None,
    compile_every: int | None,
) -> None:
    """Match a log as it grows, and write notifications.

    Runs until Ctrl-C, and goes on from there the next time. Meanwhile leases that have run out
    are expired, new versions are compiled, and those that nobody needs are removed.
    """
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    job = Job(
        log.absolute(),
        index.absolute(),
        out.absolute(),
        (checkpoint or out / "checkpoint").absolute(),
        names,
        max_events,
        trigger,
        compile_every,
        modules,
    )
    console = screen()
    with Stopping() as stopping, Stream(job) as stream:
        steps = Steps(console, stopping)
        try:
            prepare(steps, stream, master)
            start(steps, stream)
            first = stream.look()
            shown = StreamScreen(console, stream, _words, "tamis spark run")
            follow(shown, stream, stopping)
        except StoppedError:
            console.print("stopped before it began")
            return
        last = ended(console, stream)
        asked = stream.operators()
    console.print()
    console.print(summary(first, last), soft_wrap=True)
    tell_operators(console, asked)
    console.print(f"Notifications are in {out}/notifications; the same command goes on from here.")


def prepare(steps: Steps, stream: Stream, master: str | None = None, **config: Any) -> None:
    """A session and a version."""
    steps.step(
        "Starting Spark: about 10 seconds",
        lambda: stream.open(master, **config),
        lambda spark: f"Spark {spark.version} started",
    )
    steps.step(
        "Compiling the subscriptions: about 10 seconds for each 100,000, and half a minute more "
        "the first time on a machine",
        stream.prepare,
        lambda made: (
            "the subscriptions are compiled"
            if made is None
            else f"{made.subscriptions:,} subscriptions compiled"
            + (f", {made.refused:,} refused: {made.reasons[0]}" if made.refused else "")
        ),
        stream.interrupt,
    )


def start(steps: Steps, stream: Stream) -> None:
    """The query."""
    steps.step("Starting the stream", stream.start, lambda _: "the stream has started")


def follow(
    shown: StreamScreen, stream: Stream, stopping: Stopping, seconds: float | None = None
) -> None:
    """Show a stream until it ends, somebody asks to stop, or so many seconds have passed."""
    until = None if seconds is None else monotonic() + seconds
    try:
        with shown.shown():
            while stream.running:
                shown.update()
                if stopping.wait(_LOOK) or (until is not None and monotonic() > until):
                    break
        if not stopping.asked:
            stream.check()
    except SparkError:
        if not stopping.asked:  # else it may have been told to stop as well, and is gone
            raise


def ended(console: Console, stream: Stream) -> Standing:
    """Stop a stream; how far it came."""
    with console.status("Stopping: what is under way is dropped, and the next run repeats it"):
        stream.stop()
    return stream.look()


def summary(first: Standing, last: Standing) -> str:
    """What was done between two looks."""
    return (
        f"{last.events - first.events:,} events, "
        f"{last.notifications - first.notifications:,} notifications and "
        f"{last.dead - first.dead:,} dead letters in {last.batches - first.batches:,} batches; "
        f"{last.backlog:,} events wait for the next run"
    )


def _words(rows: Sequence[dict[str, Any]]) -> list[Text]:
    lines = []
    for row in rows:
        rest = " ".join(
            f"{name} {value}"
            for name, value in row.items()
            if name not in ("sequence", "subscription") and value is not None
        )
        lines.append(Text(f"event {row['sequence']} → subscription {row['subscription']}  {rest}"))
    return lines
