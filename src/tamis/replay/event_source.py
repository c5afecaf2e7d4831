"""Events as tasks read them, a piece at a time: rows of parquet files, or those of a log.

Workers read them themselves. All that is sent to a worker is which rows are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from tamis.encode.batch import EventBatch
from tamis.encode.validation import Refused, validate
from tamis.errors import EventError, SparkError
from tamis.replay import json_lines as lines
from tamis.replay.event_columns import column_at
from tamis.replay.json_lines import JSON
from tamis.replay.row_groups import Rows
from tamis.store.log import Log

if TYPE_CHECKING:
    from tamis.engine import Engine

Int64s = NDArray[np.int64]
_READ = 1 << 16  # rows that are read at once
_PAIRS = 1 << 21  # about as many pairs as are wanted of the events that are matched at once
_FEWEST = 1 << 10  # events that are matched at once
_SAMPLE = 4096  # events that stand for all


class Parted(NamedTuple):
    """Rows of a piece, parted: those that may be events, and those that are none for sure."""

    events: pa.Table  # a column for each attribute
    rows: Int64s | None  # which rows of the piece these are; None: all
    refused: Sequence[Refused]  # the others
    table: pa.Table  # of all rows of the piece, what there is to read


class Layout(NamedTuple):
    """Where files with the same columns have what is needed."""

    attributes: tuple[tuple[str, tuple[str, ...]], ...]  # and the way to each
    extras: tuple[str, ...]  # columns that are handed on
    beside: tuple[str, ...] = ()  # what is read besides: a column, or a field in one

    @property
    def names(self) -> list[str]:
        """What is to be read, each once."""
        every = [".".join(path) for _, path in self.attributes]
        return list(dict.fromkeys([*every, *self.extras, *self.beside]))

    def events(self, table: pa.Table) -> pa.Table:
        """The attributes of rows that were read."""
        return pa.table([column_at(table, path) for _, path in self.attributes],
                        names=[name for name, _ in self.attributes])  # fmt: skip

    def parted(self, table: pa.Table) -> Parted:
        """All of the rows may be events."""
        return Parted(self.events(table), None, (), table)

    def readable(self, table: pa.Table) -> pa.Table:
        """The columns as they are."""
        return table

    def chosen(self, table: pa.Table) -> pa.Table:
        """The columns that are handed on."""
        return table.select(self.extras)


class Logged(NamedTuple):
    """Rows of a log: columns as they are, or text that is parsed."""

    document: str  # of the schema
    extras: tuple[str, ...] | None  # attributes that are handed on; None: all

    def parted(self, table: pa.Table) -> Parted:
        """The rows whose text can be read as an event, or all."""
        if table.column_names != [JSON]:
            return Parted(table, None, (), table)
        parsed = lines.reader(self.document).parse(table[JSON])
        died = np.asarray(parsed.dead.is_valid())
        refused = [Refused(row, parsed.dead[row].as_py()) for row in np.flatnonzero(died).tolist()]
        good = parsed.events.filter(pa.array(~died)) if refused else parsed.events
        return Parted(good, np.flatnonzero(~died), refused, parsed.events)

    def readable(self, table: pa.Table) -> pa.Table:
        """The columns as they are, or what the text says."""
        return self.parted(table).table

    def chosen(self, table: pa.Table) -> pa.Table:
        """The attributes that are handed on, as far as there are any."""
        if self.extras is None:
            return table
        found = {name: column_at(table, name.split(".")) for name in self.extras}
        return pa.table({name: column for name, column in found.items() if column is not None})


class Piece(NamedTuple):
    """Some events, with their numbers."""

    numbers: Int64s
    table: pa.Table
    layout: Layout | Logged

    def slice(self, at: int, most: int) -> Piece:
        """Some of them."""
        return Piece(self.numbers[at : at + most], self.table.slice(at, most), self.layout)


class FileEvents(NamedTuple):
    """Rows of parquet files, dealt into shares; each is numbered over all files."""

    files: tuple[str, ...]
    layouts: tuple[Layout, ...]
    layout_of: tuple[int, ...]  # by file
    shares: tuple[tuple[Rows, ...], ...]

    def rows(self, share: int) -> int:
        """How many rows a share has."""
        return sum(each.stop - each.start for each in self.shares[share])

    def pieces(self, share: int) -> Iterator[Piece]:
        """The rows of a share, in order."""
        for rows in self.shares[share]:
            layout = self.layouts[self.layout_of[rows.file]]
            for at, batch in _read(self.files[rows.file], rows, layout.names):
                first = rows.first + at - rows.start
                numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
                yield Piece(numbers, pa.Table.from_batches([batch]), layout)


class LogEvents(NamedTuple):
    """Events of a log, dealt into shares; their numbers are those of its sequence."""

    log: str
    layout: Logged
    shares: tuple[tuple[int, int], ...]  # from which number on, and before which

    def rows(self, share: int) -> int:
        """How many events a share has."""
        return Log.open(self.log).counts(*self.shares[share])[0]

    def pieces(self, share: int) -> Iterator[Piece]:
        """The events of a share, in order. Those that were appended one by one go together."""
        waiting: list[pa.Table] = []
        numbers: list[Int64s] = []
        for first, table in Log.open(self.log).events(*self.shares[share]):
            plain = table.replace_schema_metadata(None)
            full = sum(map(len, numbers)) + table.num_rows > _READ
            if waiting and (full or not waiting[0].schema.equals(plain.schema)):
                yield Piece(np.concatenate(numbers), pa.concat_tables(waiting), self.layout)
                waiting, numbers = [], []
            waiting.append(plain)
            numbers.append(np.arange(first, first + table.num_rows, dtype=np.int64))
        if waiting:
            yield Piece(np.concatenate(numbers), pa.concat_tables(waiting), self.layout)


Events = FileEvents | LogEvents


class Checked(NamedTuple):
    """Events in codes, which rows they are (None: all), and why the others are none."""

    batch: EventBatch
    rows: Int64s | None
    refused: Sequence[Refused]


def checked(engine: Engine, events: pa.Table) -> Checked:
    """Rows that may be events, by the rules of the schema."""
    try:
        return Checked(engine.encode(events), None, ())
    except EventError:
        validated = validate(engine.encoder, events)
        return Checked(engine.encode(validated.good), validated.rows, validated.refused)


class Pace:
    """How many events are matched at once: as many as give a good number of pairs."""

    def __init__(self) -> None:
        self._step = _FEWEST

    def over(self, piece: Piece, match: Callable[[Piece], int]) -> None:
        """Have a piece matched, some of its events at a time; `match` tells how many pairs."""
        at = 0
        while at < piece.table.num_rows:
            some = piece.slice(at, self._step)
            each = max(match(some) / some.table.num_rows, 1e-9)
            at += some.table.num_rows
            fitting = int(_PAIRS / each) // _FEWEST * _FEWEST
            self._step = min(max(fitting, _FEWEST), 4 * self._step, _READ)


def sampled(events: Events, attributes: Iterable[str]) -> pa.Table:
    """Some events of the first, the middle and the last share: these attributes of them."""
    shares = len(events.shares)
    tables = []
    for share in sorted({0, shares // 2, shares - 1} if shares else set()):
        for piece in events.pieces(share):
            some = piece.slice(0, _SAMPLE // 3)
            read = some.layout.parted(some.table).events
            # By name, as one piece may have a struct where another has columns with dots.
            found = {name: column_at(read, name.split(".")) for name in attributes}
            tables.append(
                pa.table({name: each for name, each in found.items() if each is not None})
            )
            break
    try:
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    except pa.ArrowException:  # one has a list where another has single values
        return max(tables, key=lambda table: table.num_rows)


def _read(file: str, rows: Rows, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of a row group in batches, each with the place of its first row in the row group."""
    try:
        with parquet.ParquetFile(file) as source:
            at = 0
            groups = source.iter_batches(
                _READ, row_groups=[rows.group], columns=list(names), use_threads=False
            )
            for batch in groups:
                begin, end = max(at, rows.start), min(at + batch.num_rows, rows.stop)
                if begin < end:
                    yield begin, batch.slice(begin - at, end - begin)
                at += batch.num_rows
                if at >= rows.stop:
                    return
    except FileNotFoundError:
        raise SparkError(
            f"{file}: a worker cannot find it; on a cluster, events have to be in a folder that "
            "all machines share"
        ) from None
    except (OSError, pa.ArrowException) as why:  # a page that is damaged has no name in it
        said = why.strerror if isinstance(why, OSError) else None
        raise SparkError(f"{file}: cannot be read: {said or why}") from None
