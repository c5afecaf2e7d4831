"""The parts of a saved engine: arrays, facts, and Arrow tables in mapped IPC files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.arrow import one_chunk
from tamis.errors import SavedIndexError
from tamis.files.array_folder import Bytes, WriteBlob
from tamis.files.arrays import Arrays
from tamis.files.checksum import SectionWriter
from tamis.files.saved_checks import require

_SUFFIX = ".arrow"


class SavedPart(NamedTuple):
    """What one part of an engine saves and restores: arrays, facts and columns."""

    arrays: dict[str, NDArray[Any]] | Arrays
    facts: dict[str, Any]
    columns: dict[str, dict[str, pa.Array]]  # tables by name, each of columns of one length


def blobs(parts: dict[str, SavedPart]) -> dict[str, WriteBlob]:
    """The tables of parts as files."""
    return {
        f"{name}.{table}{_SUFFIX}": _writer(columns)
        for name, saved in parts.items()
        for table, columns in saved.columns.items()
    }


def columns(
    prefix: str, found: dict[str, Bytes], *, verify: bool
) -> dict[str, dict[str, pa.Array]]:
    """The tables of one part, by name; their columns stay in the mapped files."""
    stem = f"{prefix}."
    return {
        name.removeprefix(stem).removesuffix(_SUFFIX): _read(name, blob, verify)
        for name, blob in found.items()
        if name.startswith(stem)
    }


def _writer(columns: dict[str, pa.Array]) -> WriteBlob:
    table = pa.table(columns)

    def write(file: SectionWriter) -> None:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    return write


def texts(saved: SavedPart, table: str, name: str) -> pa.Array:
    """A column of text."""
    column = saved.columns[table][name]
    require(column.type == pa.large_string(), f"the column {table}.{name} holds text")
    return column


def _read(name: str, blob: Bytes, verify: bool) -> dict[str, pa.Array]:
    try:
        table = pa.ipc.open_file(pa.py_buffer(blob)).read_all()
        table.validate(full=verify)
    except (pa.ArrowException, OSError) as why:
        raise SavedIndexError(f"the blob {name!r} is not an Arrow file: {why}") from None
    return {
        each: one_chunk(column)
        for each, column in zip(table.column_names, table.columns, strict=True)
    }


class MappedTexts:
    """Texts by slot that stay in their file; strings are created on demand."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __getitem__(self, slots: NDArray[Any]) -> NDArray[np.object_]:
        return self.column.take(pa.array(slots)).to_numpy(zero_copy_only=False)

    def all(self) -> NDArray[np.object_]:
        """All texts; None for a slot without text."""
        return self.column.to_numpy(zero_copy_only=False)
