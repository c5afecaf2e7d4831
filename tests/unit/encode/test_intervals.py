"""The algebra of intervals against brute-force sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.encode import intervals
from tamis.encode.intervals import (
    TEXT_BOTTOM,
    TEXT_TOP,
    Intervals,
    TextCut,
    after,
    after_prefix,
    before,
)

RANGE = range(-3, 12)
spans = st.lists(st.tuples(st.integers(-3, 12), st.integers(-3, 12)), max_size=5)

LETTERS = "\0a\ud7ff\ue000\U0010ffff"
WORDS = sorted("".join(letters) for size in range(4) for letters in product(LETTERS, repeat=size))
cuts = st.one_of(
    st.sampled_from(WORDS[::7]).flatmap(lambda w: st.sampled_from([before(w), after(w)])),
    st.text(alphabet=LETTERS, max_size=2).map(after_prefix),
    st.sampled_from([TEXT_BOTTOM, TEXT_TOP]),
)
text_spans = st.lists(st.tuples(cuts, cuts), max_size=4)


def numbers(given_: Intervals) -> set[int]:
    return {n for n in RANGE if any(low <= n < high for low, high in given_)}


def words(given_: Intervals) -> set[str]:
    return {w for w in WORDS if any(low <= before(w) < high for low, high in given_)}


def is_normal(given_: Intervals) -> bool:
    ends = [end for interval in given_ for end in interval]
    return ends == sorted(ends) and not any(intervals.empty(*interval) for interval in given_)


def check_sets(
    left: list[Any],
    right: list[Any],
    values: Callable[[Intervals], set[Any]],
    ends: tuple[Any, Any],
) -> None:
    """The algebra of two lists of intervals is that of their sets of values."""
    a, b = intervals.unite(left), intervals.unite(right)
    both, other = intervals.intersect(a, b), intervals.complement(a, *ends)
    assert values(a) == values(tuple(left))
    assert values(both) == values(a) & values(b)
    assert values(intervals.unite((*a, *b))) == values(a) | values(b)
    assert values(other) == values((ends,)) - values(a)
    assert all(is_normal(made) for made in (a, both, other))


@settings(max_examples=200)
@given(left=spans, right=spans)
def test_integer_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    check_sets(left, right, numbers, (-3, 12))
    a = intervals.unite(left)
    touching = [high for _, high in a if any(low == high for low, _ in a)]
    assert not touching, "touching intervals are merged"


@settings(max_examples=200)
@given(left=text_spans, right=text_spans)
def test_text_sets(
    left: list[tuple[TextCut, TextCut]], right: list[tuple[TextCut, TextCut]]
) -> None:
    check_sets(left, right, words, (TEXT_BOTTOM, TEXT_TOP))
    assert words(((TEXT_BOTTOM, TEXT_TOP),)) == set(WORDS)


def test_a_prefix_is_one_interval_of_exactly_its_texts() -> None:
    for prefix in (w for w in WORDS if len(w) <= 2):
        found = words(((before(prefix), after_prefix(prefix)),))
        assert found == {w for w in WORDS if w.startswith(prefix)}


def test_surrogates_are_stepped_over_and_nothing_follows_the_last_prefix() -> None:
    assert after_prefix("a\ud7ff") == before("a\ue000")
    assert after_prefix("\U0010ffff\U0010ffff") == TEXT_TOP
    assert after_prefix("") == TEXT_TOP
    assert after_prefix("a\U0010ffff") == before("b")


def test_between_a_text_and_its_successor_there_is_nothing() -> None:
    assert intervals.empty(after("a"), before("a\0"))
    assert not intervals.empty(after("a"), before("a\0\0"))
    assert not intervals.empty(before("a"), before("a\0"))
    assert intervals.intersect(((after("a"), TEXT_TOP),), ((TEXT_BOTTOM, before("a\0")),)) == ()
