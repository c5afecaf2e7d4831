"""Answers of the fast matcher: cut among threads, written in turns, and kept by who asks."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from tamis import Engine, Schema
from tamis.match.capabilities import match_bits
from tamis.match.default import workers
from tamis.match.default.matcher import Tamis
from tamis.match.default.passes.buffers import AnswerBuffers
from tamis.testing.matcher_checks import add, batch_of
from tests.schemas import one_type
from tests.unit.match.default.two_matchers import (
    MOST,
    Both,
    filled,
    one_clause,
    pairs_of,
    some_clauses,
    some_events,
)


class Batches:
    """A matcher's clauses, a long batch, and the pairs that the naive one finds."""

    def __init__(self) -> None:
        self.clauses = some_clauses(random.Random(1), 1500)
        self.batch = some_events(random.Random(4), 5000)
        both = Both()
        both.add(self.clauses)
        self.right = pairs_of(both.naive.match(self.batch))


@pytest.fixture(scope="module")
def batches() -> Batches:
    return Batches()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by", ["events", "blocks"])
def test_batches_of_any_size(
    batches: Batches, threads: int, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are shared out among threads, or blocks are, where events are few."""
    if by == "blocks":
        monkeypatch.setattr(workers, "_BLOCKS", 1)
    matcher = Tamis(threads=threads)
    add(matcher, dict(enumerate(batches.clauses)))
    for size in (1000, 0, 1, 63, 64, 127, 128, 5000):
        batch = batches.batch[:size]
        here = batches.right[batches.right < size << 32]
        np.testing.assert_array_equal(pairs_of(matcher.match(batch)), here)
        if size < 5000:
            bits = match_bits(matcher, batch)
            np.testing.assert_array_equal(pairs_of(bits.matches()), here)


@pytest.mark.parametrize("threads", [1, 2])
def test_more_that_most_events_match_than_is_written_down_at_once(threads: int) -> None:
    """Thousands for each event, from bitmaps, beside those from everywhere else."""
    chance = random.Random(7)
    both = Both(threads)
    both.add(one_clause(chance, 3) for _ in range(9500))
    both.add(one_clause(chance, chance.choice((0, 1, 2, 6))) for _ in range(1000))
    for size in (150, 1, 7):
        batch = some_events(chance, size)
        assert both.agree(batch).total > 5000 * size
        both.agree_on_bits(batch)
    both.remove(chance.sample(range(9500), 3000))
    both.agree(some_events(chance, 50))
    both.agree_on_bits(some_events(chance, 50))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_answer_that_is_kept_does_not_change(threads: int) -> None:
    """Room is used again for the next answer only if nobody has the last one any more."""
    both = filled(2000, threads=threads)
    chance = random.Random(9)
    kept = []
    for size in (1, 5, 200, 200, 40, 1):
        events = some_events(chance, size)
        twice = batch_of([{0: [7], 6: [1], 7: [2]}, {5: [MOST // 2]}] * size)  # answered once each
        for batch in (events, twice):
            found = both.agree(batch)
            part = both.tamis.match(batch).slots[: found.total // 2]  # of an answer that is gone
            kept.append((found, list(found), part, part.tolist()))
    for found, listed, part, values in kept:
        assert list(found) == listed
        assert part.tolist() == values


@pytest.mark.parametrize("threads", [1, 2])
def test_bits_that_are_kept_do_not_change(threads: int) -> None:
    """And what whoever had them wrote into them is not in the next answer."""
    both = filled(2000, threads=threads)
    chance = random.Random(9)
    kept = []
    for size in (1, 200, 150, 40, 200, 1):
        batch = some_events(chance, size)
        both.agree_on_bits(batch)
        bits = match_bits(both.tamis, batch)
        kept.append((bits, bits.words.copy(), bits.slots.copy()))
        other = match_bits(both.tamis, batch)
        other.words[:] = ~np.uint64(0)
        del other
        both.agree_on_bits(batch)
    for bits, words, slots in kept:
        np.testing.assert_array_equal(bits.words, words)
        np.testing.assert_array_equal(bits.slots, slots)


def test_room_is_used_again_when_nobody_has_the_answer() -> None:
    both = filled(2000)
    batch = some_events(random.Random(10), 50)
    first = both.tamis.match(batch).slots.ctypes.data
    where = {both.tamis.match(batch).slots.ctypes.data for _ in range(5)}
    assert where == {first}
    held = both.tamis.match(batch)
    assert both.tamis.match(batch).slots.ctypes.data != held.slots.ctypes.data


def test_whoever_matches_in_a_loop_holds_one_answer_while_the_next_is_made() -> None:
    both = filled(2000)
    batch = some_events(random.Random(10), 50)
    where = []
    for _ in range(6):
        answer = both.tamis.match(batch)
        where.append(answer.slots.ctypes.data)
    assert len(set(where)) == 2
    assert all(one != next_ for one, next_ in pairwise(where))


def test_new_room_is_as_large_as_the_last_answer() -> None:
    """With too little room, a whole chunk of events would have to be matched again."""
    recycled = AnswerBuffers()
    answers = [np.empty(2000, np.int32)[:1000] for _ in range(2)]  # both are held
    for answer in answers:
        assert answer.base is not None
        recycled.keep(answer.base, len(answer))
    assert len(recycled.take()) >= 1000


@pytest.mark.slow
def test_an_event_with_very_many_values_does_not_try_all_their_combinations() -> None:
    """Two attributes of 2,000 values each would be four million keys."""
    schema = Schema.from_dict(one_type("e", {"a": "integer*", "b": "integer*"}))
    chance = random.Random(5)
    engine, other = Engine(schema), Engine(schema, "scan")
    pairs = [(a, b) for a in range(150) for b in range(150)]
    for a, b in chance.sample(pairs, 5000):
        for each in (engine, other):
            each.subscribe(f"a = {a} and b = {b}")
    usual = [{"a": chance.randrange(150), "b": chance.randrange(150)} for _ in range(300)]
    engine.match_batch(usual)
    assert any(route.sort == "combination" for route in engine.plan().routes)
    many = {"a": list(range(75, 2000)), "b": list(range(100, 2000))}
    few = {"a": [1, 2, 3], "b": [4, 5]}
    for event in (many, few):
        assert sorted(engine.match(event)) == sorted(other.match(event))
    matcher = engine.matcher
    assert isinstance(matcher, Tamis)
    assert len(matcher._workers.first.buffers.keys.at) < 100_000
