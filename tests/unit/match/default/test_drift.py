"""Events become others: the fast matcher makes another plan, and its answers stay right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tamis.encode.batch import Column, EventBatch, Pairs
from tamis.index.clauses import SOME
from tamis.match.default.planning import layout
from tamis.match.default.planning.event_sample import EventSample, Outline, no_sample
from tests.unit.match.default.two_matchers import MOST, Both, some_clauses, some_events

SIZE = 1200  # events of a batch: as many as a sample has, and more


class Drift:
    """Clauses that the lower half of attribute 0 satisfies, and as many on attribute 1."""

    def __init__(self) -> None:
        self.both, self.rng = Both(), np.random.default_rng(1)
        for attribute in (0, 1):
            low = self.rng.integers(0, MOST // 3, 400).tolist()
            self.both.add([(attribute, 0, SOME, first, MOST // 2)] for first in low)

    def batch(self, **columns: tuple[int, int]) -> EventBatch:
        """Values of attributes `a0` and `a1` within bounds, or not bound at all."""
        made = {
            int(name[1]): Column(self.rng.integers(low, high, SIZE))
            for name, (low, high) in columns.items()
        }
        return EventBatch(SIZE, columns=made, stamp=0)

    def expects(self, batch: EventBatch) -> bool:
        """Whether the plan expects about as many matches as there are."""
        found = self.both.agree(batch).total / SIZE
        return self.both.tamis.plan().matches == pytest.approx(found, rel=0.3, abs=16)

    def bound(self) -> dict[Any, float]:
        return {cut.attribute: cut.bound for cut in self.both.tamis.plan().cuts}


LOWER, UPPER = (0, MOST // 2), (MOST // 2, MOST)


@pytest.mark.slow
def test_values_that_move() -> None:
    drift = Drift()
    for a0, a1 in ((LOWER, UPPER), (UPPER, LOWER), (UPPER, UPPER), (LOWER, LOWER)):
        for _ in range(5):
            drift.both.agree(drift.batch(a0=a0, a1=a1))
        assert drift.expects(drift.batch(a0=a0, a1=a1))
    drift.both.tamis.check()


def test_attributes_that_are_bound_no_more() -> None:
    drift = Drift()
    for bound, other in (("a0", "a1"), ("a1", "a0"), ("a0", "a1")):
        for _ in range(5):
            drift.both.agree(drift.batch(**{bound: LOWER}))
        said = drift.bound()
        assert said[int(bound[1])] > 0.9
        assert said[int(other[1])] < 0.3
        drift.both.agree(drift.batch(a0=LOWER, a1=UPPER))  # answers are right for others, too
        drift.both.agree_on_bits(drift.batch(**{other: LOWER}))


def test_the_plan_in_use_is_wrong_until_enough_events_were_seen() -> None:
    """A few strange events do not turn everything over."""
    drift = Drift()
    for _ in range(4):
        drift.both.agree(drift.batch(a0=LOWER, a1=UPPER))
    before = drift.both.tamis.plan().matches
    drift.both.agree(drift.batch(a0=UPPER, a1=LOWER)[:20])
    assert drift.both.tamis.plan().matches == before


def test_events_that_differ_little_leave_the_plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    both, chance = Both(), random.Random(15)
    both.add(some_clauses(chance, 1000))
    both.agree(some_events(chance, 400))
    monkeypatch.setattr(layout, "cut", None)  # what every new plan begins with
    for _ in range(15):
        both.agree(some_events(chance, 400))


@pytest.mark.parametrize("size", [1, 3])
def test_single_events_are_looked_at_too(size: int) -> None:
    """What was planned for the first few is planned anew when there are some hundreds."""
    drift = Drift()
    drift.both.agree(drift.batch(a0=LOWER)[:size])
    other = drift.batch(a1=LOWER)
    for at in range(300):
        drift.both.agree(other[at : at + size])
    assert drift.bound()[1] > drift.bound()[0]


def sample_of(value: int, events: int) -> EventSample:
    """Of events with the one value, of attributes 0 and 1."""
    codes = np.full(2 * events, value)
    starts = 2 * np.arange(events + 1, dtype=np.int64)
    return EventSample.of(Pairs(starts, np.tile(np.array([0, 1], np.int32), events), codes))


@pytest.mark.parametrize("size", [1, 10, 300, 1000, 5000])
def test_a_sample_forgets_the_oldest_events(size: int) -> None:
    """What it has is the last thousand events, however they came in."""
    sample = no_sample()
    for value in range(2100 // size + 5):
        sample = sample.joined(sample_of(value, size))
    assert sample.events == 1024
    assert len(sample.attribute) == len(sample.code) == 2 * 1024
    batches = -(-1024 // size)
    assert set(sample.code.tolist()) == set(range(value - batches + 1, value + 1))


def test_samples_are_told_apart() -> None:
    """By how often an attribute is bound, and by where its values lie; not by chance."""
    rng = np.random.default_rng(2)

    def made(low: int, high: int, attributes: int = 2) -> EventSample:
        codes = rng.integers(low, high, attributes * 500)
        starts = attributes * np.arange(501, dtype=np.int64)
        names = np.tile(np.arange(attributes, dtype=np.int32), 500)
        return EventSample.of(Pairs(starts, names, codes))

    assert not made(0, 1000).differs(Outline.of(made(0, 1000), 2))
    assert made(0, 1000).differs(Outline.of(made(0, 500), 2))
    assert made(0, 1000).differs(Outline.of(made(0, 1000, attributes=1), 2))
    assert made(0, 1000).differs(Outline.of(made(0, 1000, attributes=3), 3))
    assert not made(0, 1000).differs(Outline.of(made(0, 1000, attributes=3), 2)), (
        "nobody asks about it"
    )
    assert not no_sample().differs(Outline.of(no_sample(), 2))
    assert not no_sample().differs(Outline.of(no_sample(), 0))
