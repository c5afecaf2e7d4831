"""A back-test of one condition over a range of a log, with a task for each part of the range.

    python -m tamis.spark.backtest.log_ranges < QUESTION

The service runs this in a child process for ranges that are too large for it. The question is JSON
(`LogQuestion`). Each line of the output is JSON too: `{"done": 3, "tasks": 8}` as tasks end, then
`{"result": [...]}` (a `LogBacktest`) or `{"error": "..."}`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.log_events import log_shares
from tamis.replay.past.log_backtest import LogBacktest, RangeCounts, TimeGrid, count_range
from tamis.spark.runtime.error_text import error_text
from tamis.spark.runtime.job_runner import Progress, cores, run_tasks
from tamis.spark.runtime.sessions import end, session
from tamis.store.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHARES = 4  # a core
_LARGEST = 1 << 20  # events of a share
_COUNTED = pa.schema([("counts", pa.string())])


class LogQuestion(NamedTuple):
    """What to test: a condition under the schema before a number, on a range of a log."""

    folder: str
    condition: str
    language: str
    operators: tuple[str, ...]  # as `EnabledOperators.named` takes them
    schema: int
    first: int
    end: int
    buckets: int
    samples: int


class RangeTask(NamedTuple):
    """Counts one part of the range."""

    asked: LogQuestion
    parts: list[tuple[int, int]]

    def run(self, number: int) -> Iterator[dict[str, Any]]:
        asked, log = self.asked, Log.open(self.asked.folder)
        grid = TimeGrid(log, asked.first, asked.end, asked.buckets)
        operators = EnabledOperators.named(asked.operators)
        with Engine(log.schema_at(asked.schema), operators=operators) as engine:
            engine.subscribe(asked.condition, language=asked.language)
            found = count_range(log, engine, grid, self.parts[number], asked.samples)
        yield {"counts": json.dumps(found)}


def backtest_range(
    spark: SparkSession, asked: LogQuestion, progress: Progress | None = None
) -> LogBacktest:
    """The result that the service would find itself."""
    log = Log.open(asked.folder)
    most = max(_SHARES * cores(spark), -(-log.counts(asked.first, asked.end)[0] // _LARGEST))
    task = RangeTask(asked, log_shares(log, asked.first, asked.end, most))
    rows = run_tasks(spark, len(task.parts), task.run, _COUNTED, progress)
    grid = TimeGrid(log, asked.first, asked.end, asked.buckets)
    counts = RangeCounts(0, 0, [0] * grid.many, [0] * grid.many, [])
    for row in rows:
        counts = counts.plus(RangeCounts(*json.loads(row["counts"])), asked.samples)
    return grid.report(counts)


def main() -> int:
    """Answer the question on the input."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=LogQuestion)
    try:
        Log.open(asked.folder)  # before Spark starts, which takes a while
        spark = session()
        try:
            found = backtest_range(
                spark, asked, lambda done, tasks: _say({"done": done, "tasks": tasks})
            )
        finally:
            end(spark)
    except TamisError as why:
        _say({"error": str(why)})
        return 1
    except Exception as why:  # noqa: BLE001 - Spark raises many kinds when it starts
        _say({"error": f"Spark does not start: {error_text(why)}"})
        return 1
    _say({"result": found})
    return 0


def _say(what: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":  # Spark would send classes of this module to its workers by value
    sys.exit(import_module("tamis.spark.backtest.log_ranges").main())
