"""Events in parquet files, by row group: which rows there are, and who reads which.

The driver reads only the footers, which say how many rows each row group has. Rows get their
numbers from that, in the order of the files' names, and tasks their shares.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis.errors import StoreError
from tamis.replay.event_source import READ, EventChunk, RowLayout

_READERS = 8  # threads: footers are waited for, not computed
_SHARES = 4  # tasks a core, so that cores are idle for a short while only at the end
_LARGEST = 1 << 20  # rows of a task, so that a second try is not much work
_LEAST = 1 << 14  # rows of a task, where a row group is cut
_MAGIC = "*?["


class RowRange(NamedTuple):
    """Some rows of one row group; rows are numbered from 0 over all files."""

    file: int
    group: int
    start: int  # within the row group
    stop: int
    first: int  # the number of the row at `start`


class ParquetFiles(NamedTuple):
    """Files, their columns, and the rows of their row groups."""

    files: list[str]
    schemas: list[pa.Schema]  # those that differ
    schema_of: list[int]  # by file
    groups: list[RowRange]

    @property
    def rows(self) -> int:
        return sum(each.stop - each.start for each in self.groups)


def parquet_files(where: str | os.PathLike[str]) -> ParquetFiles:
    """All parquet files of a folder, of a pattern such as `day=*/*.parquet`, or the one file."""
    files = _files(os.fspath(where))
    with ThreadPoolExecutor(_READERS) as pool:
        read = list(pool.map(_footer, files))
    schemas: list[pa.Schema] = []
    schema_of: list[int] = []
    groups: list[RowRange] = []
    first = 0
    for file, (schema, sizes) in enumerate(read):
        at = next((at for at, known in enumerate(schemas) if known.equals(schema)), len(schemas))
        if at == len(schemas):
            schemas.append(schema)
        schema_of.append(at)
        for group, size in enumerate(sizes):
            if size:
                groups.append(RowRange(file, group, 0, size, first))
            first += size
    return ParquetFiles(files, schemas, schema_of, groups)


def _files(where: str) -> list[str]:
    path = Path(where)
    if path.is_file():
        return [str(path.absolute())]
    if path.is_dir():
        files = sorted(each for each in path.rglob("*.parquet") if _shown(each.relative_to(path)))
    elif any(mark in where for mark in _MAGIC):
        # `Path.glob` takes no pattern that begins at the root.
        named = glob.glob(where, recursive=True)  # noqa: PTH207
        files = sorted(Path(each) for each in named if Path(each).is_file())
    else:
        raise StoreError(f"{where}: there is no such file or folder of parquet files")
    if not files:
        raise StoreError(f"{where}: there are no parquet files")
    return [str(each.absolute()) for each in files]


def _shown(path: Path) -> bool:
    """A name with a dot or an underscore in front is not data, by Spark's convention."""
    return not any(part.startswith((".", "_")) for part in path.parts)


def _footer(file: str) -> tuple[pa.Schema, list[int]]:
    try:
        with parquet.ParquetFile(file) as opened:
            facts = opened.metadata
            sizes = [facts.row_group(at).num_rows for at in range(facts.num_row_groups)]
            return opened.schema_arrow.remove_metadata(), sizes
    except OSError as why:
        raise StoreError(f"{file}: cannot be read: {why.strerror or why}") from None
    except pa.ArrowException as why:
        raise StoreError(f"{file}: is not a parquet file that can be read: {why}") from None


def row_shares(groups: Sequence[RowRange], cores: int) -> list[tuple[RowRange, ...]]:
    """The rows in shares of about one size, each in order: what one task reads.

    A row group that is larger than a share is cut. The reader of a later part skips the earlier
    ones, which costs little beside matching.
    """
    rows = sum(each.stop - each.start for each in groups)
    if not rows:
        return []
    wanted = max(min(cores * _SHARES, -(-rows // _LEAST)), -(-rows // _LARGEST))
    # Equal shares rather than full ones and a rest.
    size = -(-rows // wanted)
    return list(_dealt(groups, size))


def _dealt(groups: Sequence[RowRange], size: int) -> Iterator[tuple[RowRange, ...]]:
    share: list[RowRange] = []
    room = size
    for group in groups:
        start = group.start
        while start < group.stop:
            left = group.stop - start
            # A small rest of a row group is not cut off.
            take = left if left <= room + _LEAST // 2 else room
            share.append(
                group._replace(
                    start=start, stop=start + take, first=group.first + start - group.start
                )
            )
            start += take
            room -= take
            if room <= 0:
                yield tuple(share)
                share, room = [], size
    if share:
        yield tuple(share)


# -- reading, in workers ---------------------------------------------------------------------------


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
