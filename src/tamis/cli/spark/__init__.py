"""`tamis spark`: the jobs on Spark, one file each."""

from __future__ import annotations

import click

from tamis.cli.lazy import CommandEntry, LazyGroup

COMMANDS = {
    "run": CommandEntry(
        "tamis.cli.spark.run:run", "Match a log as it grows, and write notifications."
    ),
    "match": CommandEntry(
        "tamis.cli.spark.match:match", "Match events in parquet files, and write the pairs."
    ),
    "compile": CommandEntry(
        "tamis.cli.spark.compile:compile_", "Compile conditions or a log into an index."
    ),
    "backtest": CommandEntry(
        "tamis.cli.spark.backtest:backtest", "Test conditions on past events."
    ),
    "stats": CommandEntry(
        "tamis.cli.spark.stats:stats", "Gather statistics of past events, to plan for them."
    ),
    "generate": CommandEntry(
        "tamis.cli.spark.generate:generate", "Write a workload of any size as parquet."
    ),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def spark() -> None:
    """Run jobs on Spark, on this machine or on a master."""
