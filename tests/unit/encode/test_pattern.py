"""Patterns against the definition of `like`, and what they say of intervals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.encode.pattern import Pattern
from tamis.model.text_semantics import text_holds

patterns = st.text(alphabet="ab%_\\", max_size=8).filter(
    lambda text: (len(text) - len(text.rstrip("\\"))) % 2 == 0
)
values = st.text(alphabet="ab%_\\\n", max_size=8)


@settings(max_examples=1000)
@given(pattern=patterns, value=values)
@pytest.mark.slow
def test_like_is_what_the_semantics_say(pattern: str, value: str) -> None:
    made = Pattern.like(pattern)
    assert made.matches(value) == text_holds("like", value, pattern)
    assert made.compiled()(value) == made.matches(value)
    tagged = made.tagged("3")
    assert tagged.compiled()("3" + value) == tagged.matches("3" + value) == made.matches(value)
    assert tagged.compiled()(value) == tagged.matches(value)


@settings(max_examples=500)
@given(pattern=patterns, value=values)
def test_the_prefix_and_the_literal_say_what_the_pattern_says(pattern: str, value: str) -> None:
    made = Pattern.like(pattern)
    fits = made.matches(value)
    assert not fits or value.startswith(made.prefix)
    if made.literal is not None:
        assert fits == (value == made.literal)
    if made.only_prefix:
        assert fits == value.startswith(made.prefix)


@settings(max_examples=200)
@given(ending=values, value=values)
def test_ends_with_takes_its_text_literally(ending: str, value: str) -> None:
    assert Pattern.ends_with(ending).matches(value) == value.endswith(ending)


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("%", "", True),
        ("_", "", False),
        ("_", "\U0001f600", True),
        ("a%a", "a", False),
        ("a%a", "aa", True),
        ("%ab%ab%", "ab", False),
        ("%_", "", False),
        ("\\%", "%", True),
        ("\\%", "a", False),
        ("\\\\", "\\", True),
        ("a\\_b", "axb", False),
        ("%\n%", "a\nb", True),
    ],
)
def test_cases(pattern: str, value: str, fits: bool) -> None:
    assert Pattern.like(pattern).matches(value) is fits
    assert text_holds("like", value, pattern) is fits
