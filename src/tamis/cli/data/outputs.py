"""Tables that commands write, some rows at a time: JSON lines, CSV or parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
from pyarrow import csv, parquet, types

from tamis.cli.data.formats import JSON, PARQUET, check_suffix
from tamis.cli.terminal.outcomes import json_text
from tamis.errors import TamisError
from tamis.files.atomic import atomic_file, remove_leftovers
from tamis.files.os_errors import os_errors_as

OUTPUTS = (".jsonl", ".ndjson", ".json", ".csv", PARQUET)
_ROWS = 1 << 17  # that are written at once
Write = Callable[[pa.Table], None]


def check_output(out: Path | None) -> None:
    """Refuse a path that cannot be written, before any work is done."""
    if out is None:
        return
    check_suffix(out, OUTPUTS)
    if out.is_dir():
        raise TamisError(f"{out}: is a folder; name a file")
    if not out.parent.is_dir():
        raise TamisError(f"{out.parent}: there is no such folder")


@contextmanager
def table_output(out: Path) -> Iterator[Write]:
    """Write tables to a file, which appears when the block ends; after an error, nothing does.

    All tables have the same columns. The first decides their types.
    """
    with os_errors_as(TamisError, f"{out}: cannot be written"):
        remove_leftovers(out)
        with atomic_file(out) as file, _writer(out, file) as write:
            yield write


@contextmanager
def _writer(out: Path, file: IO[bytes]) -> Iterator[Write]:
    suffix = out.suffix.lower()
    if suffix in JSON:
        yield lambda table: write_lines(file, table)
        return
    made: csv.CSVWriter | parquet.ParquetWriter | None = None
    known: pa.Schema | None = None  # of the first table
    waiting: list[pa.Table] = []

    def flush() -> None:
        nonlocal made
        if made is None:
            assert known is not None
            kind = parquet.ParquetWriter if suffix == PARQUET else csv.CSVWriter
            made = kind(file, known)
        made.write_table(pa.concat_tables(waiting))
        waiting.clear()

    def write(table: pa.Table) -> None:
        nonlocal known
        flat = table if suffix == PARQUET else _flat(table)
        known = flat.schema if known is None else known
        waiting.append(flat.cast(known))
        if sum(each.num_rows for each in waiting) >= _ROWS:
            flush()

    try:
        yield write
        if waiting:
            flush()
    finally:
        if made is not None:
            made.close()


def _flat(table: pa.Table) -> pa.Table:
    """A table for CSV: lists, structs and bytes become JSON in text."""
    columns = [
        pa.array([None if each is None else json_text(each) for each in column.to_pylist()])
        if types.is_nested(column.type) or types.is_binary(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def write_lines(file: IO[bytes], table: pa.Table) -> None:
    """Write a table as lines of JSON. Absent values are left out."""
    for row in table.to_pylist():
        line = json_text({name: value for name, value in row.items() if value is not None})
        file.write(line.encode() + b"\n")


def stdout_lines(table: pa.Table) -> None:
    """Write a table to standard output as lines of JSON."""
    out = sys.stdout.buffer
    write_lines(out, table)
    out.flush()
