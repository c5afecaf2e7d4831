"""`tamis spark`: the jobs on Spark, one file each."""

from __future__ import annotations

import click

from tamis.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("tamis.cli.spark.run:run", "Match a log as it grows, and write notifications."),
    "match": ("tamis.cli.spark.match:match", "Match events in parquet files, and write the pairs."),
    "compile": ("tamis.cli.spark.compile:compile_", "Compile conditions or a log into an index."),
    "backtest": ("tamis.cli.spark.backtest:backtest", "Test conditions on past events."),
    "stats": ("tamis.cli.spark.stats:stats", "Gather statistics of past events, to plan for them."),
    "generate": ("tamis.cli.spark.generate:generate", "Write a workload of any size as parquet."),
}


@click.group(cls=LazyGroup, tables={"Commands": COMMANDS})
def spark() -> None:
    """Run jobs on Spark, on this machine or on a master."""
