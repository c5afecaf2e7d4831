"""Subscriptions and events from files, as commands take them: the ending says the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis import Schema
from tamis.errors import TamisError
from tamis.model.domain import Text
from tamis.model.named import Enumerated, Hierarchy

_ARROW = (".arrow", ".feather", ".ipc")
_JSON = (".json", ".jsonl", ".ndjson")
_ENDINGS = (".parquet", *_ARROW, ".csv", *_JSON)


def read_subscriptions(path: Path) -> pa.Table:
    """A table of `id` and `condition`, or `id` and `predicates`."""
    found = _read(path, {"condition": pa.string()})
    if isinstance(found, pa.Table):
        return found
    try:
        return pa.Table.from_pylist(found)
    except (pa.ArrowException, TypeError, AttributeError) as why:
        raise TamisError(f"{path}: the lines are not alike: {why}") from None


def read_events(path: Path, schema: Schema) -> pa.Table | list[Any]:
    """A table with a column for each attribute, or a list of objects, as an engine takes them."""
    # What a schema calls text is text, even where a file has nothing but digits.
    texts = {
        name: pa.string()
        for name, domain in schema.attributes.items()
        if isinstance(domain, Text | Enumerated | Hierarchy)
    }
    return _read(path, texts)


def _read(path: Path, texts: dict[str, pa.DataType]) -> pa.Table | list[Any]:
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise TamisError(f"{path}: the ending says the format, and is one of {' '.join(_ENDINGS)}")
    path.open("rb").close()  # what Arrow says of a file that cannot be opened has no name in it
    try:
        return _lines(path) if ending in _JSON else _table(path, ending, texts)
    except (pa.ArrowException, UnicodeDecodeError) as why:
        raise TamisError(f"{path}: is not {ending[1:]} that can be read: {why}") from None


def _table(path: Path, ending: str, texts: dict[str, pa.DataType]) -> pa.Table:
    if ending == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    if ending == ".csv":
        from pyarrow import csv

        # A field with nothing in it is an attribute that the event does not bind.
        options = csv.ConvertOptions(column_types=texts, strings_can_be_null=True)
        return csv.read_csv(path, convert_options=options)
    with path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"  # a file has this mark, a stream has not
    with pa.OSFile(str(path)) as source:
        return (pa.ipc.open_file if whole else pa.ipc.open_stream)(source).read_all()


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
