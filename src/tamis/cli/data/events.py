"""Files of events, read some rows at a time. The suffix of a file names its format.

Events are numbered from 0 in the order of the file. A row that cannot be an event does not end the
file: it is set aside with its place and the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.cli.data.cells import CellReader, dynamic_value
from tamis.cli.data.delimited import Record, field_count, open_records
from tamis.cli.data.formats import (
    DELIMITERS,
    JSON,
    PARQUET,
    TABLES,
    check_arrow,
    input_files,
    is_arrow_file,
    reading,
)
from tamis.encode.json_events import has_dynamic
from tamis.encode.lines.json_lines import JSON as LINE
from tamis.engine import Engine
from tamis.errors import TamisError, suggestion
from tamis.model.dynamic import Dynamic
from tamis.model.elements.structs import Structs
from tamis.model.schema import Schema
from tamis.replay.event_source import READ, EventChunk, Int64s, RowLayout
from tamis.replay.pipeline import BatchPace, ReadEvents, read_events

FORMATS = (*JSON, *DELIMITERS, *TABLES)
STDIN = Path("-")
_BLOCK = 1 << 22  # bytes that are read at once
_LONGEST = 1 << 26  # bytes of a line
_RECORDS = 1 << 14  # rows of CSV that are read at once
_MARK = b"\xef\xbb\xbf"  # a byte order mark, as some editors write it


class BadEvent(NamedTuple):
    """A row that is not an event."""

    number: int
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class _RowBlock(NamedTuple):
    """Some rows: a table, and the place of each row in the file."""

    table: pa.Table
    places: Int64s | None  # lines; None: the number of the row says it
    rows: Int64s  # of the file, from 0
    wrong: list[tuple[int, int, str]]  # rows that were set aside: number, line, reason
    read: float  # share of the file that was read
    lined: bool = False  # whether rows are lines of JSON


class EventFiles:
    """The events of a file, of the files in a folder, or of standard input.

    Args:
        path: a file, a folder, or `-` for lines of JSON on standard input.
        schema: says how the cells of CSV are read.
        absent: cells of CSV that are absent, as empty ones are.
    """

    def __init__(self, path: Path, schema: Schema, absent: Iterable[str] = ()) -> None:
        self.path, self._schema = path, schema
        self.files = [path] if path == STDIN else input_files(path, FORMATS)
        self._cells = CellReader(schema, absent)
        self._as_json = has_dynamic(schema) or bool(schema.lists)
        self._document = json.dumps(schema.to_dict())
        self._file, self._first = self.files[0], 0  # of the block that is read
        self._block: _RowBlock | None = None
        self._aside: list[BadEvent] = []
        self.read = 0.0  # share of all files that was read
        self.columns: list[str] = []  # of the files so far, in tables

    def chunks(self) -> Iterator[EventChunk]:
        """All rows, in order."""
        number = 0
        for at, file in enumerate(self.files):
            last = number
            with reading(file):
                for block in self._blocks(file):
                    self._file, self._first, self._block = file, number, block
                    self.read = (at + block.read) / len(self.files)
                    after = [*block.rows[-1:].tolist(), *(row for row, _, _ in block.wrong)]
                    last = number + max(after, default=-1) + 1
                    self._aside += [
                        BadEvent(number + row, self._line(line), why)
                        for row, line, why in block.wrong
                    ]
                    if not block.lined:
                        names = block.table.column_names
                        self.columns += [name for name in names if name not in self.columns]
                    layout = RowLayout(document=self._document if block.lined else None)
                    yield EventChunk(number + block.rows, block.table, layout)
            number = last

    def bad(self, events: ReadEvents | None = None) -> list[BadEvent]:
        """The bad rows that were not given yet: those set aside, and the invalid `events`."""
        found, self._aside = self._aside, []
        if events is not None:
            numbers = events.chunk.numbers
            found += [
                BadEvent(int(numbers[row]), self.place(int(numbers[row])), reason)
                for row, reason in events.valid.refused
            ]
        return sorted(found)

    def place(self, number: int) -> str:
        """Where an event of the last block is: its line, or its number in the file."""
        block = self._block
        assert block is not None
        row = number - self._first
        if block.places is None:
            return f"{self._file}, event {row:,}"
        return self._line(int(block.places[np.searchsorted(block.rows, row)]))

    def _line(self, line: int) -> str:
        return f"{_name(self._file)}, line {line:,}"

    def _blocks(self, file: Path) -> Iterator[_RowBlock]:
        suffix = file.suffix.lower()
        if file == STDIN:
            return _line_blocks(file, sys.stdin.buffer)
        if suffix == PARQUET:
            return _parquet_blocks(file)
        if suffix in TABLES:
            return _arrow_blocks(file)
        if suffix in DELIMITERS:
            return self._delimited_blocks(file)
        return _json_blocks(file)

    # -- CSV and TSV -------------------------------------------------------------------------------

    def _delimited_blocks(self, path: Path) -> Iterator[_RowBlock]:
        size = max(1, path.stat().st_size)
        with open_records(path) as records:
            names = self._header(path, next(records.rows, None))
            first = 0
            while block := list(islice(records.rows, _RECORDS)):
                yield self._typed(names, block, first, min(1.0, records.read() / size))
                first += len(block)

    def _header(self, path: Path, record: Record | None) -> list[str]:
        if record is None:
            raise TamisError(f"{path}: is empty; expected a first line with the names of columns")
        names = [field.strip() for field in record.fields]
        if record.reason is not None:
            raise TamisError(f"{path}, line {record.line}: {record.reason}")
        for name in names:
            if not name or names.count(name) > 1:
                what = f"two columns are named {name!r}" if name else "a column has no name"
                raise TamisError(f"{path}, line {record.line}: {what}")
        other = [
            mark for mark in ";\t|" if mark in names[0] and mark != DELIMITERS[path.suffix.lower()]
        ]
        if len(names) == 1 and other:
            raise TamisError(
                f"{path}, line {record.line}: the only column is {names[0]!r}; {path.suffix} has "
                f"{DELIMITERS[path.suffix.lower()]!r} between columns, not {other[0]!r}"
            )
        if not self._schema.is_open and not set(names) & set(self._schema.attributes):
            hint = suggestion(names[0], self._schema.attributes)
            raise TamisError(
                f"{path}, line {record.line}: expected the names of attributes, got "
                f"{', '.join(names[:12])}{hint}"
            )
        return names

    def _typed(self, names: list[str], records: list[Record], first: int, read: float) -> _RowBlock:
        """Records as a table, without those that are wrong."""
        wrong: dict[int, str] = {}
        for at, record in enumerate(records):
            if record.reason is not None:
                wrong[at] = record.reason
            elif len(record.fields) != len(names):
                wrong[at] = field_count(record.fields, names)
        whole = [at for at in range(len(records)) if at not in wrong]
        columns = list(zip(*(records[at].fields for at in whole), strict=True)) or [()] * len(names)
        typed: dict[str, pa.Array] = {}
        for name, cells in zip(names, columns, strict=True):
            typed[name], refused = self._cells.column(name, cells)
            for row, why in refused.items():
                wrong.setdefault(whole[row], f"{name!r}: {why}")
        table = pa.table(typed)
        if len(wrong) + len(whole) > len(records):  # some cells were refused
            table = table.filter(pa.array([at not in wrong for at in whole]))
        kept = np.array([at for at in whole if at not in wrong], np.int64)
        lines = np.array([record.line for record in records], np.int64)
        aside = [(first + at, int(lines[at]), why) for at, why in sorted(wrong.items())]
        if self._as_json:  # no column of text holds values of several kinds, or structs
            table = pa.table({LINE: pa.array(self._json(table), pa.binary())})
        return _RowBlock(table, lines[kept], first + kept, aside, read, self._as_json)

    def _json(self, table: pa.Table) -> list[bytes]:
        """Rows as lines of JSON, without absent cells: null is a value of a dynamic attribute."""
        rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
        for name, column in zip(table.column_names, table.columns, strict=True):
            domain = self._schema.attributes.get(name)
            dynamic = isinstance(domain, Dynamic | Structs) or (
                domain is None and self._schema.is_open
            )
            for row, cell in zip(rows, column.to_pylist(), strict=True):
                if cell is not None:
                    row[name] = dynamic_value(cell) if dynamic else cell
        return [json.dumps(row, default=str).encode() for row in rows]


def _name(file: Path) -> str:
    return "standard input" if file == STDIN else str(file)


# -- lines of JSON --------------------------------------------------------------------------------


def _json_blocks(path: Path) -> Iterator[_RowBlock]:
    """Lines of JSON; a .json file may be one list of objects, or one object, as well."""
    with path.open("rb") as file:
        if path.suffix.lower() == ".json" and not _is_line(file.readline(_LONGEST)):
            yield from _document_blocks(path)
            return
        file.seek(0)
        yield from _line_blocks(path, file)


def _is_line(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.removeprefix(_MARK)), dict)
    except (ValueError, RecursionError):
        return False


def _document_blocks(path: Path) -> Iterator[_RowBlock]:
    try:
        found = json.loads(path.read_bytes().removeprefix(_MARK))
    except (ValueError, RecursionError) as why:
        raise TamisError(f"{path}: is not JSON that can be read: {why}") from None
    events = found if isinstance(found, list) else [found]
    lines = [json.dumps(each).encode() for each in events]
    numbers = np.arange(len(lines), dtype=np.int64)
    table = pa.table({LINE: pa.array(lines, pa.binary())})
    yield _RowBlock(table, None, numbers, [], 1.0, lined=True)


def _line_blocks(path: Path, file: IO[bytes]) -> Iterator[_RowBlock]:
    size = 0 if path == STDIN else path.stat().st_size
    row = line = taken = 0
    rest: list[bytes] = []  # of a line that goes on
    while True:
        data = file.read1(_BLOCK)  # type: ignore[attr-defined]  # what is there, without waiting
        if not taken:
            data = data.removeprefix(_MARK)
        taken += len(data)
        rest.append(data)
        if data and b"\n" not in data:
            if sum(map(len, rest)) > _LONGEST:
                raise TamisError(f"{_name(path)}, line {line + 1:,}: is longer than 64 MB")
            continue
        texts = b"".join(rest).split(b"\n")
        rest = [texts.pop()] if data else []
        places = [at for at, text in enumerate(texts) if text and not text.isspace()]
        if places:
            table = pa.table({LINE: pa.array([texts[at] for at in places], pa.binary())})
            rows = np.arange(row, row + len(places), dtype=np.int64)
            lines = line + 1 + np.array(places, np.int64)
            read = min(1.0, taken / size) if size else 0.0
            yield _RowBlock(table, lines, rows, [], read, lined=True)
        row, line = row + len(places), line + len(texts)
        if not data:
            return


# -- tables ---------------------------------------------------------------------------------------


def _parquet_blocks(path: Path) -> Iterator[_RowBlock]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        yield from _table_blocks(path, file.iter_batches(READ), file.metadata.num_rows)


def _arrow_blocks(path: Path) -> Iterator[_RowBlock]:
    with pa.memory_map(str(path)) as source:
        if is_arrow_file(path):
            file = pa.ipc.open_file(source)
            batches: Any = (file.get_batch(at) for at in range(file.num_record_batches))
        else:
            batches = pa.ipc.open_stream(source)
        yield from _table_blocks(path, batches, 0)


def _table_blocks(path: Path, batches: Iterable[pa.RecordBatch], size: int) -> Iterator[_RowBlock]:
    row = 0
    for batch in batches:
        check_arrow(path, batch)
        names = batch.schema.names
        for name in names:
            if names.count(name) > 1:
                raise TamisError(f"{path}: two columns are named {name!r}")
        rows = np.arange(row, row + batch.num_rows, dtype=np.int64)
        row += batch.num_rows
        read = row / size if size else 0.0
        yield _RowBlock(pa.Table.from_batches([batch]), None, rows, [], read)


def check_events(path: Path) -> None:
    """Refuse a path that has no files of events, before other work is done."""
    if path != STDIN:
        input_files(path, FORMATS)


def event_of(events: ReadEvents, at: int) -> Any:
    """A valid event as it came."""
    row = int(events.valid.rows[at])
    lines = events.chunk.lines
    if lines is not None:
        return json.loads(lines[row].as_py())
    return events.chunk.table.slice(row, 1).to_pylist()[0]


def all_events(path: Path, schema: Schema) -> pa.Table:
    """All events of files as one table; the first bad row is refused."""
    source = EventFiles(path, schema)
    tables = []
    for events in read_events(source.chunks(), Engine(schema).encoder, BatchPace(READ, READ)):
        for bad in source.bad(events):
            raise TamisError(str(bad))
        tables.append(events.valid.table)
    for bad in source.bad():
        raise TamisError(str(bad))
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
