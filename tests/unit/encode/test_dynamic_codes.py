"""Keys of dynamic values are in the order of the values, and exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis import Engine
from tamis.encode.columns import column_codes
from tamis.encode.dynamic_codes import key_of
from tamis.encode.encoder import Encoder
from tamis.errors import EventError
from tamis.model.dynamic import Dynamic, kind_of_value
from tamis.model.schema import Schema

integers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.builds(
        lambda power, sign, near: max(-(2**63), min(2**63 - 1, sign * 2**power + near)),
        st.integers(50, 63),
        st.sampled_from((-1, 1)),
        st.integers(-1100, 1100),
    ),
)
numbers = st.one_of(integers, st.floats(allow_nan=False, allow_infinity=False), integers.map(float))
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(st.characters(codec="utf-8")))
_ORDER = ("null", "boolean", "number", "text", "object")


@given(numbers, numbers)
@example(2**63 - 1, 2.0**63)
@example(-(2**63), -(2.0**63))
@example(2**53, 2**53 + 1)
@example(2**53 + 1, 2.0**53 + 2)
@example(2**63 - 1025, 2.0**63 - 1024)
@example(-0.0, 0)
@example(-math.ulp(0.0), 0.0)
@example(math.ulp(0.0), 0)
@example(1, 1.0)
def test_numbers_compare_as_their_keys_do(one: float, other: float) -> None:
    left, right = (key_of(Dynamic().value(each)) for each in (one, other))
    assert (left < right, left == right) == (one < other, one == other)
    assert len(left) == len(right) == 20


@given(scalars, scalars)
@example(True, 1)
@example("1", 1)
@example("", None)
def test_kinds_have_keys_of_their_own(one: Any, other: Any) -> None:
    left, right = kind_of_value(one), kind_of_value(other)
    if left != right:
        assert (key_of(one) < key_of(other)) == (_ORDER.index(left) < _ORDER.index(right))
    elif left == "text":
        assert (key_of(one) < key_of(other)) == (one < other)


@given(scalars)
def test_every_value_is_below_an_object(value: Any) -> None:
    assert key_of(value) < key_of({"a": 1}) == key_of([])


@given(
    st.lists(scalars, max_size=8),
    st.one_of(
        st.lists(st.integers(-(2**53), 2**53), min_size=4).map(pa.array),
        st.lists(st.floats(allow_nan=False), min_size=4).map(pa.array),
    ),
)
@example([2**53 + 1, 2**53, "a"], pa.array([2.0**53, 2.0**53 + 2, 5.0, -0.0]))
@example([], pa.array([1, 2, 3, 4]))
@example([*range(-40, 40), 2**53 + 1, 0.5], pa.array([*range(-99, 99), 0.5, -0.0, 2.0**53] * 2))
def test_a_column_of_numbers_has_the_codes_of_its_values(
    constants: list[Any], column: pa.Array
) -> None:
    encoder = Encoder(Schema.open())
    encoder.labels[0].add({key_of(each): 1 for each in constants})
    right, wrong, _ = column_codes(encoder, 0, column)
    found, also_wrong, _ = column_codes(encoder, 0, column, texts=False)
    good = np.ones(len(column), np.bool_) if wrong is None else ~wrong
    assert found[good].tolist() == right[good].tolist()
    assert (wrong is None) == (also_wrong is None)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[[1]]]),
        pa.array([[[1, 2]]], pa.list_(pa.large_list(pa.int64()))),
        pa.array([[[1, 2]]], pa.list_(pa.list_(pa.int64(), 2))),
    ],
)
def test_a_list_within_a_list_is_no_value_at_any_door(column: pa.Array) -> None:
    engine = Engine(Schema.from_dict({"attributes": {"any": "dynamic"}}))
    engine.subscribe("any exists")
    for events in (pa.table({"any": column}), [{"any": [[1]]}]):
        with pytest.raises(EventError, match="list, expected a value of JSON"):
            engine.match_batch(events)
    objects = pa.table({"any": [{"a": 1}]})
    assert [*engine.match_batch(objects)] == [*engine.match_batch([{"any": {"a": 1}}])] == [[0]]
