"""Events in parquet files: rows are numbered over all files, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis.errors import StoreError
from tamis.replay.event_source import READ, EventChunk, RowLayout
from tamis.replay.row_groups import RowRange


class ParquetEvents(NamedTuple):
    """Rows of parquet files, in shares."""

    files: tuple[str, ...]
    layouts: tuple[RowLayout, ...]
    layout_of: tuple[int, ...]  # by file
    shares: tuple[tuple[RowRange, ...], ...]

    def rows(self, share: int) -> int:
        return sum(each.stop - each.start for each in self.shares[share])

    def chunks(self, share: int) -> Iterator[EventChunk]:
        for rows in self.shares[share]:
            layout = self.layouts[self.layout_of[rows.file]]
            for at, batch in _read(self.files[rows.file], rows, layout.columns):
                first = rows.first + at - rows.start
                numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
                yield EventChunk(numbers, pa.Table.from_batches([batch]), layout)


def _read(file: str, rows: RowRange, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of a row group in batches, each with the place of its first row in the row group."""
    try:
        with parquet.ParquetFile(file) as source:
            at = 0
            groups = source.iter_batches(
                READ, row_groups=[rows.group], columns=list(names), use_threads=False
            )
            for batch in groups:
                begin, end = max(at, rows.start), min(at + batch.num_rows, rows.stop)
                if begin < end:
                    yield begin, batch.slice(begin - at, end - begin)
                at += batch.num_rows
                if at >= rows.stop:
                    return
    except FileNotFoundError:
        raise StoreError(
            f"{file}: a worker cannot find it; on a cluster, events have to be in a folder that "
            "all machines share"
        ) from None
    except (OSError, pa.ArrowException) as why:  # a damaged page does not name its file
        said = why.strerror if isinstance(why, OSError) else None
        raise StoreError(f"{file}: cannot be read: {said or why}") from None
