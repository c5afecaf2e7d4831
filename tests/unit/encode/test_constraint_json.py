"""Constraints written as text are read again as they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tamis.encode.clause import Constraint, PatternTest, constraint_from_json, constraint_to_json
from tamis.encode.intervals import TEXT_BOTTOM, TEXT_TOP, after, before
from tamis.encode.pattern import Pattern, TextTest

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
CUTS = st.one_of(st.sampled_from([TEXT_BOTTOM, TEXT_TOP]), TEXTS.map(before), TEXTS.map(after))
PATTERNS = st.one_of(
    TEXTS.map(Pattern.ends_with),
    st.text("ab%_\\\"'\0é\U0010ffff", max_size=8).map(Pattern.like),
    st.builds(
        TextTest,
        st.sampled_from(("matches", "in ignoring case")),
        st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
        st.integers(0, 1),
    ),
)
CONSTRAINTS = st.builds(
    Constraint,
    st.integers(0, 2**31),
    st.integers(0, 2),
    st.lists(st.tuples(CUTS, CUTS), max_size=3).map(tuple),
    st.lists(st.builds(PatternTest, PATTERNS, st.booleans()), max_size=3).map(tuple),
)


@given(CONSTRAINTS)
def test_a_constraint_survives(constraint: Constraint) -> None:
    again = constraint_from_json(constraint_to_json(constraint))
    assert again == constraint
    assert hash(again) == hash(constraint), "it finds what equals it in a dict"
    assert constraint_to_json(again) == constraint_to_json(constraint)
    assert isinstance(again, Constraint)
    assert all(isinstance(test, PatternTest) for test in again.patterns)
