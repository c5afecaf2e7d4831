"""Equal events of a batch: found, kept apart from others, and answered alike."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Pairs
from tamis.match.default.matcher import Tamis
from tamis.match.default.passes.twin_events import (
    Twins,
    copy_twins,
    find_twins,
    with_twins,
    without_twins,
)
from tamis.match.default.structure.buckets import first_hash, next_hash
from tamis.match.lesubscribe.naive import Naive
from tamis.testing.matcher_checks import PlainEvent, add, batch_of, random_clause, random_event

Int32s = NDArray[np.int32]


def twins(events: list[PlainEvent], room: int = 0) -> tuple[int, list[int]]:
    pairs = batch_of(events).pairs
    size = 2
    while size < max(room, 2 * len(events)):
        size *= 2
    table = np.full(size, 99, np.int32)
    twin = np.full(len(events), -5, np.int32)
    return find_twins(*pairs, table, twin, 5), twin.tolist()


def first_equal(events: list[PlainEvent]) -> list[int]:
    """The number of the first equal event among different ones, in the order they come in."""
    known: dict[str, int] = {}
    return [known.setdefault(repr(sorted(event.items())), len(known)) for event in events]


few = st.integers(-2, 2)
plain_events = st.lists(
    st.dictionaries(st.integers(0, 3), st.lists(few, min_size=1, max_size=2), max_size=3),
    max_size=60,
)


@settings(max_examples=80)
@given(events=plain_events, room=st.sampled_from([0, 1024]))
def test_equal_events_are_found(events: list[PlainEvent], room: int) -> None:
    right = first_equal(events)
    assert twins(events, room) == (len(set(right)), right)


def test_events_that_differ_in_one_thing_are_kept_apart() -> None:
    events: list[PlainEvent] = [
        {},
        {0: [1]},
        {1: [1]},
        {0: [0]},
        {0: [-1]},
        {0: [2**63 - 1]},
        {0: [-(2**63)]},
        {0: [1, 1]},
        {0: [1], 1: [1]},
        {0: [1, 2]},
        {0: [2, 1]},
        {0: [1], 1: [2]},
        {0: [1], 2: [2]},
    ]
    both = [event for event in events for _ in range(2)]
    assert twins(both) == (13, [number for number in range(13) for _ in range(2)])


def test_events_of_the_same_hash_are_kept_apart() -> None:
    """A code and an attribute that give the same hash as another code of another attribute."""
    events: list[PlainEvent] = [{0: [1 << 40]}, {1: [0]}, {2: [3 << 40]}, {3: [2 << 40]}]
    seeds = {
        next_hash(first_hash(1, 0), code ^ (attribute << 40))
        for event in events
        for attribute, (code,) in event.items()
    }
    if len(seeds) == len(events):
        pytest.skip("hashes are made otherwise by now")
    assert twins(events * 3) == (4, [0, 1, 2, 3] * 3)


def test_as_many_different_events_as_the_table_has_room_for() -> None:
    """The fullest that a table gets, where many meet others on their way."""
    chance = random.Random(1)
    events: list[PlainEvent] = [{0: [chance.randrange(10**9)]} for _ in range(2048)]
    assert twins(events)[1] == first_equal(events)


def test_doubles_do_not_crowd_together() -> None:
    """How far events lie from where their hash says, when their codes are those of prices."""
    codes = (np.arange(1, 4097) / 4).view(np.int64)
    pairs = Pairs(np.arange(4097, dtype=np.int64), np.zeros(4096, np.int32), codes)
    table, twin = np.empty(8192, np.int32), np.empty(4096, np.int32)
    assert find_twins(*pairs, table, twin, 5) == 4096
    runs = np.diff(np.flatnonzero(np.concatenate([[True], table < 0, [True]])))
    assert runs.max() < 200, "events stand in long rows, each of which is searched from its start"


def sets(starts: NDArray[np.int64], slots: Int32s) -> list[list[int]]:
    return [slots[a:b].tolist() for a, b in pairwise(starts.tolist())]


def test_answers_are_copied_to_twins() -> None:
    twin = np.array([0, 1, 0, 2, 1, 1], np.int32)
    starts, slots = np.array([0, 2, 2, 5]), np.array([7, 8, 1, 2, 3], np.int32)
    wanted = [[7, 8], [], [7, 8], [1, 2, 3], [], []]
    for size in (0, 6, 7, 8, 100):
        room = np.full(size, -1, np.int32)
        all_starts, out = with_twins(twin, starts, slots, room)
        assert sets(all_starts, out) == wanted
        assert size < 7 or (out is room and (room[7:] == -1).all())
    out = np.full(9, -1, np.int32)
    copy_twins(twin, starts, slots, np.array([0, 2, 2, 4, 7, 7, 7]), out)
    assert out.tolist() == [7, 8, 7, 8, 1, 2, 3, -1, -1]


def test_few_events_and_different_ones_are_left_as_they_are() -> None:
    same: list[PlainEvent] = [{0: [1]}] * 31
    different: list[PlainEvent] = [{0: [number]} for number in range(100)]
    for events in (same, different, different + different[:10], []):
        pairs = batch_of(events).pairs
        kept, twin, _ = without_twins(pairs)
        assert kept is pairs
        assert twin is None


def test_a_batch_without_its_twins_is_the_different_events_in_order() -> None:
    chance = random.Random(2)
    some = [random_event(chance, 4) for _ in range(20)]
    events = [chance.choice(some) for _ in range(200)]
    kept, twin, _ = without_twins(batch_of(events).pairs)
    assert twin is not None
    assert twin.tolist() == first_equal(events)
    first = [events[twin.tolist().index(number)] for number in range(max(twin) + 1)]
    for mine, right in zip(kept, batch_of(first).pairs, strict=True):
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("different", [1, 7, 150, 3000])
def test_answers_are_the_same_with_twins_and_without(different: int, threads: int) -> None:
    chance = random.Random(different)
    clauses = {slot: random_clause(chance, 4) for slot in range(700)}
    some = [random_event(chance, 4) for _ in range(different)]
    events = [chance.choice(some) for _ in range(500)]
    matcher, naive = Tamis(threads=threads), Naive()
    add(matcher, clauses)
    add(naive, clauses)
    batch = batch_of(events)
    found, right = matcher.match(batch), naive.match(batch)
    assert [sorted(slots) for slots in found] == [sorted(slots) for slots in right]
    # 31 events at a time are too few to be searched for twins.
    for size in (1, 2, 31, 32, 33):
        parts = [matcher.match(batch[at : at + size]) for at in range(0, 100, size)]
        whole = [sorted(slots) for part in parts for slots in part]
        assert whole == [sorted(slots) for slots in list(right)[: len(whole)]]


def test_a_part_of_a_batch_has_twins_of_its_own() -> None:
    matcher = Tamis()
    add(matcher, {slot: [(0, 0, 0, slot, slot)] for slot in range(10)})
    starts = np.arange(201, dtype=np.int64)
    batch = EventBatch(200, pairs=Pairs(starts, np.zeros(200, np.int32), starts[:-1] // 20))
    assert list(matcher.match(batch[50:150])) == [[e // 20] for e in range(50, 150)]


def test_batches_after_one_without_twins_are_taken_as_they_are() -> None:
    different = batch_of([{0: [each]} for each in range(2_000)]).pairs
    same = batch_of([{0: [each % 7]} for each in range(2_000)]).pairs
    twins = Twins()
    assert twins.without(same)[1] is not None
    assert twins.without(same)[1] is not None
    assert twins.without(different)[1] is None
    passed = 0
    while twins.without(same)[1] is None:  # it looks again after a while
        passed += 1
    assert passed == 7
    assert twins.without(same)[1] is not None
    few = batch_of([{0: [each % 7]} for each in range(100)]).pairs
    assert twins.without(different)[1] is None
    assert twins.without(few)[1] is not None, "a small batch is looked at anyhow"
