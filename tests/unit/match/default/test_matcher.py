"""The fast matcher answers as the naive one does, whatever it is asked and however it lies."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.encode.terms import Row
from tamis.engine import Engine
from tamis.files.arrays import Arrays
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.match.capabilities import match_bits, restore, saved_form
from tamis.match.default import index_updates as growth
from tamis.match.default.matcher import Tamis
from tamis.match.default.passes.batch_pass import take_out_framed
from tamis.match.default.passes.frame import Frame
from tamis.match.default.structure.packed_clauses import PackedClauses
from tamis.match.lesubscribe.naive import Naive
from tamis.match.plan import COMBINATION
from tamis.model.schema import Schema
from tamis.testing.matcher_checks import PlainEvent, add, batch_of
from tests.unit.match.default.two_matchers import (
    FEW,
    LISTS,
    POINTS,
    UNKNOWN,
    Both,
    Clause,
    filled,
    one_clause,
    same_answer,
    some_clauses,
    some_events,
)


@pytest.mark.parametrize("many", [1, 100, 600, 3000])
def test_clauses_of_all_sorts(many: int) -> None:
    """Few enough for one block, and enough for keys; added at once and one by one."""
    chance = random.Random(many)
    both = filled(many)
    batch = some_events(chance, 200)
    both.agree(batch)
    both.agree_on_bits(batch)
    for _ in range(3):
        both.agree(some_events(chance, 1))
    for clause in some_clauses(chance, 60):
        both.add([clause])
    both.remove(random.Random(2).sample(sorted(both.live), many // 3))
    both.agree(batch)
    both.agree_on_bits(batch)
    both.tamis.check()


def test_growing_past_every_threshold() -> None:
    chance = random.Random(3)
    both = Both()
    for many in (0, 1, 60, 100, 439, 2400):
        both.add(some_clauses(chance, many))
        both.agree(some_events(chance, 100))
        both.agree_on_bits(some_events(chance, 5))
    while len(both.live) > 100:
        both.remove(chance.sample(sorted(both.live), len(both.live) // 3))
        both.agree(some_events(chance, 70))
        both.tamis.check()
    both.agree_on_bits(some_events(chance, 70))


def test_an_empty_batch() -> None:
    for many in (0, 5, 700):
        both = filled(many)
        for _ in range(2):
            assert len(both.tamis.match(batch_of([]))) == 0
            assert len(match_bits(both.tamis, batch_of([]))) == 0
            both.agree(some_events(random.Random(1), 2))
    both.add([[], []], [5000, 5001])  # clauses without terms
    events = batch_of([{}, {UNKNOWN: [3]}, {0: [5, 6]}])
    assert {5000, 5001} <= set(both.agree(events)[0])
    both.agree_on_bits(events)


@pytest.mark.parametrize("many", [0, 2, 700])
@pytest.mark.parametrize("size", [1, 63, 64, 100, 2000])
def test_first_events_that_have_nothing_that_clauses_ask_about(many: int, size: int) -> None:
    """There is nothing to learn from them, and they are answered all the same."""
    both = filled(many)
    for event in ({}, {UNKNOWN: [1]}, {UNKNOWN: [1, 2], 2000: [3]}):
        batch = batch_of([event] * size)
        both.agree(batch)
        both.agree_on_bits(batch)
    both.agree(some_events(random.Random(5), size))


@pytest.mark.parametrize("before", [0, 700])
def test_clauses_of_forty_terms(before: int) -> None:
    """More than are looked at when a place is chosen: the last ones decide here."""
    both = filled(before)
    rows: list[Row] = [(20 + a, a, SOME, 0, 9) for a in range(40)]
    long: list[Clause] = []
    for last in range(10):
        long.append([*rows[:-1], (59, 39, SOME, last, 9)])
        long.append([(0, 0, SOME, last, last), *((a, t + 1, *rest) for a, t, *rest in rows)])  # type: ignore[list-item]
        long.append([*rows, (60, 40, NONE, last, last)])
    chance = random.Random(6)
    events: list[PlainEvent] = []
    for _ in range(60):
        event: PlainEvent = {20 + a: [5] for a in range(40)}
        event |= {0: [chance.randrange(10)], 59: [chance.randrange(12)]}
        if chance.random() < 0.7:
            event[60] = [chance.randrange(10) for _ in range(chance.randint(1, 2))]
        if chance.random() < 0.2:
            del event[chance.randrange(20, 60)]
        events.append(event)
    batch = batch_of(events)
    both.agree(batch)
    both.add(long)  # to a plan that did not know of them
    both.agree(batch)
    fresh = Both()
    fresh.add(both.live.values())
    assert fresh.agree(batch).total > 100
    fresh.agree_on_bits(batch)
    fresh.remove(list(fresh.live)[::2])
    fresh.agree(batch)


@pytest.mark.parametrize("length", LISTS)
def test_lists_of_values(length: int) -> None:
    chance = random.Random(length)
    clauses: list[Clause] = []
    for _ in range(1500):
        values = sorted(chance.sample(range(POINTS), length))
        clauses.append([(0, 0, SOME, value, value) for value in values])
    both = Both()
    both.add(clauses)
    events: list[PlainEvent] = [{0: [chance.randrange(POINTS)]} for _ in range(150)]
    events += [{0: [chance.randrange(POINTS) for _ in range(3)]} for _ in range(50)]
    events.append({0: [row[3] for row in clauses[0]]})  # all of one list at once
    assert both.agree(batch_of(events)).total > 0
    both.agree_on_bits(batch_of(events))
    both.remove(range(0, 1500, 2))
    both.agree(batch_of(events))


def test_combinations_of_several_values() -> None:
    """Every choice of one value each is looked up, hundreds where events have many values."""
    both = Both()
    chance = random.Random(7)
    both.add(
        [(6, 0, SOME, one, one), (7, 1, SOME, two, two)] for one in range(FEW) for two in range(FEW)
    )
    both.add([*one_clause(chance, 4), (8, 2, SOME, 0, 5)] for _ in range(500))
    events: list[PlainEvent] = [
        {6: [chance.randrange(FEW)], 7: [chance.randrange(FEW)], 8: [3]} for _ in range(100)
    ]
    both.agree(batch_of(events))
    places = [route for route in both.tamis.plan().routes if route.sort == COMBINATION]
    assert sum(route.clauses for route in places) > 20_000
    for one, two in ((1, 2), (3, 4), (30, 40), (FEW, FEW)):
        events[::10] = [
            {
                0: [1, 2],
                6: chance.sample(range(FEW), one),
                7: chance.sample(range(FEW), two),
                8: [9, 3],
            }
            for _ in range(10)
        ]
        found = both.agree(batch_of(events))
        assert len(found[0]) >= one * two
    both.agree_on_bits(batch_of(events))


def test_thousands_of_attributes() -> None:
    chance = random.Random(8)
    both = Both()
    width = 3000

    def attribute() -> int:
        return int(width * chance.random() ** 3)

    def clause() -> list[Row]:
        names = sorted({attribute() for _ in range(3)})
        rows: list[Row] = []
        for term, name in enumerate(names):
            low = chance.randrange(50)
            shape = chance.random()
            if shape < 0.1:
                rows.append((name, term, MISSING, 0, -1))
            else:
                rows.append((name, term, SOME, low, low if shape < 0.6 else low + 20))
        return rows

    def event() -> PlainEvent:
        values = {attribute(): [chance.randrange(60)] for _ in range(80)}
        return values | {width - 1: [1]}

    both.add(clause() for _ in range(3000))
    batch = batch_of([event() for _ in range(120)])
    assert both.agree(batch).total > 300
    both.agree_on_bits(batch)
    both.add([[(width + 5, 0, SOME, 3, 3)], [(width + 5, 0, MISSING, 0, -1)]])  # wider still
    both.agree(batch_of([{width + 5: [3]}, {width + 5: [4], 1: [2]}, {}]))
    both.agree(batch)


def test_pickling() -> None:
    both = filled(1500, threads=2)
    chance = random.Random(11)
    batch = some_events(chance, 300)
    both.agree(batch)
    other: Tamis = pickle.loads(pickle.dumps(both.tamis))
    other.check()
    assert other.threads == 2
    same_answer(other.match(batch), both.naive.match(batch))
    both.tamis = other
    both.remove(range(0, 1500, 3))
    both.add(some_clauses(chance, 300))
    both.agree(batch)
    both.agree_on_bits(batch)


def test_attributes_that_only_clauses_that_are_gone_asked_about() -> None:
    """The table is packed and narrower, the index is as it was, and a new worker starts."""
    both = Both()
    both.add([[(2, 0, SOME, i, i)] for i in range(500)])
    both.add([(40, t, SOME, i, i + t) for t in range(10)] for i in range(500))
    events: list[PlainEvent] = [{2: [i], 40: [i]} for i in range(200)]
    both.agree(batch_of(events))
    both.remove(range(500, 1000))
    both.tamis = pickle.loads(pickle.dumps(both.tamis))
    both.agree(batch_of(events))
    both.agree(batch_of([{40: [3, 4]}, {2: [1], 39: [1], 40: [1]}]))


def test_removing_everything_gives_the_memory_back() -> None:
    empty = Tamis().nbytes
    both = filled(3000)
    chance = random.Random(12)
    both.agree(some_events(chance, 200))
    full = both.tamis.nbytes
    assert full > 100 * max(1, empty)
    for _ in range(2):
        both.remove(list(both.live))
        assert both.tamis.nbytes == empty
        both.agree(some_events(chance, 100))
        both.add(some_clauses(chance, 600))
        both.agree(some_events(chance, 100))


def test_churn_does_not_grow_it() -> None:
    chance = random.Random(13)
    both = filled(2000)
    both.agree(some_events(chance, 100))
    full = both.tamis.nbytes
    for _ in range(30):
        gone = chance.sample(sorted(both.live), 300)
        both.remove(gone)
        both.add(some_clauses(chance, 300), gone)
        both.agree(some_events(chance, 10))
    assert both.tamis.nbytes < 3 * full
    both.tamis.check()


def test_text_labels_that_move() -> None:
    """Constants that crowd into one gap, among hundreds of others: clauses follow their labels."""
    schema = Schema.from_dict({"attributes": {"title": "text", "price": "integer"}})
    both = Engine(schema, "tamis"), Engine(schema, Naive())
    texts = [f"{chr(97 + i % 26)}{i}" for i in range(700)]
    for number, text in enumerate(texts):
        for engine in both:
            engine.subscribe(f'title = "{text}" and price < {number}')
    events: list[dict[str, object]] = [
        {"title": text, "price": number} for number, text in enumerate(texts[::7])
    ]

    def same() -> None:
        found, right = (engine.match_batch(events) for engine in both)
        assert [sorted(ids) for ids in found] == [sorted(ids) for ids in right]

    same()
    for number in range(100):
        constant = "m" * (number // 2) + "az"[number % 2]
        for engine in both:
            engine.subscribe(f'title = "b{constant}"')
            engine.subscribe(f'title > "b" and title < "b{constant}"')
        events.append({"title": f"b{constant}", "price": 5})
        if number % 20 == 0:
            same()
    same()
    both[0].check()


def test_slots_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code does not notice a write past the end, so it must not be asked for one."""
    both = filled(700)
    batch = some_events(random.Random(16), 50)
    both.agree(batch)
    (framed,) = both.tamis._indexes()
    far, known = 10**6, len(framed.record.kind)
    asked: list[int] = []

    def guarded(frame: Frame, clauses: PackedClauses, slots: NDArray[np.int64]) -> bool:
        asked.extend(slots.tolist())
        return take_out_framed(frame, clauses, slots[slots < known])

    monkeypatch.setattr(growth, "take_out_framed", guarded)
    both.remove([3])
    for empty in (3, far):
        with pytest.raises(ValueError, match="cannot be emptied"):
            both.tamis.remove(np.array([empty]))
        both.agree(batch)
    assert far not in asked
    with pytest.raises(ValueError, match="cannot take another"):
        add(both.tamis, {4: []})
    both.agree(batch)


def test_an_index_saved_without_a_guide_is_given_one() -> None:
    chance = random.Random(3)
    both = filled(500, seed=3)
    events = some_events(chance, 200)
    both.agree(events)
    saved = {
        name: each for name, each in saved_form(both.tamis).arrays.items() if "guide" not in name
    }
    assert len(saved) == len(saved_form(both.tamis).arrays) - 4
    other = Tamis()
    restore(other, Arrays(saved), saved_form(both.tamis).facts)
    same_answer(other.match(events), both.naive.match(events))
    assert sorted(saved_form(other).arrays) == sorted(saved_form(both.tamis).arrays)
