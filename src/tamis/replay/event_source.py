"""Events as tasks read them: a source in shares, a share in chunks of rows.

Workers read events themselves; a task only gets the source, which is small, and the number of its
share. A new source is one file with a class like `ParquetEvents` or `LogEvents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.lines.event_columns import column_at, schema_encoder
from tamis.encode.lines.json_lines import JSON, LineReader

Int64s = NDArray[np.int64]
READ = 1 << 16  # rows that are read at once
_SAMPLE = 4096  # events that stand for all


class RowLayout(NamedTuple):
    """Where the rows of a chunk have their attributes."""

    # By attribute: its column, or field of a struct. None: each column is an attribute.
    attributes: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    document: str | None = None  # the schema of the rows, which may be lines of JSON
    columns: tuple[str, ...] = ()  # of a file: those that are read

    def events(self, table: pa.Table) -> pa.Table:
        """The attributes of all rows, as they are stored."""
        if self.attributes is None:
            return table
        return pa.table({name: column_at(table, path) for name, path in self.attributes})


class EventChunk(NamedTuple):
    """Some rows with their numbers."""

    numbers: Int64s
    table: pa.Table  # as it is stored
    layout: RowLayout
    moments: Int64s | None = None  # when each row was appended to its log

    def slice(self, at: int, most: int) -> EventChunk:
        rows = slice(at, at + most)
        moments = None if self.moments is None else self.moments[rows]
        return EventChunk(self.numbers[rows], self.table.slice(at, most), self.layout, moments)

    @property
    def lines(self) -> pa.ChunkedArray | None:
        """The rows, if they are lines of JSON."""
        lined = self.layout.document is not None and self.table.column_names == [JSON]
        return self.table[JSON] if lined else None

    def readable(self) -> pa.Table:
        """All rows with a column for each attribute."""
        if self.lines is None or self.layout.document is None:
            return self.table
        return LineReader(schema_encoder(self.layout.document)).parse(self.lines).events


class EventSource(Protocol):
    """Events in shares, which workers read. It travels to them, so it can be pickled."""

    @property
    def shares(self) -> Sequence[Any]:
        """What tasks read, one share each."""
        ...

    def rows(self, share: int) -> int:
        """How many rows a share has."""
        ...

    def chunks(self, share: int) -> Iterator[EventChunk]:
        """The rows of a share, in order."""
        ...


def event_sample(source: EventSource, attributes: Iterable[str]) -> pa.Table:
    """Attributes of some events of the first, the middle and the last share."""
    shares = len(source.shares)
    names, tables = list(attributes), []
    for share in sorted({0, shares // 2, shares - 1} if shares else set()):
        chunk = next(source.chunks(share), None)
        if chunk is not None:
            some = chunk.slice(0, _SAMPLE // 3)
            read = some.readable()
            # By name: one chunk may have a struct where another has columns with dots.
            found = {name: column_at(read, name.split(".")) for name in names}
            tables.append(
                pa.table({name: each for name, each in found.items() if each is not None})
            )
    try:
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    except pa.ArrowException:  # one has a list where another has single values
        return max(tables, key=lambda table: table.num_rows)
