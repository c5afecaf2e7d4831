"""`tamis spark run`: match a log as it grows, and write notifications."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.reports.stream import StreamView, summary
from tamis.cli.spark.session import hide_py4j, master_option, operators_option, print_operators
from tamis.cli.terminal.console import report_console
from tamis.cli.terminal.interrupt import InterruptGuard, StartupSteps, StoppedError
from tamis.cli.terminal.options import FOLDER, PATH, option, split_names
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.cli.terminal.printable import one_line
from tamis.errors import SparkError, counted
from tamis.spark.stream.housekeeping import refused_text
from tamis.spark.stream.progress import StreamStatus
from tamis.spark.stream.stream import Stream, StreamJob, service_job
from tamis.spark.stream.topic_follower import TopicTarget

AVAILABLE_NOW = "available-now"
_POLL = 0.25  # seconds
_TIME = re.compile(r"(\d+)(ms|s|min)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000}


def _trigger(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """Milliseconds between batches, as Spark takes them. None: match everything, and stop."""
    if value == AVAILABLE_NOW:
        return None
    time = _TIME.fullmatch(value)
    if time is None:
        raise click.BadParameter(
            f"expected a time such as 0s, 500ms or 2min, or {AVAILABLE_NOW}; got {value!r}"
        )
    return int(time[1]) * _MILLISECONDS[time[2]]


@click.command()
@option("--data", "Data folder of a service: match for the service.", PATH)
@option("--log", "Folder of the log.", PATH)
@option("--index", "Folder of the compiled versions; it may be empty.", PATH)
@option("--out", "Folder for notifications, dead letters, manifests and logs.", FOLDER)
@option(
    "--checkpoint",
    "Spark's checkpoint, from which the next run continues.  [default: OUT/checkpoint]",
    FOLDER,
)
@click.option(
    "--columns", default="", help="Attributes to add to notifications, separated by commas."
)
@option("--max-events", "Most events of a batch.", click.IntRange(1))
@click.option(
    "--trigger",
    default="0s",
    show_default=True,
    callback=_trigger,
    help=f"Time between batches, or {AVAILABLE_NOW}: match everything so far, and stop.",
)
@option("--kafka-out", "Send notifications to a topic, too: BROKERS/TOPIC.")
@option("--kafka-properties", "Properties of librdkafka, for encryption and passwords.", PATH)
@operators_option
@master_option
@option(
    "--compile-every",
    "Changes after which the next version is compiled.  [default: a tenth of the subscriptions]",
    click.IntRange(1),
)
@json_option
def run(
    data: Path | None,
    log: Path | None,
    index: Path | None,
    out: Path | None,
    checkpoint: Path | None,
    columns: str,
    max_events: int | None,
    trigger: int | None,
    kafka_out: str | None,
    kafka_properties: Path | None,
    modules: tuple[str, ...],
    master: str | None,
    compile_every: int | None,
    as_json: bool,
) -> None:
    """Match a log as it grows, and write notifications.

    It runs until Ctrl-C; the next run continues from there. Meanwhile it expires leases, compiles
    new versions and removes versions that nobody needs. Give --log, --index and --out; or give the
    --data folder of a service in place of them, to match for the service. It then ends when
    matching goes over to the service (`tamis switch-matching`).
    """
    how: dict[str, Any] = {
        "columns": split_names(columns),
        "most": max_events,
        "trigger": trigger,
        "every": compile_every,
        "modules": modules,
        "topic": None if kafka_out is None else TopicTarget.parse(kafka_out, kafka_properties),
    }
    if data is not None:
        if log or index or out or checkpoint:
            raise click.UsageError("--data has a log, an index and the rest: leave those out.")
        job = service_job(data.absolute(), **how)
    elif log is None or index is None or out is None:
        raise click.UsageError("Give --log, --index and --out, or --data.")
    else:
        kept = (checkpoint or out / "checkpoint").absolute()
        job = StreamJob(log.absolute(), index.absolute(), out.absolute(), kept, **how)
    console = report_console(as_json)
    with InterruptGuard() as interrupt, Stream(job) as stream:
        steps = StartupSteps(console, interrupt)
        try:
            prepare(steps, stream, master)
            told = refused_text(stream.versions.latest())
            if told is not None:
                console.print(Text(one_line(told)), soft_wrap=True)
            start(steps, stream)
            first = stream.look()
            view = StreamView(console, stream, _words, "tamis spark run", told=told)
            follow(view, stream, interrupt)
        except StoppedError:
            console.print("Stopped during the start.")
            return
        last = stop(console, stream)
        operators = stream.operators()
    console.print()
    console.print(summary(first, last), soft_wrap=True)
    print_operators(console, operators)
    if stream.follower is not None:
        sent = counted(stream.follower.sent, "notification was", "notifications were")
        console.print(f"{sent} sent to {kafka_out}.")
    after = stream.superseded
    console.print(
        f"Notifications are in {job.out}/notifications; the same command continues from here."
        if after is None
        else f"Matching went over to {after.matching} at {after.start:,}."
    )
    done = ("events", "notifications", "dead", "batches")
    answer = {name: getattr(last, name) - getattr(first, name) for name in done}
    print_answer({**answer, "backlog": last.backlog, "sequence": last.sequence}, as_json, "")


def prepare(steps: StartupSteps, stream: Stream, master: str | None = None, **config: Any) -> None:
    """Start a session and compile a version."""
    hide_py4j()
    steps.run(
        "Starting Spark: about 10 seconds",
        lambda: stream.open(master, **config),
        lambda spark: f"Spark {spark.version} started",
    )
    steps.run(
        "Compiling the subscriptions: about 10 seconds for each 100,000, and half a minute more "
        "the first time on a machine",
        stream.prepare,
        lambda made: (
            "the subscriptions are compiled"
            if made is None
            else f"{counted(made.subscriptions, 'subscription')} compiled"
            + (f", {made.refused:,} refused" if made.refused else "")
        ),
        stream.interrupt,
    )


def start(steps: StartupSteps, stream: Stream) -> None:
    steps.run("Starting the stream", stream.start, lambda _: "the stream has started")


def follow(
    view: StreamView, stream: Stream, interrupt: InterruptGuard, seconds: float | None = None
) -> None:
    """Show a stream until it ends, the user asks to stop, or some seconds have passed."""
    until = None if seconds is None else monotonic() + seconds
    try:
        with view.shown():
            while stream.running and stream.superseded is None:
                view.update()
                if interrupt.wait(_POLL) or (until is not None and monotonic() > until):
                    break
        if not interrupt.requested and stream.superseded is None:
            stream.check()
    except SparkError:
        # Ctrl-C may have reached Spark as well; and a shift that is over ends the query.
        if not interrupt.requested and stream.superseded is None:
            raise


def stop(console: Console, stream: Stream) -> StreamStatus:
    """Stop a stream; gives its last position."""
    with console.status("Stopping: the current batch is dropped, and the next run repeats it"):
        stream.stop()
    return stream.look()


def _words(rows: Sequence[dict[str, Any]]) -> list[Text]:
    lines = []
    for row in rows:
        rest = " ".join(
            f"{name} {value}"
            for name, value in row.items()
            if name not in ("sequence", "subscription") and value is not None
        )
        found = f"event {row['sequence']} → subscription {row['subscription']}  {rest}"
        lines.append(Text(one_line(found)))
    return lines
