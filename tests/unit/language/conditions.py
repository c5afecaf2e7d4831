"""Conditions made of others, and what holds of every text that is parsed."""

from __future__ import annotations

from hypothesis import strategies as st

from tamis.errors import ConditionError
from tamis.language import parse, to_text
from tamis.model.condition import And, Condition, Not, Or


def grow(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    """Conjunctions, disjunctions and negations, for `st.recursive`."""
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(parts.map(And), parts.map(Or), inner.map(Not))


def is_read_as(text: str, condition: Condition) -> None:
    """A text means a condition, also after it was printed."""
    parsed = parse(text)
    assert parsed == condition
    assert type(parsed) is type(condition)
    assert parse(to_text(parsed)) == condition


def is_read_or_refused(text: str) -> None:
    """The parser fails by its own error only, and shows a place in the text."""
    error: ConditionError | None = None
    try:
        assert parse(to_text(parse(text))) == parse(text)
    except ConditionError as why:
        error = why
    if error is not None and error.span is not None:
        start, end = error.span
        assert 0 <= start <= end <= len(text)
        assert (error.line or 0) >= 1
        assert error.message in str(error)
