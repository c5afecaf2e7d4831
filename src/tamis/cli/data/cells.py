"""Cells of CSV and TSV files as values. A cell is text; the domain of its column says how it reads.

| domain | a cell |
| --- | --- |
| integer, decimal | a number such as 5, 5.0, -1.5e3; 5.0 is an integer too |
| boolean | true or false, in any case of letters |
| timestamp | ISO 8601 |
| text, enumerated, hierarchy, opaque | the cell as it is |
| dynamic, lists of structs | JSON, if it is JSON; else text |

An empty cell is an absent attribute. Where an attribute may have several values, a cell that begins
with [ is a JSON array.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encode.lines.event_columns import arrow_types, multiple
from tamis.model.domain import Boolean, Decimal, Domain, Integer, Opaque, RefusalError, refuse
from tamis.model.dynamic import Dynamic
from tamis.model.elements.structs import Structs
from tamis.model.schema import Schema

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_MISSING = ("na", "n/a", "nan", "null", "none", "nat", "-", "\\n")


class TypedColumn(NamedTuple):
    """A column with the values of its domain, and why rows are refused."""

    values: pa.Array
    wrong: dict[int, str]


class CellReader:
    """Reads the cells of a schema's attributes. Cells in `absent` are absent, as empty ones are."""

    def __init__(self, schema: Schema, absent: Iterable[str] = ()) -> None:
        self._schema, self._attributes = schema, schema.attributes
        self._multiple = multiple(schema)
        self._absent = pa.array(["", *absent], pa.string())

    @cached_property
    def _kinds(self) -> dict[str, pa.DataType]:
        """Only for typed schemas: conditions on an open one may mention `a` and `a.b`."""
        return arrow_types(self._schema)

    def column(self, name: str, cells: Sequence[str]) -> TypedColumn:
        """A column of a file. One that is not an attribute stays text."""
        texts = pa.array(cells, pa.string())
        texts = pc.if_else(pc.is_in(texts, self._absent), pa.scalar(None, pa.string()), texts)
        domain = self._attributes.get(name)
        read = None if domain is None else _single(domain)
        plain = not isinstance(domain, Opaque | Dynamic | Structs)
        if domain is not None and name in self._multiple and plain:
            read = _several(domain, read)
        return TypedColumn(texts, {}) if read is None else _read(texts, read, self._kinds[name])


def _read(texts: pa.Array, read: Callable[[str], Any], kind: pa.DataType) -> TypedColumn:
    """Each text that occurs is read once."""
    encoded = texts.dictionary_encode()
    values: list[Any] = []
    reasons: dict[int, str] = {}
    for at, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            values.append(read(text))
        except RefusalError as why:
            values.append(None)
            reasons[at] = str(why)
    column = pa.array(values, kind).take(encoded.indices)
    if not reasons:
        return TypedColumn(column, {})
    which = np.asarray(encoded.indices.fill_null(-1))
    rows = np.flatnonzero(np.isin(which, list(reasons)))
    return TypedColumn(column, {row: reasons[int(which[row])] for row in rows.tolist()})


def dynamic_value(text: str) -> Any:
    """The value of a cell that may be JSON: 5, true and [1, 2] are, 007 is text."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _single(domain: Domain) -> Callable[[str], Any] | None:
    """How a cell with one value is read; None: it stays text."""
    if isinstance(domain, Integer | Decimal):
        return lambda text: domain.value(_number(text))
    return _boolean if isinstance(domain, Boolean) else None


def _several(domain: Domain, single: Callable[[str], Any] | None) -> Callable[[str], Any]:
    def read(text: str) -> list[Any]:
        if not text.lstrip().startswith("["):
            return [domain.value(text) if single is None else single(text)]
        try:
            items = json.loads(text)
        except (ValueError, RecursionError) as why:
            refuse(text, f"is not a JSON array: {why}")
        return [domain.value(item) for item in items if item is not None]

    return read


def _number(text: str) -> int | float:
    written = text.strip()
    if _NUMBER.fullmatch(written) is None:
        hint = f"; --absent {written} makes it absent" if written.lower() in _MISSING else ""
        refuse(text, f"is not a number{hint}")
    if not written.lstrip("+-").isdecimal():
        return float(written)
    return int(written) if len(written) < 100 else float(written)  # which is then refused


def _boolean(text: str) -> bool:
    found = _BOOLEANS.get(text.strip().lower())
    if found is None:
        refuse(text, "is not true or false")
    return found
