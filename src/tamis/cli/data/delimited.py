"""Rows of CSV and TSV files, by the rules of CSV. A malformed row does not end the file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from tamis.cli.data.formats import DELIMITERS
from tamis.errors import counted

csv.field_size_limit(1 << 24)  # characters; a quote that is never closed does not take all memory
_MARKS = ";\t|,"  # between columns, in one format or another
_UNCLOSED = "a double quote is opened in this row and never closed"


class Record(NamedTuple):
    """The fields of a row, and the line at which it begins; or why it cannot be read."""

    line: int
    fields: list[str]
    reason: str | None = None


class OpenRecords(NamedTuple):
    """The rows of an open file, without blank ones."""

    rows: Iterator[Record]
    file: TextIO

    def read(self) -> int:
        """How many bytes were read."""
        return self.file.buffer.tell()


@contextmanager
def open_records(path: Path) -> Iterator[OpenRecords]:
    """Open a file for reading. A mark at its start, as of Excel, is dropped."""
    # Bytes that are not UTF-8 become surrogates, by which their rows are known.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield OpenRecords(_records(file, DELIMITERS[path.suffix.lower()]), file)


def _records(file: TextIO, delimiter: str) -> Iterator[Record]:
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as why:
            said = _UNCLOSED if "end of data" in str(why) else f"is not valid CSV: {why}"
            yield Record(line, [], said)
            continue
        whole = "".join(fields)
        if len(fields) <= 1 and not whole.strip():
            continue
        if whole.isascii() or is_encodable(whole):
            yield Record(line, fields)
        else:
            yield Record(line, fields, "is not UTF-8 text")


def is_encodable(text: str) -> bool:
    """Whether a text has no lone surrogates, which no encoding has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def field_count(fields: list[str], names: list[str]) -> str:
    """Why a row with another number of fields than there are columns is refused."""
    many = counted(len(fields), "field")
    other = next((mark for mark in _MARKS if mark in fields[0]), None) if len(fields) == 1 else None
    more = f"; {other!r} is not the separator of this format" if other else ""
    if len(fields) > len(names):
        more = "; put a field that contains the separator in double quotes"
    return f"has {many}, expected {len(names)}: {', '.join(names)}{more}"
