"""Streams that read all there is, and end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def run_stream(
    frame: DataFrame, folder: Path, name: str = "found", sink: str = "parquet"
) -> StreamingQuery:
    """Write a stream to a folder, beside its checkpoint, until nothing is left to read."""
    query = (
        frame.writeStream.format(sink)
        .option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / name))
    )
    assert query.awaitTermination(300)
    assert query.exception() is None
    return query
