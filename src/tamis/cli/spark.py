"""`tamis spark`: the jobs that run on Spark, each in a file of its own."""

from __future__ import annotations

import click

from tamis.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "run": Entry("tamis.cli.spark_run:run", "Match a log as it grows, and write notifications."),
    "match": Entry(
        "tamis.cli.spark_match:match", "Match events in parquet files, and write the pairs."
    ),
    "compile": Entry(
        "tamis.cli.spark_compile:compile_", "Compile conditions, or a log, into an index."
    ),
    "backtest": Entry(
        "tamis.cli.spark_backtest:backtest", "Test conditions with events that are past."
    ),
    "stats": Entry(
        "tamis.cli.spark_stats:stats", "Tell what past events are like, to plan for them."
    ),
    "generate": Entry(
        "tamis.cli.spark_generate:generate", "Write a workload of any size as parquet."
    ),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def spark() -> None:
    """Jobs on Spark: on this machine, or on the master that is named."""
