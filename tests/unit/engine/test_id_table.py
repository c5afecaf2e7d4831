"""Answers look ids up when they are read, and give those of the moment they were made in."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tamis import Engine, Schema
from tamis.encode.batch import EventBatch
from tamis.match.answers import FoundSlots, Matches, SlotIds
from tamis.match.bitmaps import Bitmaps
from tamis.match.lesubscribe.naive import Naive

SCHEMA = Schema.from_dict({"attributes": {"n": "integer", "s": "text"}})
EVENTS: list[dict[str, Any]] = [{"n": 1}, {"n": 2}, {"n": 1, "s": "x"}]
Ask = Callable[[Engine], Matches | Bitmaps]
ASKS: dict[str, Ask] = {
    "lists": lambda engine: engine.match_batch(EVENTS),
    "bits": lambda engine: engine.match_bitmap(EVENTS),
}


class Narrow(Naive):
    """Answers with slots of 32 bits."""

    def find(self, batch: EventBatch) -> Matches:
        found = super().find(batch)
        return Matches(found.starts, found.slots.astype(np.int32))


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids were looked up, call by call."""
    calls: list[int] = []
    of = SlotIds.of

    def counted(self: SlotIds, slots: FoundSlots) -> NDArray[Any]:
        calls.append(len(slots))
        return of(self, slots)

    monkeypatch.setattr(SlotIds, "of", counted)
    return calls


def test_ids_are_looked_up_where_they_are_read(looked_up: list[int]) -> None:
    engine = Engine(SCHEMA, Narrow())
    for number in range(10):
        engine.subscribe(f"n = {number % 2 + 1}", id=number)
    found = engine.match_batch(EVENTS)
    assert found.slots.dtype == np.int32
    assert (len(found), found.total, found.starts.tolist()) == (3, 15, [0, 5, 10, 15])
    assert len(found.events) == 15
    assert looked_up == []
    assert sorted(found[1]) == [1, 3, 5, 7, 9]
    assert looked_up == [5]
    assert found.subscriptions.tolist() == [id for ids in found for id in ids]
    assert found.subscriptions.dtype == np.int64
    before = list(looked_up)
    assert sorted(found[0]) == [0, 2, 4, 6, 8]
    assert looked_up == before, "once all are known, they are kept"


def test_a_matchers_slots_are_handed_on_as_they_are() -> None:
    class Keeps(Narrow):
        def find(self, batch: EventBatch) -> Matches:
            self.found = super().find(batch)
            return self.found

    matcher = Keeps()
    engine = Engine(SCHEMA, matcher)
    engine.subscribe("n = 1")
    assert engine.match_batch(EVENTS).slots is matcher.found.slots
    engine.subscribe("n = 1 or s = x", id="either")
    found = engine.match_batch(EVENTS)
    assert sorted(map(str, found[2])) == ["0", "either"]
    assert found.slots.dtype == np.int32
    assert matcher.found.total == 5, "the matcher's own answer is left alone"


def test_counting_bits_looks_nothing_up(looked_up: list[int]) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("n = 1 or s = x", id="a")
    found = engine.match_bitmap(EVENTS)
    assert found.counts().tolist() == [1, 0, 1]
    assert (found.total, len(found), len(found.union())) == (2, 3, 1)
    assert looked_up == []
    assert found[0] == ["a"]
    assert looked_up == [1]


@pytest.mark.parametrize("ask", ASKS)
@settings(max_examples=60)
@given(data=st.data())
def test_an_answer_stays_what_it_was_whatever_comes_and_goes(ask: str, data: st.DataObject) -> None:
    engine = Engine(SCHEMA, "naive")
    made: list[tuple[Matches | Bitmaps, list[list[Any]]]] = []
    steps = data.draw(st.lists(st.sampled_from("ssttuuumd"), min_size=5, max_size=40))
    for number, step in enumerate(steps):
        if step in "st":  # ids are numbers and texts, and never used twice
            condition = data.draw(st.sampled_from(["n = 1", "n = 1 or s = x", "n = 2"]))
            engine.subscribe(condition, id=number if step == "s" else f"t{number}")
        elif step == "u" and len(engine):
            engine.unsubscribe(data.draw(st.sampled_from(engine.ids())))
        elif step == "m":
            right = [sorted(engine.match(event), key=str) for event in EVENTS]
            made.append((ASKS[ask](engine), right))
        elif step == "d" and made:
            made.pop(data.draw(st.integers(0, len(made) - 1)))
    for found, right in made:
        assert [sorted(ids, key=str) for ids in found] == right
        again = pickle.loads(pickle.dumps(found))
        assert [sorted(ids, key=str) for ids in again] == right
        if isinstance(found, Matches):
            assert sorted(map(str, found.subscriptions)) == sorted(str(i) for r in right for i in r)


@pytest.mark.parametrize("ask", ASKS)
def test_an_answer_outlives_its_engine_and_a_bulk_load_into_its_slots(ask: str) -> None:
    engine = Engine(SCHEMA)
    for number in range(100):
        engine.subscribe("n = 1", id=number)
    found = ASKS[ask](engine)
    for number in range(99):
        engine.unsubscribe(number)
    ids = [f"text {number}" for number in range(300)]
    engine.subscribe_table(pa.table({"id": ids, "condition": ["n = 1"] * 300}))
    assert min(ASKS[ask](engine)[0], key=str) == 99
    engine.unsubscribe(99)
    for id in ids:
        engine.unsubscribe(id)
    engine.subscribe("n = 1", id=-7)
    del engine
    assert sorted(found[0]) == list(range(100))


def test_ids_of_an_answer_are_plain_numbers_if_no_id_was_text_then() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("n = 1", id=5)
    before = engine.match_batch(EVENTS)
    engine.subscribe("n = 1", id="a")
    between = engine.match_batch(EVENTS)
    engine.unsubscribe("a")
    after = engine.match_batch(EVENTS)
    kinds = [found.subscriptions.dtype for found in (before, between, after)]
    assert kinds == [np.int64, object, np.int64]
    assert sorted(between[0], key=str) == [5, "a"]
    assert all(type(id) is int for id in between[0] if id != "a")


def test_a_pickled_answer_does_not_bring_along_who_did_not_match() -> None:
    engine = Engine(SCHEMA)
    for number in range(5000):
        engine.subscribe("n = 3", id=number)
    engine.subscribe("n = 1", id="yes")
    found = engine.match_batch(EVENTS)
    kept = pickle.dumps(found)
    assert len(kept) < 2000
    assert list(pickle.loads(kept)) == [["yes"], [], ["yes"]]
    assert pickle.loads(kept).to_arrow().equals(found.to_arrow())


def test_answers_are_read_while_another_thread_subscribes() -> None:
    engine = Engine(SCHEMA, "naive")
    for number in range(200):
        engine.subscribe("n = 1", id=number)
    wrong: list[Any] = []
    going = True

    def read() -> None:
        while going:
            found = engine.match_batch(EVENTS)
            ids = sorted(found[0])  # they go and come in order, one by one
            if ids != list(range(ids[0], ids[-1] + 1)) or not 199 <= len(ids) <= 200:
                wrong.append(ids)
            if sorted(found.subscriptions[: found.starts[1]]) != ids or sorted(found[2]) != ids:
                wrong.append(found)

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(200, 1200):
        engine.unsubscribe(number - 200)
        engine.subscribe("n = 1", id=number)
    going = False
    for reader in readers:
        reader.join()
    assert wrong == []
