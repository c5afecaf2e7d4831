"""Answers as bits: counts, sets, and whatever numbering of bits a matcher chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.encode.batch import EventBatch
from tamis.match.answers import Matches
from tamis.match.bitmaps import Bitmaps
from tamis.match.capabilities import AnswersInBits
from tamis.match.lesubscribe.naive import Naive
from tamis.model.condition import Condition
from tests.unit.engine.world import SCHEMA, conditions, events, expected, fill


class Scattered(Naive, AnswersInBits):
    """Numbers its bits from the end, with gaps that stand for nothing."""

    def find_bits(self, batch: EventBatch) -> Bitmaps:
        found = self.find(batch)
        slots = np.full(3 * self.clauses.slots + 70, -1, np.int32)
        bits = len(slots) - 1 - 3 * np.arange(self.clauses.slots)
        live = self.clauses.live_slots()
        slots[bits[live]] = live
        flags = np.zeros((len(batch), 64 * -(-len(slots) // 64)), np.bool_)
        flags[found.events, bits[found.slots]] = True
        return Bitmaps(np.packbits(flags, axis=1, bitorder="little").view("<u8"), slots)


def bitmaps(*rows: list[int], slots: int = 130) -> Bitmaps:
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    flat = np.array([slot for row in rows for slot in row], np.int32)
    return Bitmaps.of(Matches(starts, flat), np.arange(slots))


@settings(max_examples=60)
@given(given_=st.lists(conditions(), max_size=8), batch=st.lists(events(), max_size=5))
def test_bits_are_answered_as_the_semantics_say(
    given_: list[Condition], batch: list[dict[str, Any]]
) -> None:
    for matcher in (Naive(), Scattered()):
        engine = Engine(SCHEMA, matcher)
        live = fill(engine, given_)
        found = engine.match_bitmap(batch)
        right = [expected(live, event) for event in batch]
        assert [set(ids) for ids in found] == right
        assert found.counts().tolist() == [len(ids) for ids in right]
        ids, counts = found.per_subscription()
        assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == {
            id: sum(id in each for each in right) for id in live
        }


def test_sets_over_some_of_the_events() -> None:
    found = bitmaps([0, 64, 129], [64, 65], [], [64, 129])
    assert list(found) == [[0, 64, 129], [64, 65], [], [64, 129]]
    assert found.union()[0] == [0, 64, 65, 129]
    assert found.union([1, 2])[0] == [64, 65]
    assert found.union([])[0] == []
    assert found.intersection()[0] == []
    assert found.intersection([0, 3])[0] == [64, 129]
    assert found.intersection(np.array([-1]))[0] == [64, 129]
    assert len(found.union()) == 1
    with pytest.raises(ValueError, match="at least one event"):
        found.intersection([])
    for event in (4, -5):
        with pytest.raises(IndexError):
            found.union([event])
        with pytest.raises(IndexError):
            found[event]


def test_lists_and_bits_are_the_same_answer() -> None:
    rows = [[0, 63, 64], [], [127, 128, 129]]
    found = bitmaps(*rows)
    assert found.words.shape == (3, 3)
    lists = found.matches()
    assert list(lists) == rows
    assert lists.slots.dtype == np.int32
    assert (lists.total, found.total) == (6, 6)


def test_nothing_at_all() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"n": "integer"}}))
    for batch in ([], [{"n": 1}]):
        found = engine.match_bitmap(batch)
        assert list(found) == [[]] * len(batch)
        assert found.counts().tolist() == [0] * len(batch)
        assert len(found.per_subscription()[0]) == 0
        assert found.union()[0] == []
        assert len(found.subscriptions) == 0


def test_bits_that_stand_for_nothing_have_no_id() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"n": "integer"}}), "naive")
    engine.subscribe("n = 5", id=11)
    engine.subscribe("n = 1 or n = 2 or n = 3", id=12)
    engine.unsubscribe(11)
    found = engine.match_bitmap([{"n": 3}])
    assert found[0] == [12]
    assert sorted(found.subscriptions.tolist()) == [0, 0, 0, 12]
    assert found.per_subscription()[0].tolist() == [12]
    engine.subscribe("n = 5", id="a")
    named = engine.match_bitmap([{"n": 3}])
    assert sorted(map(str, named.subscriptions)) == ["12", "None", "None", "a"]
    assert found.subscriptions.dtype == np.int64


def test_picking_clearing_and_folding_bits() -> None:
    found = bitmaps([1, 70], [1, 2], [70], [2, 3])
    events_, which = found.pairs(np.array([2, 70]))
    pairs = sorted(zip(events_.tolist(), which.tolist(), strict=True))
    assert pairs == [(0, 1), (1, 0), (2, 1), (3, 0)]
    found.clear(np.array([0, 3]), np.array([70, 2]))
    assert list(found) == [[1], [1, 2], [70], [3]]
    folded = found.fold(np.array([2, 70]), np.array([1, 1]))
    assert list(folded) == [[1], [1], [1], [3]]
    assert folded.slots[[1, 2, 70]].tolist() == [1, -1, -1]
    assert found.slots[2] == 2, "the slots of a matcher are not written in"
