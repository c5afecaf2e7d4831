"""Values as explanations show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tamis.model.condition import OF_KIND, STATES, Predicate
from tamis.model.dynamic import Dynamic, kind_of_value
from tamis.model.schema import Schema


def is_quoted(attribute: str, schema: Schema) -> bool:
    """Whether texts are shown in quotes: a dynamic attribute may have "5" or 5."""
    return isinstance(schema.attributes.get(attribute), Dynamic)


def other_kind(predicate: Predicate, values: tuple[Any, ...]) -> str:
    """Why a comparison of a dynamic attribute cannot hold: no value has the kind of a constant."""
    if predicate.comparator in (*STATES, OF_KIND):
        return ""
    given = predicate.value if isinstance(predicate.value, tuple) else (predicate.value,)
    wanted = list(dict.fromkeys(kind_of_value(each) for each in given))
    kinds = list(dict.fromkeys(kind_of_value(each) for each in values))
    if not set(wanted).isdisjoint(kinds):
        return ""
    return f" ({listed(map(_kind, kinds))}, not {' or '.join(map(_kind, wanted))})"


def _kind(kind: str) -> str:
    return kind if kind in ("text", "null") else f"an {kind}" if kind == "object" else f"a {kind}"


def joined(values: tuple[Any, ...], quoted: bool = False) -> str:
    """Some values, texts in quotes if asked for."""
    shown = ", ".join(
        f'"{value_text(value)}"' if quoted and isinstance(value, str) else value_text(value)
        for value in values[:10]
    )
    return shown if len(values) <= 10 else f"{shown}, … ({len(values)} values)"


def listed(names: Iterable[str]) -> str:
    """Names, the last after `and`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def row_text(row: tuple[Any, ...]) -> str:
    """A row of an operator."""
    return value_text(row[0]) if len(row) == 1 else f"({', '.join(map(value_text, row))})"


def value_text(value: Any) -> str:
    """One value, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"  # as the language writes it
    if value is None or isinstance(value, Mapping):
        return "null" if value is None else "an object"
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= 80 else text[:77] + "…"
