"""The kinds of constants in calls, value constraints and comparisons."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.model.condition import Constant
from tamis.model.domain import Boolean, Domain, Integer, Text

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


def value_hint(domain: Domain, item: object) -> str | None:
    """A hint for a constant that is not in a domain."""
    if domain.kind == "text" and not isinstance(item, str):
        return "put text in quotes"
    if domain.kind == "boolean" and isinstance(item, str):
        return "write true or false, without quotes"
    return None
