"""The schemas of a log: the first one in its document, and those of its schema records.

A record holds a whole schema. It applies to the rows after it, up to the next record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import SchemaError
from tamis.model.schema import Schema
from tamis.store.base import Base
from tamis.store.earlier.format_one import FormatOneFiles
from tamis.store.pack import SCHEMAS, encode_table
from tamis.store.segment_files import SegmentFiles

FIRST = -1  # in place of a record's number: the schema in the document of the log


class SchemaRange(NamedTuple):
    """Sequence numbers, and the schema by which their rows are read."""

    start: int
    end: int
    schema: Schema


class SchemaRecords:
    """The schemas of a log by the numbers of their records."""

    def __init__(
        self,
        files: SegmentFiles | FormatOneFiles,
        base: Callable[[], Base | None],
        first: dict[str, Any],
    ) -> None:
        self._files, self._base, self._first = files, base, first
        self._known: dict[int, Schema] = {}

    def at(self, sequence: int | None) -> Schema:
        """The schema for reading the row with a number; None stands for the next row."""
        files = self._files
        if isinstance(files, FormatOneFiles):
            return self._schema(FIRST)
        if sequence is None or sequence >= files.end:
            return self._schema(files.head().schema)
        if sequence < files.begin:
            return next(each.schema for each in self.ranges(0, files.end) if sequence < each.end)
        return self._schema(files.sections(sequence, sequence + 1)[0].schema)

    def ranges(self, start: int, end: int) -> list[SchemaRange]:
        """The schemas of a range, each with its part of the range."""
        return [SchemaRange(low, high, self._schema(n)) for low, high, n in self._cut(start, end)]

    def _cut(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Parts of a range, each with the number of its record."""
        files, records = self._files, [FIRST]
        if isinstance(files, SegmentFiles) and start < end:
            kept, base = max(start, files.begin), self._base() if start < files.begin else None
            if base is None:
                records = [files.sections(kept, kept + 1)[0].schema]
            elif base.earlier is None:
                records = [base.schema]
            else:
                records += sorted({*base.earlier, base.schema} - {FIRST})
            if kept < end and files.sections(end - 1, end)[0].schema != records[-1]:
                for section in files.sections(kept, end):
                    if section.kind == SCHEMAS:
                        records += range(section.first, section.end)
        begins = [start, *(each + 1 for each in records[1:]), end]
        for number, (low, high) in zip(records, pairwise(begins), strict=True):
            if low < high:
                yield low, high, number

    def _schema(self, number: int) -> Schema:
        if number not in self._known:
            self._known[number] = Schema.from_dict(self.document(number))
        return self._known[number]

    def document(self, number: int) -> dict[str, Any]:
        """The document of a schema."""
        files = self._files
        if number == FIRST or isinstance(files, FormatOneFiles):
            return self._first
        base = self._base()
        if base is not None and number < base.begin:
            return (base.earlier or {}).get(number, base.document)
        for _, table in files.tables(SCHEMAS, number, number + 1):
            return dict(json.loads(table["schema"][0].as_py()))
        # The record is lost, and somebody chose to go on without it: the one before it holds.
        before = [each for each in files.sections(files.begin, number) if each.kind == SCHEMAS]
        if before:
            return self.document(before[-1].end - 1)
        return self._first if base is None else base.document

    def earlier(self, changes: pa.Table, begin: int, last: int) -> dict[int, dict[str, Any]] | None:
        """The schemas for reading changes before `begin`, other than the first and the last one."""
        base = self._base()
        if base is not None and base.earlier is None and base.schema != FIRST:
            return None
        numbers = np.asarray(changes["sequence"])
        return {
            number: self.document(number)
            for low, high, number in self._cut(0, begin)
            if number not in (FIRST, last) and ((low <= numbers) & (numbers < high)).any()
        }

    def check_new(self, schema: Schema) -> None:
        """Refuse a schema that has nothing new."""
        if schema.to_dict() == self.at(None).to_dict() | {"version": schema.version}:
            raise SchemaError("the log has this schema already; an extension has something new")

    def section(self, schema: Schema, last: int) -> tuple[int, pa.Buffer]:
        """A new record, after the record `last`: refuses a schema that does not extend that."""
        before = self._schema(last)
        schema.check_extends(before)
        document = schema.to_dict() | {"version": max(schema.version, before.version + 1)}
        return 1, encode_table(pa.table({"schema": [json.dumps(document, ensure_ascii=False)]}))
