"""The kinds of constants in calls, value constraints and comparisons."""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import isfinite

from tamis.model.condition import Constant, Word
from tamis.model.domain import Boolean, Domain, Integer, Text
from tamis.model.times.moments import NOW_WORDS

_DOMAINS: Mapping[str, Domain] = {"number": Integer(), "text": Text(), "boolean": Boolean()}


def kind_of_constant(given: Constant) -> str:
    """number, text or boolean."""
    if isinstance(given, bool):
        return "boolean"
    return "text" if isinstance(given, str) else "number"


def kind_text(kind: str) -> str:
    """A kind, with an article."""
    return {"number": "a number", "boolean": "true or false"}.get(kind, kind)


def check_constant(given: Constant, kind: str) -> None:
    """Raise a `RefusalError` for a constant of another kind; `any` takes all."""
    (_DOMAINS.get(kind) or _DOMAINS[kind_of_constant(given)]).constant(given)


def value_hint(domain: Domain, item: object, attributes: Container[str], stem: str) -> str | None:
    """A hint for a constant that is not in a domain; names in the text begin with the stem."""
    if stem and isinstance(item, Word) and item in attributes:
        return f"write @{stem}{item} for the attribute of the element"
    if domain.kind == "text" and not isinstance(item, str):
        return "put text in quotes"
    if domain.kind == "boolean":
        return "write true or false, without quotes"
    if domain.kind in ("integer", "decimal") and isinstance(item, str) and _is_number(item):
        return f"write {item}, without quotes"
    if domain.kind == "timestamp" and isinstance(item, Word) and item in NOW_WORDS:
        return "now is compared by = != < <= > >=, as in: at > now - 1h"
    if domain.kind == "timestamp" and not isinstance(item, str):
        return "write a time as 2026-01-31 or 2026-01-31T12:00:00Z"
    return None


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False
