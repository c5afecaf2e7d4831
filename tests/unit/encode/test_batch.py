"""Event batches: pairs and columns are two forms of the same, and cutting keeps both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine
from tamis.encode.batch import Column, EventBatch, Pairs, Texts
from tests.unit.engine.world import SCHEMA, events

Rows = list[dict[int, list[int]]]
rows = st.lists(
    st.dictionaries(
        st.integers(0, 5), st.lists(st.integers(-3, 3), min_size=1, max_size=3), max_size=4
    ),
    max_size=6,
)


def from_rows(given_: Rows) -> EventBatch:
    flat = [(at, code) for event in given_ for at in sorted(event) for code in event[at]]
    starts = np.cumsum([0, *(sum(map(len, event.values())) for event in given_)])
    return EventBatch(
        len(given_),
        pairs=Pairs(
            starts.astype(np.int64),
            np.array([at for at, _ in flat], np.int32),
            np.array([code for _, code in flat], np.int64),
        ),
    )


def to_rows(batch: EventBatch) -> Rows:
    starts, attribute, code = batch.pairs
    found: Rows = []
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        event: dict[int, list[int]] = {}
        for at, value in zip(
            attribute[first:last].tolist(), code[first:last].tolist(), strict=True
        ):
            event.setdefault(at, []).append(value)
        assert list(event) == sorted(event), "by ascending attribute"
        found.append(event)
    return found


@given(given_=rows)
def test_pairs_to_columns_and_back(given_: Rows) -> None:
    batch = from_rows(given_)
    again = EventBatch(len(given_), columns=batch.columns)
    assert to_rows(again) == given_
    for at, column in batch.columns.items():
        bound = [i for i, event in enumerate(given_) for _ in event.get(at, ())]
        assert column.codes.tolist() == [c for event in given_ for c in event.get(at, ())]
        if column.rows is None:
            assert bound == list(range(len(given_)))
        else:
            assert column.rows.tolist() == bound


@given(given_=rows, first=st.integers(-8, 8), last=st.none() | st.integers(-8, 8))
def test_a_cut_of_a_batch_is_the_batch_of_the_cut(
    given_: Rows, first: int, last: int | None
) -> None:
    for batch in (from_rows(given_), EventBatch(len(given_), columns=from_rows(given_).columns)):
        cut = batch[first:last]
        assert to_rows(cut) == given_[first:last]
        assert len(cut) == len(given_[first:last])


def test_dense_columns_become_pairs_and_what_is_refused() -> None:
    columns = {2: Column(np.array([5, 6])), 0: Column(np.array([1, 2]))}
    assert to_rows(EventBatch(2, columns=columns)) == [{0: [1], 2: [5]}, {0: [2], 2: [6]}]
    with pytest.raises(ValueError, match="columns or of pairs"):
        EventBatch(1)
    with pytest.raises(ValueError, match="step"):
        from_rows([{}, {}])[::2]


@settings(max_examples=60)
@given(
    batch=st.lists(events(), min_size=1, max_size=6),
    first=st.integers(0, 6),
    size=st.integers(0, 6),
)
def test_cutting_an_encoded_batch_keeps_codes_texts_and_answers(
    batch: list[dict[str, Any]], first: int, size: int
) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe('s ends with "a" or ws like "%b%"', id=1)
    engine.subscribe('s < "ab"', id=2)
    whole = engine.encode(batch)
    part = whole[first : first + size]
    again = engine.encode(batch[first : first + size])
    assert to_rows(part) == to_rows(again)
    left, right = engine.match_batch(part), engine.match_batch(again)
    assert [sorted(each) for each in left] == [sorted(each) for each in right]


def test_texts_are_cut_with_or_without_rows() -> None:
    pairs = from_rows([{0: [1]}, {0: [1]}, {0: [1]}]).pairs
    dense = Texts(["x", "y"], np.array([0, 1, 0]), None)
    sparse = Texts(["x", "y"], np.array([0, 1]), np.array([0, 2]))
    cut = EventBatch(3, pairs=pairs, texts={0: dense, 1: sparse})[1:3]
    assert cut.texts[0].which.tolist() == [1, 0]
    assert cut.texts[1].which.tolist() == [1]
    assert cut.texts[1].rows is not None
    assert cut.texts[1].rows.tolist() == [1]
