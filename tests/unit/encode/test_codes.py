"""Codes keep the order of every domain, and intervals say what comparators mean."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.encode import intervals
from tamis.encode.clause import SPECIAL_COMPARATORS
from tamis.encode.codes import (
    Codec,
    DecimalCodec,
    NameCodec,
    TextCodec,
    codec,
    decimal_code,
    timestamp_code,
)
from tamis.encode.columns import decimal_codes
from tamis.encode.intervals import before
from tamis.model import semantics
from tamis.model.condition import SUPERSET, Literal, Predicate
from tamis.model.domain import Decimal, Integer, Text
from tamis.model.named_domains import Enumerated, Hierarchy
from tests.unit.engine.world import POOL, SCHEMA, predicates

doubles = st.floats(allow_nan=False, allow_infinity=False)


@given(left=doubles, right=doubles)
def test_decimal_codes_keep_the_order(left: float, right: float) -> None:
    assert (left < right) == (decimal_code(left) < decimal_code(right))
    assert (left == right) == (decimal_code(left) == decimal_code(right))


@given(value=doubles)
def test_neighbouring_doubles_have_neighbouring_codes(value: float) -> None:
    above = math.nextafter(value, math.inf)
    if above != math.inf:
        assert decimal_code(above) == decimal_code(value) + 1


@given(values=st.lists(st.floats(), max_size=20))
def test_a_column_of_doubles_has_the_codes_of_its_values(values: list[float]) -> None:
    codes, wrong = decimal_codes(np.array(values, np.float64))
    finite = [bool(np.isfinite(value)) for value in values]
    assert (wrong is None) == all(finite)
    if wrong is not None:
        assert (~wrong).tolist() == finite
    for code, value, fine in zip(codes.tolist(), values, finite, strict=True):
        assert not fine or code == decimal_code(value)


@given(left=st.datetimes(), right=st.datetimes())
def test_timestamp_codes_keep_the_order(left: datetime, right: datetime) -> None:
    a, b = left.replace(tzinfo=UTC), right.replace(tzinfo=UTC)
    assert (a < b) == (timestamp_code(a) < timestamp_code(b))
    assert timestamp_code(a) - timestamp_code(b) == (a - b) // timedelta(microseconds=1)


def inside(made: Codec, found: intervals.Intervals, value: Any) -> bool:
    cut = before(value) if isinstance(made, TextCodec) else made.code(value)
    return any(low <= cut < high for low, high in found)


SET_COMPARATORS = SPECIAL_COMPARATORS | {SUPERSET}


@settings(max_examples=600)
@given(predicate=predicates(tuple(POOL)), positive=st.booleans())
@pytest.mark.slow
def test_the_intervals_of_a_literal_hold_exactly_its_values(
    predicate: Predicate, positive: bool
) -> None:
    if predicate.comparator in SET_COMPARATORS:
        return
    domain = SCHEMA.attributes[predicate.attribute]
    made = codec(domain)
    literal = Literal(predicate, positive)
    found = made.satisfying(literal)
    for raw in POOL[predicate.attribute]:
        value = domain.value(raw)
        assert inside(made, found, value) == semantics.value_holds(literal, value, SCHEMA), raw
    ends = [end for interval in found for end in interval]
    assert ends == sorted(ends), "sorted and disjoint"
    assert all(made.bottom <= end <= made.top for end in ends), "within the domain"


@pytest.mark.parametrize(
    ("comparator", "constant", "low", "high"),
    [
        ("<", 1.5, 0, 1),
        ("<=", 1.5, 0, 1),
        (">", 1.5, 2, 9),
        (">=", 1.5, 2, 9),
        ("<", -0.5, None, None),
        (">", -0.5, 0, 9),
        ("<=", 9, 0, 9),
        ("<=", 1e300, 0, 9),
        (">=", -1e300, 0, 9),
        (">", 9, None, None),
        ("=", 1.0, 1, 1),
        ("=", 1.5, None, None),
        ("=", 10, None, None),
    ],
)
def test_integers_compared_with_any_number(
    comparator: str, constant: float, low: int | None, high: int | None
) -> None:
    domain = Integer(0, 9)
    found = codec(domain).compare(comparator, domain.constant(constant))
    expected = () if low is None or high is None else ((low, high + 1),)
    assert found == expected


def test_the_ends_of_int64_and_of_doubles_are_reached_exactly() -> None:
    whole, made = codec(Integer()), DecimalCodec(Decimal())
    assert whole.compare(">=", 2**63 - 1) == ((2**63 - 1, 2**63),)
    assert whole.compare("<=", -(2**63)) == ((-(2**63), -(2**63) + 1),)
    assert whole.compare("<", 9.3e18) == whole.everything
    top = 1.7976931348623157e308
    assert made.compare("<=", top) == made.compare(">=", -top) == made.everything
    for each, high, low in ((whole, 2**63 - 1, -(2**63)), (made, top, -top)):
        assert each.compare(">", high) == each.compare("<", low) == ()


def test_a_tree_and_a_chain_need_one_interval() -> None:
    tree = Hierarchy.from_tree({"a": {"b": {"c": {}, "d": {}}, "e": {"f": {}}}, "g": {"h": {}}})
    assert all(len(codec(tree).compare("<=", name)) == 1 for name in tree.values)
    chain = codec(Enumerated(["c", "a", "b"], [("a", "b"), ("b", "c")]))
    assert [chain.code(name) for name in "abc"] == [0, 1, 2]
    assert all(len(chain.compare(sign, "b")) == 1 for sign in ("<", "<=", ">", ">="))


@settings(max_examples=80)
@given(data=st.data(), size=st.integers(1, 9))
def test_random_dags_compare_as_the_semantics_say(data: st.DataObject, size: int) -> None:
    names = [f"v{i}" for i in data.draw(st.permutations(range(size)))]
    above = {
        name: data.draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3))
        if place
        else []
        for place, name in enumerate(names)
    }
    shuffled = dict(data.draw(st.permutations(list(above.items()))))
    pairs = [(name, parent) for name, parents in above.items() for parent in parents]
    for domain in (Hierarchy(shuffled), Enumerated(list(shuffled), pairs)):
        made = codec(domain)
        assert isinstance(made, NameCodec)
        assert sorted(made.codes.values()) == list(range(size))
        for comparator in ("<", "<=", ">", ">=", "="):
            for constant in names:
                found = made.compare(comparator, constant)
                for value in names:
                    predicate = Predicate("x", comparator, constant)
                    truth = semantics._true(predicate, value, domain)
                    assert inside(made, found, value) == truth


@settings(max_examples=100)
@given(values=st.lists(st.text(max_size=4), min_size=2))
def test_text_cuts_keep_the_order_of_code_points(values: list[str]) -> None:
    ordered = sorted(set(values), key=lambda text: [ord(letter) for letter in text])
    cuts = [before(text) for text in ordered]
    assert all(low < high for low, high in pairwise(cuts))
    assert codec(Text()).compare("<", "") == ()
