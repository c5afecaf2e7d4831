"""The rows of one file of subscriptions, each checked for its form alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.cli.data.delimited import field_count, is_encodable, open_records
from tamis.cli.data.formats import (
    DELIMITERS,
    JSON,
    PARQUET,
    TABLES,
    TEXT,
    check_arrow,
    is_arrow_file,
)
from tamis.encode.columns import is_text
from tamis.errors import TamisError
from tamis.language.dialects import NATIVE
from tamis.model.domain import INT_HIGH, INT_LOW, RefusalError, Text, show

FORMATS = (".csv", ".tsv", *JSON, *TABLES, TEXT)
ID, CONDITION, PREDICATES = "id", "condition", "predicates"
LANGUAGE = "language"
DETAILS = ("until", "owner", "name", LANGUAGE, "metadata", "sink")
"""Columns that an export of a log or a service may have as well."""
_PREDICATE = pa.struct(
    [
        ("attribute", pa.string()),
        ("comparator", pa.string()),
        ("value", pa.float64()),
        ("text", pa.string()),
    ]
)


class Place(NamedTuple):
    """Where a row is."""

    file: Path
    line: int
    word: str = "line"

    def __str__(self) -> str:
        return f"{self.file}, {self.word} {self.line:,}"


class RefusedSubscription(NamedTuple):
    """A row that was refused."""

    place: Place
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class _TextRow(NamedTuple):
    """A row of a file in text: its values by column, or why it is refused."""

    line: int
    number: int  # stands for the id, where there are no ids
    values: dict[str, Any]
    reason: str | None = None


class SubscriptionRows(NamedTuple):
    """The rows of one file."""

    ids: list[Any] | None  # None: the file has none
    rest: pa.Table
    places: list[Place]
    numbers: list[int]
    refused: list[RefusedSubscription]
    typed: bool  # whether 1 and "1" are different ids


def read_rows(path: Path) -> SubscriptionRows:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _table_part(path, _table(path, suffix))
    if suffix in DELIMITERS:
        return _text_part(path, _delimited_rows(path), typed=False)
    if suffix == TEXT:
        return _text_part(path, _line_rows(path), typed=False)
    return _text_part(path, _json_rows(path), typed=True)


# -- tables ---------------------------------------------------------------------------------------


def _table(path: Path, suffix: str) -> pa.Table:
    if suffix == PARQUET:
        from pyarrow import parquet

        return parquet.ParquetFile(path).read()
    with pa.OSFile(str(path)) as source:
        opened = pa.ipc.open_file if is_arrow_file(path) else pa.ipc.open_stream
        table = opened(source).read_all()
    check_arrow(path, table)
    return table


def _table_part(path: Path, table: pa.Table) -> SubscriptionRows:
    names = table.column_names
    _check_columns(path, names)
    main = CONDITION if CONDITION in names else PREDICATES
    column = table[main]
    if main == CONDITION and not is_text(column.type):
        raise TamisError(f"{path}: the column 'condition' is {column.type}, expected text")
    reasons: dict[int, str] = {}
    for row in _rows(pc.is_null(column)):
        reasons[row] = f"the {main} is null"
    if main == CONDITION:
        column = column.cast(pa.string())
        for row in _rows(pc.equal(pc.utf8_trim_whitespace(column), "")):
            reasons[row] = "the condition is empty"
    ids = None
    if ID in names:
        kind = table[ID].type
        if not (types.is_integer(kind) or is_text(kind)):
            raise TamisError(f"{path}: the column 'id' is {kind}, expected whole numbers or text")
        ids = table[ID].to_pylist()
        for row, id in enumerate(ids):
            if (why := _wrong_id(id)) is not None:
                reasons.setdefault(row, why)
    details = {name: table[name] for name in DETAILS if name in names}
    if LANGUAGE in details:
        languages = [_language(name) for name in details[LANGUAGE].to_pylist()]
        details[LANGUAGE] = pa.chunked_array([pa.array(languages, pa.string())])
    rest = pa.table({main: column, **details})
    places = [Place(path, row, "row") for row in range(1, table.num_rows + 1)]
    refused = [RefusedSubscription(places[row], why) for row, why in reasons.items()]
    kept = [row for row in range(table.num_rows) if row not in reasons]
    return SubscriptionRows(
        None if ids is None else [ids[row] for row in kept],
        rest if not reasons else rest.take(pa.array(kept, pa.int64())),
        places if not reasons else [places[row] for row in kept],
        [row + 1 for row in kept],
        refused,
        typed=True,
    )


def _language(name: str | None) -> str | None:
    """A language as a log has it: None is that of tamis."""
    return None if name in ("", NATIVE) else name


def _rows(marked: Any) -> list[int]:
    return [row for row, mark in enumerate(marked.to_pylist()) if mark]


def _check_columns(path: Path, names: Sequence[str]) -> None:
    """Refuse a table that does not say which column is the condition, and which is the id."""
    for name in {ID, CONDITION, PREDICATES, *DETAILS}:
        if list(names).count(name) > 1:
            raise TamisError(f"{path}: two columns are named {name!r}")
    both = {CONDITION, PREDICATES} <= set(names)
    if both or not {CONDITION, PREDICATES} & set(names):
        raise TamisError(f"{path}: expected the columns id and condition, got {', '.join(names)}")
    others = set(names) - {CONDITION, PREDICATES, *DETAILS}
    if others and ID not in names:
        raise TamisError(
            f"{path}: there is no column 'id', only {', '.join(names)}; name the column of ids so, "
            "or leave only the conditions, which are then numbered"
        )


# -- text -----------------------------------------------------------------------------------------


def _delimited_rows(path: Path) -> Iterator[_TextRow]:
    """Rows of CSV and TSV. Without a header, the columns are id and condition."""
    with open_records(path) as records:
        names: list[str] | None = None
        number = 0
        for line, fields, unreadable in records.rows:
            if names is None and unreadable is None:
                heading = [field.strip() for field in fields]
                if {ID, CONDITION, PREDICATES} & {field.lower() for field in heading}:
                    heading = [field.lower() for field in heading]
                    _check_columns(path, heading)
                    if PREDICATES in heading:
                        raise TamisError(f"{path}: predicates are not text; use another format")
                    names = heading
                    continue
                names = [ID, CONDITION]
            number += 1
            reason = unreadable
            if reason is None and names is not None and len(fields) != len(names):
                reason = field_count(fields, names)
            values = dict(zip(names or (), fields, strict=False))
            if ID in values:
                values[ID] = values[ID].strip()
            yield _TextRow(line, number, values, reason)


def _line_rows(path: Path) -> Iterator[_TextRow]:
    """One condition a line."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                yield _TextRow(line, line, {CONDITION: text.strip()}, _not_text(text))


