"""What a task of the stream reads and matches, as Spark sends it to a worker.

The processes that plan a stream make slices and match nothing. They start without the engine and
the compiler of its loops, in half the time. So the code that matches is in `log_task`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class LogSlice:
    """A range of a log, and a shard of the subscriptions."""

    log: str
    start: int
    end: int
    folder: str | None  # of the shard; None where all subscriptions come from the log
    sequence: int  # of the version
    shard: int
    shards: int
    columns: tuple[tuple[str, pa.DataType], ...]  # attributes, with the types that Spark expects
    modules: tuple[str, ...]  # that declare operators
    report: str | None = None  # the folder for reports of operators
