"""Subscriptions and events from files. The suffix of a file names its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis import Schema
from tamis.encode.arrow_checks import check_table
from tamis.errors import TamisError
from tamis.model.domain import Text
from tamis.model.named_domains import Enumerated, Hierarchy

_ARROW = (".arrow", ".feather", ".ipc")
_JSON = (".json", ".jsonl", ".ndjson")
_FORMATS = (".parquet", *_ARROW, ".csv", *_JSON)
_CONDITION_FORMATS = (*_FORMATS, ".txt")


def read_subscriptions(path: Path) -> pa.Table:
    """A table of `id` and `condition`, or `id` and `predicates`."""
    found = _read(path, {"condition": pa.string()})
    if isinstance(found, pa.Table):
        return found
    try:
        return pa.Table.from_pylist(found)
    except (pa.ArrowException, TypeError, AttributeError, ValueError, OverflowError) as why:
        raise TamisError(f"{path}: the lines have different fields: {why}") from None


def read_conditions(path: Path) -> pa.Table:
    """A table of conditions from a file, a folder of files, or .txt with one on each line.

    Conditions without ids are numbered from 1.
    """
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix.lower() in _CONDITION_FORMATS)
        if not files:
            raise TamisError(
                f"{path}: there are no files with the suffix {' '.join(_CONDITION_FORMATS)}"
            )
    else:
        files = [path]
    tables = [_texts(each) if each.suffix.lower() == ".txt" else read_subscriptions(each)
              for each in files]  # fmt: skip
    for each, table in zip(files, tables, strict=True):
        if not {"condition", "predicates"} & set(table.column_names):
            names = ", ".join(table.column_names)
            raise TamisError(f"{each}: expected the columns id and condition, got {names}")
    try:
        found = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as why:
        raise TamisError(f"{path}: the files have different columns: {why}") from None
    if "id" not in found.column_names:
        found = found.add_column(0, "id", pa.array(range(1, found.num_rows + 1), pa.int64()))
    return found


def _texts(path: Path) -> pa.Table:
    """The conditions of a text file, identified by their lines. Blank lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as why:
        raise TamisError(f"{path}: is not UTF-8 text: {why}") from None
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return pa.table(
        {
            "id": pa.array([number for number, _ in numbered], pa.int64()),
            "condition": pa.array([line for _, line in numbered], pa.string()),
        }
    )


def read_events(path: Path, schema: Schema) -> pa.Table | list[Any]:
    """A table with a column for each attribute, or a list of objects: as an engine takes them."""
    # Attributes that are text in the schema stay text, even if a file has only digits.
    texts = {
        name: pa.string()
        for name, domain in schema.attributes.items()
        if isinstance(domain, Text | Enumerated | Hierarchy)
    }
    return _read(path, texts)


def _read(path: Path, texts: dict[str, pa.DataType]) -> pa.Table | list[Any]:
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise TamisError(f"{path}: the format is unknown; expected one of {' '.join(_FORMATS)}")
    path.open("rb").close()  # Arrow would not name a missing file
    try:
        if suffix in _JSON:
            return _lines(path)
        table = _table(path, suffix, texts)
        _ = table.column_names  # which need not be text
        return table
    except (pa.ArrowException, UnicodeDecodeError, OSError) as why:  # Arrow raises OSError too
        raise TamisError(f"{path}: is not valid {suffix[1:]}: {why}") from None


def _table(path: Path, suffix: str, texts: dict[str, pa.DataType]) -> pa.Table:
    if suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    if suffix == ".csv":
        from pyarrow import csv

        # An empty field is an attribute that the event does not bind.
        options = csv.ConvertOptions(column_types=texts, strings_can_be_null=True)
        return csv.read_csv(path, convert_options=options)
    with path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"  # the mark of a file; a stream has none
    with pa.OSFile(str(path)) as source:
        table = (pa.ipc.open_file if whole else pa.ipc.open_stream)(source).read_all()
    try:
        check_table(table, TamisError)
    except TamisError as why:
        raise TamisError(f"{path}: {why}") from None
    return table


def _lines(path: Path) -> list[Any]:
    """One JSON object a line, or one list of them."""
    text = path.read_text(encoding="utf-8")
    try:
        if text.lstrip().startswith("["):
            found: list[Any] = json.loads(text)
            return found
    except (ValueError, RecursionError) as why:
        raise TamisError(f"{path}: {why}") from None
    objects: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                objects.append(json.loads(line))
            except (ValueError, RecursionError) as why:
                raise TamisError(f"{path}, line {number}: {why}") from None
    return objects