def _not_text(text: str) -> str | None:
    return None if is_encodable(text) else "is not UTF-8 text"


def _json_rows(path: Path) -> Iterator[_TextRow]:
    """One JSON object a line, or one list of them."""
    with path.open("rb") as file:
        listed = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    if listed:
        try:
            objects = json.loads(path.read_bytes().decode("utf-8-sig"))
        except (json.JSONDecodeError, RecursionError) as why:
            raise TamisError(f"{path}: is not JSON that can be read: {why}") from None
        for number, each in enumerate(objects, 1):
            yield _json_row(number, number, each)
        return
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        number = 0
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            number += 1
            if (unreadable := _not_text(text)) is not None:
                yield _TextRow(line, number, {}, unreadable)
                continue
            try:
                yield _json_row(line, number, json.loads(text))
            except (ValueError, RecursionError) as why:
                yield _TextRow(line, number, {}, f"is not JSON: {why}")


def _json_row(line: int, number: int, given: Any) -> _TextRow:
    if not isinstance(given, dict):
        return _TextRow(line, number, {}, "is not a JSON object with id and condition")
    if CONDITION in given and PREDICATES in given:
        return _TextRow(line, number, {}, "has a condition and predicates; expected one of them")
    return _TextRow(line, number, given)


def _text_part(path: Path, rows: Iterable[_TextRow], *, typed: bool) -> SubscriptionRows:
    refused: list[RefusedSubscription] = []
    places: list[Place] = []
    numbers: list[int] = []
    ids: list[Any] = []
    main: str | None = None  # the first good row decides
    has_ids: bool | None = None
    columns: dict[str, list[Any]] = {}
    for line, number, values, given_reason in rows:
        place, reason = Place(path, line), given_reason
        if main is None and reason is None:
            main = PREDICATES if PREDICATES in values else CONDITION
            has_ids = ID in values
        if reason is None:
            assert main is not None
            reason = _wrong_values(values, main, has_ids=bool(has_ids))
        if reason is not None:
            refused.append(RefusedSubscription(place, reason))
            continue
        assert main is not None
        ids.append(values.get(ID))
        places.append(place)
        numbers.append(number)
        for name in (main, *DETAILS):
            given = values.get(name) or None
            columns.setdefault(name, []).append(_language(given) if name == LANGUAGE else given)
    kinds = {main: pa.list_(_PREDICATE) if main == PREDICATES else pa.string()}
    made = {
        name: pa.array(values, kinds.get(name, pa.string()))
        for name, values in columns.items()
        if name == main or any(values)
    }
    rest = pa.table(made or {CONDITION: pa.array([], pa.string())})
    return SubscriptionRows(
        ids if has_ids or has_ids is None else None, rest, places, numbers, refused, typed
    )


def _wrong_values(values: dict[str, Any], main: str, *, has_ids: bool) -> str | None:
    """Why the values of a row are refused; None if they are well-formed."""
    if (ID in values) != has_ids:
        return "has an id, the first row has none" if ID in values else "has no id"
    if has_ids and (why := _wrong_id(values[ID])) is not None:
        return why
    if main not in values:
        return f"has no {main}, only {', '.join(values) or 'nothing'}"
    given = values[main]
    if main == PREDICATES:
        try:
            pa.array([given], pa.list_(_PREDICATE))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as why:
            return f"the predicates are malformed: {why}"
        return "the predicates are null" if given is None else None
    if not isinstance(given, str):
        return f"the condition is {show(given)}, expected text"
    if _not_text(given) is not None:
        return "the condition contains a lone surrogate, which is not text"
    if not given.strip():
        return "the condition is empty"
    for name in DETAILS:
        if not isinstance(values.get(name), str | None):
            return f"{name!r} is {show(values[name])}, expected text"
    return None


def _wrong_id(id: Any) -> str | None:
    """Why an id is refused; None if it is right."""
    if isinstance(id, str):
        try:
            return None if Text().value(id).strip() else "the id is empty"
        except RefusalError as why:
            return f"the id {why}"
    if isinstance(id, int) and not isinstance(id, bool):
        inside = INT_LOW <= id <= INT_HIGH
        return None if inside else f"the id {show(id)} is outside the 64-bit integers"
    return "the id is null" if id is None else f"the id is {show(id)}, expected a number or text"
