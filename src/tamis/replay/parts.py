"""Parts: files of notifications and of dead letters.

A part is a parquet file. Its pages have checksums, and so has its footer, which parquet leaves
without one: before the footer there are a mark of eight bytes and the CRC-32 of the footer. Readers
of parquet go by the offsets in the footer, and never see them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tamis.errors import StoreError
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import make_folder, sync_folder

NOTIFICATIONS, DEAD = "notifications", "dead"
SEQUENCE, SUBSCRIPTION, REASON, RAW = "sequence", "subscription", "reason", "raw"
_ROW_GROUP = 1 << 20  # rows, about: smaller tables are written together
_BYTES = 1 << 26  # that wait to be written, at most
_MARK = b"TAMISCRC"  # a checksum of the footer follows, and the footer
_CHECKSUM, _END = 4, 8  # bytes; the end of a file is the length of its footer, and a magic word
_LONGEST = 1 << 20  # bytes of a footer, about


class PartWriter:
    """Writes a part, whose file is created with the first rows. Small tables go together.

    Columns of numbers and ids of subscriptions are never null, unless columns stay `as_is`.
    """

    def __init__(self, folder: Path, name: str, *, as_is: bool = False) -> None:
        self._folder, self._name, self._as_is, self.rows = folder, name, as_is, 0
        self._file: Any = None
        self._writer: parquet.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waits = self._bytes = 0

    def write(self, table: pa.Table) -> None:
        """Add rows, all tables with the same columns."""
        if not table.num_rows:
            return
        self._waiting.append(table if self._as_is else _required(table))
        self._waits += table.num_rows
        self._bytes += table.nbytes
        self.rows += table.num_rows
        if self._waits >= _ROW_GROUP or self._bytes >= _BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._waits:
            return
        table = pa.concat_tables(self._waiting)
        with self._refusing():
            if self._writer is None:
                make_folder(self._folder)
                self._file = (self._folder / self._name).open("x+b")
                ways = _writing(table.schema)
                self._writer = parquet.ParquetWriter(self._file, table.schema, **ways)
            self._writer.write_table(table, row_group_size=2 * _ROW_GROUP)
        self._waiting, self._waits, self._bytes = [], 0, 0

    def _refusing(self) -> AbstractContextManager[None]:
        """The refusal if it cannot be written, as on a full disk."""
        return os_errors_as(
            StoreError, f"{self._folder / self._name}: cannot be written", unchanged=False
        )

    def close(self) -> dict[str, Any]:
        """Sync the file, and give its folder, name and rows."""
        self._flush()
        assert self._writer is not None
        with self._refusing():
            self._writer.close()
            _put_checksum(self._file)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            sync_folder(self._folder)
        return {"folder": self._folder.name, "name": self._name, "rows": self.rows}

    def discard(self) -> None:
        if self._file is not None:
            with suppress(OSError, ValueError, pa.ArrowException):  # it may have failed before
                if self._writer is not None:
                    self._writer.close()
            with suppress(OSError):
                self._file.close()
            (self._folder / self._name).unlink(missing_ok=True)


def read_part(path: Path, **ways: Any) -> pa.Table:
    """The rows of a part, if they are those that were written."""
    with damage_named(path):
        check_footer(path)
        return parquet.read_table(path, page_checksum_verification=True, **ways)


def check_footer(path: Path) -> None:
    """Raise `ValueError` if the footer of a part is not the one that was written.

    Parts of earlier versions have no checksum, and are not checked.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        length = min(size, _footer_length(file) + _END + len(_MARK) + _CHECKSUM)
        file.seek(-length, os.SEEK_END)
        tail = file.read()
        if not tail.startswith(_MARK):  # an earlier part, or the length is damaged
            file.seek(-min(size, _LONGEST), os.SEEK_END)
            tail = file.read()
            tail = tail[max(0, tail.rfind(_MARK)) :]
            if tail.startswith(_MARK) and _is_right(tail):
                raise ValueError("the length of its footer is damaged")
        elif not _is_right(tail):
            raise ValueError("its footer does not have the checksum that was written")


def _put_checksum(file: Any) -> None:
    """Move the footer on, for its checksum."""
    file.seek(-_footer_length(file) - _END, os.SEEK_END)
    begin = file.tell()
    footer = file.read()
    file.seek(begin)
    file.write(_MARK + _checksum(footer) + footer)


def _footer_length(file: Any) -> int:
    """The length of the footer of an open file, as its end says."""
    file.seek(-_END, os.SEEK_END)
    return int.from_bytes(file.read(4), "little")


def _is_right(tail: bytes) -> bool:
    """Whether the end of a file, from the mark on, is as it was written, but for the length."""
    at = len(_MARK) + _CHECKSUM
    return tail[len(_MARK) : at] == _checksum(tail[at:])


def _checksum(footer: bytes) -> bytes:
    return zlib.crc32(footer[:-_END]).to_bytes(_CHECKSUM, "little")


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Refuse a part that is damaged. One that is missing is left to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError, AttributeError, pa.ArrowException) as why:  # by what is damaged
        raise StoreError(
            f"{path}: cannot be read: {why}; if it is damaged, remove it and start the service "
            "again, which finds its notifications once more"
        ) from None


def _writing(schema: pa.Schema) -> dict[str, Any]:
    """How columns are written: in a third of the usual time, to two thirds of the size.

    The number of an event repeats for each of its pairs, which compresses well as it is. Ids of
    subscriptions come in no order and are too many for a dictionary: byte streams, as the upper
    bytes are alike. Statistics of ids are useless.
    """
    ways: dict[str, str] = {}
    for field in schema:
        if pa.types.is_int64(field.type):
            ways[field.name] = "BYTE_STREAM_SPLIT" if field.name == SUBSCRIPTION else "PLAIN"
    leaves = _leaves(schema)
    return {
        "column_encoding": ways,
        "use_dictionary": [path for path in leaves if path not in ways],
        "write_statistics": [path for path in leaves if path != SUBSCRIPTION],
        "compression": "lz4",
        "write_page_checksum": True,
    }


def _leaves(schema: pa.Schema) -> list[str]:
    """Columns as parquet names them, such as `tags.list.element` for a list."""
    written = pa.BufferOutputStream()
    parquet.write_metadata(schema, written)
    facts = parquet.read_metadata(pa.BufferReader(written.getvalue()))
    return [facts.schema.column(at).path for at in range(facts.num_columns)]


def _required(table: pa.Table) -> pa.Table:
    """Numbers and ids of subscriptions are never null, so the file needs no levels for that."""
    fields = [
        pa.field(name, column.type, nullable=name not in (SEQUENCE, SUBSCRIPTION))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
