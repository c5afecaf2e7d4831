"""Domains: what is in them, in which normal form, and what is refused in which words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal as PythonDecimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import SchemaError
from tamis.model.domain import (
    Boolean,
    Decimal,
    Domain,
    Integer,
    Opaque,
    RefusalError,
    Text,
    Timestamp,
    parse_timestamp,
)
from tamis.model.named_domains import Enumerated, Hierarchy

ACCEPTED: list[tuple[Domain, Any, Any]] = [
    (Integer(), 5, 5),
    (Integer(), 5.0, 5),
    (Integer(), -0.0, 0),
    (Integer(), 2**63 - 1, 2**63 - 1),
    (Integer(), -(2**63), -(2**63)),
    (Integer(), float(-(2**63)), -(2**63)),
    (Integer(), np.int8(-5), -5),
    (Integer(), np.uint64(2**63 - 1), 2**63 - 1),
    (Integer(), np.float32(5), 5),
    (Integer(), PythonDecimal(2**53 + 1), 2**53 + 1),
    (Integer(), PythonDecimal("5.0"), 5),
    (Integer(0, 9), 0, 0),
    (Integer(0, 9), 9.0, 9),
    (Decimal(), 5, 5.0),
    (Decimal(), -0.0, 0.0),
    (Decimal(), 2**53, 2.0**53),
    (Decimal(), 2**62, 2.0**62),
    (Decimal(), np.float16(0.5), 0.5),
    (Decimal(), np.float32(0.1), float(np.float32(0.1))),
    (Decimal(), np.float64(0.1), 0.1),
    (Decimal(), np.int32(7), 7.0),
    (Decimal(), PythonDecimal("0.1"), 0.1),
    (Decimal(), 5e-324, 5e-324),
    (Text(), "", ""),
    (Text(), "\0", "\0"),
    (Text(), "\U0010ffff", "\U0010ffff"),
    (Text(), np.str_("x"), "x"),
    (Text(), "e\u0301", "e\u0301"),
    (Boolean(), True, True),
    (Boolean(), np.bool_(False), False),
    (Timestamp(), "2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
    (Timestamp(), datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)),
    (Timestamp(), datetime(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)),  # noqa: DTZ001
    (Timestamp(), date(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)),
    (
        Timestamp(),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        datetime(2025, 12, 31, 22, tzinfo=UTC),
    ),
    (Enumerated(["a", "b"]), "a", "a"),
    (Hierarchy({"a": [], "b": ["a"]}), "b", "b"),
    (Opaque(), b"x", b"x"),
    (Opaque(), bytearray(b"x"), b"x"),
    (Opaque(), {"k": [1, None, "x", 1.5, True]}, {"k": [1, None, "x", 1.5, True]}),
]


@pytest.mark.parametrize(("domain", "given_", "normal"), ACCEPTED)
def test_a_value_takes_its_normal_form(domain: Domain, given_: Any, normal: Any) -> None:
    found = domain.value(given_)
    assert found == normal
    assert type(found) is type(normal)
    assert str(found) == str(normal), "-0.0 is 0.0"
    assert domain.value(found) == found


REFUSED: list[tuple[Domain, Any, str]] = [
    (Integer(), True, "boolean"),
    (Integer(), np.bool_(True), "boolean"),
    (Integer(), "5", "is text"),
    (Integer(), 5.5, "not a whole number"),
    (Integer(), 2**63, "outside the 64-bit"),
    (Integer(), -(2**63) - 1, "outside the 64-bit"),
    (Integer(), float(2**63), "outside the 64-bit"),
    (Integer(), np.uint64(2**63), "outside the 64-bit"),
    (Integer(), PythonDecimal("1E+999999"), "finite|outside"),
    (Integer(), float("nan"), "not a finite number"),
    (Integer(), np.float32("inf"), "not a finite number"),
    (Integer(), [5], "is a list"),
    (Integer(), {"a": 5}, "is an object"),
    (Integer(), b"5", "is bytes"),
    (Integer(), 5j, "complex"),
    (Integer(), Fraction(1, 2), "Fraction"),
    (Integer(0, 9), -1, "below the domain's low, 0"),
    (Integer(0, 9), 10, "above the domain's high, 9"),
    (Decimal(), 2**53 + 1, "no exact double"),
    (Decimal(), 2**63, "outside the 64-bit"),
    (Decimal(), PythonDecimal(2**53 + 1), "no exact double"),
    (Decimal(), PythonDecimal("NaN"), "not a finite number"),
    (Decimal(), PythonDecimal("sNaN"), "not a finite number"),
    (Decimal(), PythonDecimal("-Infinity"), "not a finite number"),
    (Decimal(), float("-inf"), "not a finite number"),
    (Decimal(), False, "boolean"),
    (Decimal(), "1.5", "is text"),
    (Text(), 5, "is a number, expected text"),
    (Text(), b"x", "is bytes"),
    (Text(), "a\ud800", "lone surrogate"),
    (Text(), "x" * (2**20 + 1), "longer than 1048576 bytes"),
    (Text(), "é" * (2**19 + 1), "longer than 1048576 bytes"),
    (Boolean(), 1, "not true or false"),
    (Boolean(), "true", "not true or false"),
    (Boolean(), np.int8(1), "not true or false"),
    (Timestamp(), 5, "not a timestamp"),
    (Timestamp(), True, "not a timestamp"),
    (Timestamp(), datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "years 1 to 9999"),
    (Timestamp(), datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "years 1 to 9999"),
    (Enumerated(["red", "green"]), "gren", "did you mean 'green'"),
    (Enumerated(["red"]), 5, "is a number"),
    (Enumerated(["red"]), ["red"], "is a list"),
    (Hierarchy({"a": []}), "b", "not a value of the domain"),
    (Opaque(), object(), "expected bytes or JSON"),
    (Opaque(), {1: 2}, "key of a JSON object"),
    (Opaque(), [float("nan")], "not a finite number"),
    (Opaque(), {"x": datetime(2026, 1, 1, tzinfo=UTC)}, "expected bytes or JSON"),
]


@pytest.mark.parametrize(("domain", "given_", "words"), REFUSED)
def test_a_refusal_says_why(domain: Domain, given_: Any, words: str) -> None:
    with pytest.raises(RefusalError, match=words) as caught:
        domain.value(given_)
    assert len(str(caught.value)) < 300, "short, whatever the value"


def test_pandas_moments_finer_than_a_microsecond_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(RefusalError, match="finer than a microsecond"):
        Timestamp().value(pandas.Timestamp("2026-01-01T00:00:00.000000001Z"))
    fine = Timestamp().value(pandas.Timestamp("2026-01-01T00:00:00.000001Z"))
    assert fine == datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    with pytest.raises(RefusalError):
        Timestamp().value(pandas.NaT)


def test_a_deep_or_circular_opaque_value_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    ring: list[Any] = []
    ring.append(ring)
    for given_ in (deep, ring):
        with pytest.raises(RefusalError, match="levels deep"):
            Opaque().value(given_)


def test_integer_constants_may_be_any_number() -> None:
    domain = Integer(0, 9)
    assert domain.constant(1.5) == 1.5
    assert domain.constant(1e300) == 1e300
    assert domain.constant(100) == 100
    for given_ in (True, "5", float("nan"), 2**63):
        with pytest.raises(RefusalError):
            domain.constant(given_)


@given(value=st.integers(-(2**70), 2**70))
def test_decimals_take_exactly_the_integers_that_are_doubles(value: int) -> None:
    exact = -(2**63) <= value < 2**63 and int(float(value)) == value
    try:
        assert Decimal().value(value) == value
    except RefusalError:
        assert not exact
    else:
        assert exact


# -- timestamps -----------------------------------------------------------------------------------

TIMES = [
    ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("2026-01-31 12:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("2026-01-31T12:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ("2026-01-31T12:00-0530", datetime(2026, 1, 31, 17, 30, tzinfo=UTC)),
    ("2026-01-31T12:00:00.5", datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=UTC)),
    ("2026-01-31T12:00:00,000001", datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)),
    ("2026-01-31T12:00:00.123456000Z", datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)),
    ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
    ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
]


@pytest.mark.parametrize(("text", "moment"), TIMES)
def test_a_timestamp_reads_as(text: str, moment: datetime) -> None:
    found = parse_timestamp(text)
    assert found == moment
    assert isinstance(found, datetime)
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "ISO 8601"),
        ("2026", "ISO 8601"),
        ("2026-1-31", "ISO 8601"),
        ("2026-01-31T", "ISO 8601"),
        ("2026-01-31T12", "ISO 8601"),
        ("2026-01-31T12:00:00 ", "ISO 8601"),
        ("2026-01-31\n", "ISO 8601"),
        ("\uff12\uff10\uff12\uff16-01-31", "ISO 8601"),
        ("2026-W05-6", "ISO 8601"),
        ("2026-01-31T12:00:00.1234567Z", "finer than a microsecond"),
        ("2026-02-29", "is not a timestamp"),
        ("2026-13-01", "is not a timestamp"),
        ("0000-01-01", "is not a timestamp"),
        ("2026-06-30T23:59:60Z", "is not a timestamp"),
        ("2026-01-31T12:00+25:00", "is not a timestamp"),
        ("0001-01-01T00:00+01:00", "outside the years 1 to 9999"),
        ("9999-12-31T23:59:59-01:00", "outside the years 1 to 9999"),
    ],
)
def test_a_malformed_timestamp_is_refused_whole(text: str, words: str) -> None:
    found = parse_timestamp(text)
    assert isinstance(found, str)
    assert words in found


@given(moment=st.datetimes(timezones=st.just(UTC)))
def test_timestamps_survive_their_text(moment: datetime) -> None:
    assert parse_timestamp(moment.isoformat()) == moment


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "given_", "words"),
    [
        (Enumerated, ([], None), "at least one"),
        (Enumerated, (["a", "a"], None), "listed twice"),
        (Enumerated, (["a", 5], None), "not a name"),
        (Enumerated, ([""], None), "not a name"),
        (Enumerated, (["\ud800"], None), "lone surrogate"),
        (Enumerated, (["a", "b"], [("a", "c")]), "'c' in 'order' is not a value"),
        (Enumerated, (["a", "b"], [(["a"], "b")]), "not a value"),
        (Enumerated, (["a"], [("a", "a")]), "cycle"),
        (Enumerated, (["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")]), "cycle"),
        (Hierarchy, ({},), "at least one"),
        (Hierarchy, ({"a": ["a"]},), "cycle"),
        (Hierarchy, ({"a": ["b"], "b": ["c"], "c": ["a"]},), "cycle"),
        (Hierarchy, ({"": []},), "not a name"),
        (Hierarchy, ({"a": [""]},), "not a name"),
        *(
            (Integer, bounds, "integer domain")
            for bounds in ((5, 4), (True, None), (1.5, None), (None, 2**63))
        ),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(make: Any, given_: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        make(*given_)
    assert Integer(5, 5).value(5) == 5


def test_only_an_order_brings_order_comparators() -> None:
    assert "<" not in Enumerated(["a"]).comparators
    assert "<" in Enumerated(["a"], []).comparators


def test_a_hierarchy_is_a_tree_a_forest_or_a_dag() -> None:
    made = Hierarchy.from_tree({"a": {"b": {}, "c": None}, "d": {}}, {"c": "d", "b": ["d", "d"]})
    assert made.parents == {"a": (), "b": ("a", "d"), "c": ("a", "d"), "d": ()}
    assert Hierarchy({"x": "y"}).parents == {"x": ("y",), "y": ()}
    deep = Hierarchy({f"n{i}": [f"n{i + 1}"] for i in range(20_000)})
    assert len(deep.values) == 20_001
    with pytest.raises(SchemaError, match="second parent under 'parents'"):
        Hierarchy.from_tree({"a": {"b": {}}, "c": {"b": {}}})
