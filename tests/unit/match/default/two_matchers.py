"""The fast matcher and the naive one side by side, and clauses and events for both.

Clauses are of every sort that has a place of its own in the fast one: attribute 0 has single values
and lists of them, 1 narrow ranges, 2 to 4 wide ones, 5 what most events satisfy, 6 and 7 few values
that are asked for together, and 8 to 13 whatever a clause can say.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.terms import Row, from_rows
from tamis.index.clauses import SOME
from tamis.match.base import Matches
from tamis.match.capabilities import match_bits
from tamis.match.default.matcher import Tamis
from tamis.match.lesubscribe.naive import Naive
from tamis.testing.matcher_checks import PlainEvent, batch_of, random_clause, random_event

Clause = Sequence[Row]
POINTS, MOST, FEW = 5000, 1_000_000, 150
UNKNOWN = 60  # an attribute that no clause mentions
LISTS = (8, 9, 100)  # values of an `in`


def one_clause(chance: random.Random, sort: int) -> list[Row]:
    """A clause of one of the sorts above, 0 to 7."""

    def term(attribute: int, number: int, width: int) -> Row:
        low = chance.randrange(MOST - width)
        return attribute, number, SOME, low, low + width

    if sort == 0:
        value = chance.randrange(POINTS)
        return [(0, 0, SOME, value, value)]
    if sort == 1:
        return [term(1, 0, 300)]
    if sort == 2:
        return [term(attribute, attribute, MOST // 6) for attribute in (2, 3, 4)]
    if sort == 3:
        return [(5, 0, SOME, chance.randrange(MOST // 50), MOST)]
    if sort == 4:
        one, two = chance.randrange(FEW), chance.randrange(FEW)
        return [(6, 0, SOME, one, one), (7, 1, SOME, two, two)]
    if sort == 5:
        values = sorted(chance.sample(range(POINTS), chance.choice(LISTS)))
        return [*((0, 0, SOME, value, value) for value in values), term(3, 1, MOST // 2)]
    if sort == 6:
        return [(8 + row[0], *row[1:]) for row in random_clause(chance)]
    return []


def some_clauses(chance: random.Random, many: int) -> list[list[Row]]:
    """So many clauses, of all sorts."""
    sorts = chance.choices(range(8), (25, 20, 15, 15, 15, 3, 6, 1), k=many)
    return [one_clause(chance, sort) for sort in sorts]


def one_event(chance: random.Random) -> PlainEvent:
    """An event that some of them may match, now and then with several values."""
    event = {8 + a: values for a, values in random_event(chance).items()}
    for attribute in (1, 2, 3, 4, 5):
        event[attribute] = [chance.randrange(MOST)]
    event[0] = [chance.randrange(POINTS)]
    event[6], event[7] = [chance.randrange(FEW)], [chance.randrange(FEW)]
    if chance.random() < 0.7:
        for attribute in (8, 9, 10, 11, 12, 13, 14):  # else nearly all would have several values
            event[attribute] = event.get(attribute, [0])[:1]
    elif chance.random() < 0.5:
        event[6] = [chance.randrange(FEW) for _ in range(3)]
        event[7] = [chance.randrange(FEW) for _ in range(4)]
        event[0] = [chance.randrange(POINTS) for _ in range(2)] * 2
    for attribute in chance.sample(range(15), chance.randrange(4)):
        event.pop(attribute, None)
    if chance.random() < 0.2:
        event[UNKNOWN] = [1, 2]
    return event


def some_events(chance: random.Random, many: int) -> EventBatch:
    """A batch of so many events."""
    return batch_of([one_event(chance) for _ in range(many)])


def pairs_of(matches: Matches) -> NDArray[np.int64]:
    """The pairs of an answer, sorted: the event in the upper half, the slot in the lower."""
    return np.sort(matches.events << 32 | matches.slots)


def same_answer(found: Matches, right: Matches) -> None:
    """Compare two answers as sets."""
    assert len(found) == len(right)
    np.testing.assert_array_equal(pairs_of(found), pairs_of(right))


class Both:
    """Both matchers with the same clauses."""

    def __init__(self, threads: int = 1) -> None:
        self.tamis, self.naive = Tamis(threads=threads), Naive()
        self.live: dict[int, Clause] = {}

    def add(self, clauses: Iterable[Clause], slots: Iterable[int] | None = None) -> None:
        """Put clauses into these slots, or into those after the highest one."""
        given = list(clauses)
        first = max(self.live, default=-1) + 1
        chosen = list(range(first, first + len(given)) if slots is None else slots)
        for matcher in (self.tamis, self.naive):
            matcher.add(np.array(chosen, np.int64), from_rows(given))
        self.live.update(zip(chosen, given, strict=True))

    def remove(self, slots: Iterable[int]) -> None:
        """Empty these slots."""
        chosen = list(slots)
        for matcher in (self.tamis, self.naive):
            matcher.remove(np.array(chosen, np.int64))
        for slot in chosen:
            del self.live[slot]

    def agree(self, batch: EventBatch) -> Matches:
        """Both give the same answer; it is given back."""
        found, right = self.tamis.match(batch), self.naive.match(batch)
        same_answer(found, right)
        return found

    def agree_on_bits(self, batch: EventBatch) -> None:
        """And so they do in bits."""
        bits = match_bits(self.tamis, batch)
        used = bits.slots[bits.slots >= 0]
        assert len(set(used.tolist())) == len(used), "a slot has one bit"
        same_answer(bits.matches(), self.naive.match(batch))

    def moving(self) -> int:
        """How many clauses have yet to move to a newer plan."""
        return self.tamis.plan(lines=1).moving


def filled(many: int, seed: int = 1, threads: int = 1) -> Both:
    """Both matchers with so many clauses, of all sorts."""
    both = Both(threads)
    both.add(some_clauses(random.Random(seed), many))
    return both
