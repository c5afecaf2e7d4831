"""Checks of a matcher alone: terms in, slots out, against the meaning of terms."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.clause import MISSING, NONE, SOME
from tamis.encode.terms import Row, Terms, from_rows
from tamis.match.base import Matcher, Slots
from tamis.testing.checks import Make, check

PlainEvent = dict[int, list[int]]
_LOW, _HIGH = -(2**63), 2**63 - 1


def clause_holds(rows: Sequence[Row], event: PlainEvent) -> bool:
    """The meaning of terms, in plain Python."""
    return _terms_hold(_by_term(rows), event)


def _by_term(rows: Sequence[Row]) -> dict[int, list[Row]]:
    return {number: [row for row in rows if row[1] == number] for number in {r[1] for r in rows}}


def _terms_hold(terms: Mapping[int, list[Row]], event: PlainEvent) -> bool:
    for term in terms.values():
        values, kind = event.get(term[0][0], []), term[0][2]
        inside = any(low <= v <= high for v in values for _, _, _, low, high in term)
        fails = {SOME: not inside, NONE: inside or not values, MISSING: bool(values)}
        if fails[kind]:
            return False
    return True


def batch_of(events: Sequence[PlainEvent]) -> EventBatch:
    """A batch from plain events."""
    starts, attributes, codes = [0], [], []
    for event in events:
        for attribute in sorted(event):
            attributes += [attribute] * len(event[attribute])
            codes += event[attribute]
        starts.append(len(codes))
    return EventBatch(
        len(events),
        pairs=Pairs(
            np.array(starts, np.int64), np.array(attributes, np.int32), np.array(codes, np.int64)
        ),
    )


def answers(matcher: Matcher, events: Sequence[PlainEvent]) -> list[set[int]]:
    """The slots that match each event. Fails if an answer has a slot twice."""
    matches = matcher.match(batch_of(events))
    assert len(matches) == len(events), "one answer for each event"
    found = []
    for event in range(len(events)):
        slots = matches[event]
        assert len(slots) == len(set(slots)), "a slot occurs once in an answer"
        found.append(set(slots))
    return found


def add(matcher: Matcher, clauses: Mapping[int, Sequence[Row]]) -> None:
    """Add clauses by slot, as one batch."""
    matcher.add(np.array(list(clauses), np.int64), from_rows(list(clauses.values())))


def remove(matcher: Matcher, slots: Sequence[int]) -> None:
    """Remove slots, as one batch."""
    matcher.remove(np.array(slots, np.int64))


def _expect(
    matcher: Matcher, clauses: Mapping[int, Sequence[Row]], events: Sequence[PlainEvent]
) -> None:
    parted = {slot: _by_term(rows) for slot, rows in clauses.items()}  # once for all events
    expected = [
        {slot for slot, terms in parted.items() if _terms_hold(terms, event)} for event in events
    ]
    found = answers(matcher, events)
    for event, right, got in zip(events, expected, found, strict=True):
        assert got == right, (
            f"event {event}: missing {sorted(right - got)[:5]}, too many {sorted(got - right)[:5]}"
            f" of {[clauses.get(slot) for slot in sorted(right ^ got)[:2]]}"
        )
    matcher.check()


_ENDS = (_LOW, _LOW + 1, -7, -1, 0, 1, 2, 3, 5, 8, _HIGH - 1, _HIGH)


def random_clause(chance: random.Random, attributes: int = 6) -> list[Row]:
    """A clause of any shape that encoders make: mostly one interval, and all rare shapes."""
    rows: list[Row] = []
    term = 0
    for attribute in sorted(chance.sample(range(attributes), chance.randint(0, attributes))):
        for _ in range(2 if chance.random() < 0.1 else 1):  # `contains` gives a second term
            shape = chance.random()
            if shape < 0.1:
                rows.append((attribute, term, MISSING, 0, -1))
            elif shape < 0.2:
                point = chance.choice(_ENDS)
                rows.append((attribute, term, NONE, point, point))
            elif shape < 0.35:
                a, b, c, d = sorted(chance.sample(_ENDS, 4))
                rows += [(attribute, term, SOME, a, b), (attribute, term, SOME, c, d)]
            elif shape < 0.6:
                point = chance.choice(_ENDS)
                rows.append((attribute, term, SOME, point, point))
            else:
                low, high = sorted(chance.choices(_ENDS, k=2))
                rows.append((attribute, term, SOME, low, high))
            term += 1
    return rows


def random_event(chance: random.Random, attributes: int = 6) -> PlainEvent:
    """An event with absent, single and several values."""
    event: PlainEvent = {}
    for attribute in range(attributes + 1):  # one attribute that no clause mentions
        if chance.random() < 0.8:
            several = chance.randint(2, 3) if chance.random() < 0.2 else 1
            event[attribute] = [chance.choice(_ENDS) for _ in range(several)]
    return event


def _random_set(seed: int, clauses: int, events: int) -> tuple[dict[int, Any], list[PlainEvent]]:
    chance = random.Random(seed)
    slots = chance.sample(range(2 * clauses), clauses)
    return {slot: random_clause(chance) for slot in slots}, [
        random_event(chance) for _ in range(events)
    ]


@check
def empty(make: Make) -> None:
    """An empty matcher gives an empty answer, and so does an empty batch."""
    matcher = make()
    assert len(matcher) == 0
    assert answers(matcher, []) == []
    assert answers(matcher, [{}, {0: [1]}]) == [set(), set()]
    add(matcher, {0: [(0, 0, SOME, 1, 1)]})
    assert answers(matcher, []) == []
    remove(matcher, [0])
    assert answers(matcher, [{0: [1]}]) == [set()]
    remove(matcher, [])
    matcher.add(np.zeros(0, np.int64), from_rows([]))
    matcher.check()


@check
def no_terms(make: Make) -> None:
    """A clause without terms matches every event, also an empty one."""
    matcher = make()
    clauses: dict[int, Sequence[Row]] = {3: [], 1: [(0, 0, SOME, 5, 5)]}
    add(matcher, clauses)
    _expect(matcher, clauses, [{}, {0: [5]}, {9: [1]}])


@check
def absent(make: Make) -> None:
    """A term on an unbound attribute fails, whatever its intervals; `missing` holds."""
    matcher = make()
    clauses: dict[int, Sequence[Row]] = {
        0: [(0, 0, SOME, _LOW, _HIGH)],
        1: [(0, 0, SOME, _LOW, 4), (0, 0, SOME, 6, _HIGH)],
        2: [(0, 0, MISSING, 0, -1)],
        3: [(0, 0, NONE, 5, 5)],
        4: [(0, 0, SOME, _LOW, _HIGH), (1, 1, MISSING, 0, -1)],
        5: [(0, 0, MISSING, 0, -1), (1, 1, MISSING, 0, -1)],
    }
    add(matcher, clauses)
    _expect(matcher, clauses, [{}, {0: [5]}, {1: [5]}, {0: [5], 1: [5]}, {0: [4]}])


@check
def several_values(make: Make) -> None:
    """One value must lie in the intervals of a term; two values may satisfy two terms."""
    matcher = make()
    clauses: dict[int, Sequence[Row]] = {
        0: [(0, 0, SOME, 11, 19)],
        1: [(0, 0, SOME, 5, 5), (0, 1, SOME, 30, 30)],
        2: [(0, 0, NONE, 5, 5)],
        3: [(0, 0, SOME, 1, 10), (0, 1, NONE, 30, 30)],
        4: [(0, 0, SOME, _LOW, 4), (0, 0, SOME, 6, _HIGH)],
    }
    add(matcher, clauses)
    events: list[PlainEvent] = [{0: [5, 30]}, {0: [5]}, {0: [30]}, {0: [12, 5]}, {0: [5, 5]}]
    _expect(matcher, clauses, events)


@check
def ends(make: Make) -> None:
    """Intervals are closed, up to both ends of the 64-bit integers."""
    matcher = make()
    points = (_LOW, _LOW + 1, -1, 0, 1, _HIGH - 1, _HIGH)
    clauses: dict[int, Sequence[Row]] = {}
    for low in points:
        for high in points:
            if low <= high:
                clauses[len(clauses)] = [(2, 0, SOME, low, high)]
    add(matcher, clauses)
    _expect(matcher, clauses, [{2: [point]} for point in points])


@check
def remove_and_add_again(make: Make) -> None:
    """Slots are recycled, in any order, with other clauses."""
    matcher = make()
    clauses, events = _random_set(1, 60, 30)
    add(matcher, clauses)
    chance = random.Random(2)
    for _ in range(8):
        gone = chance.sample(sorted(clauses), 20)
        remove(matcher, gone)
        for slot in gone:
            del clauses[slot]
        _expect(matcher, clauses, events[:10])
        fresh = {slot: random_clause(chance) for slot in chance.sample(gone, 15)}
        add(matcher, fresh)
        clauses |= fresh
        _expect(matcher, clauses, events)


@check
def batch_equals_one_by_one(make: Make) -> None:
    """Events do not influence each other."""
    matcher = make()
    clauses, events = _random_set(3, 150, 60)
    add(matcher, clauses)
    assert answers(matcher, events) == [answers(matcher, [event])[0] for event in events]


@check
def order_of_adds(make: Make) -> None:
    """Clauses added one by one, backwards or at once give the same answers."""
    clauses, events = _random_set(4, 120, 40)
    bulk, forth, back = make(), make(), make()
    add(bulk, clauses)
    for slot, rows in clauses.items():
        add(forth, {slot: rows})
    for slot in sorted(clauses, reverse=True):
        add(back, {slot: clauses[slot]})
    for matcher in (bulk, forth, back):
        _expect(matcher, clauses, events)


@check
def many(make: Make) -> None:
    """Enough clauses to fill, split and empty tiles, nodes and buckets."""
    matcher = make()
    clauses, events = _random_set(5, 3000, 25)
    add(matcher, clauses)
    _expect(matcher, clauses, events)
    gone = list(clauses)[::2]
    remove(matcher, gone)
    for slot in gone:
        del clauses[slot]
    _expect(matcher, clauses, events)


@check
def wide(make: Make) -> None:
    """Thousands of attributes, of which each clause and each event has a few."""
    chance = random.Random(6)
    clauses: dict[int, Sequence[Row]] = {}
    for slot in range(300):
        names = sorted(int(4000 * chance.random() ** 4) for _ in range(3))
        rows: list[Row] = []
        for term, name in enumerate(dict.fromkeys(names)):
            rows.append((name, term, SOME, chance.randint(0, 3), chance.randint(3, 9)))
        clauses[slot] = rows
    events: list[PlainEvent] = [
        {int(4000 * chance.random() ** 4): [chance.randint(0, 9)] for _ in range(60)}
        for _ in range(20)
    ]
    matcher = make()
    add(matcher, clauses)
    _expect(matcher, clauses, events)


@check
def pickling(make: Make) -> None:
    """A pickled matcher gives the same answers, and changes independently."""
    matcher = make()
    clauses, events = _random_set(7, 80, 20)
    add(matcher, clauses)
    answers(matcher, events)  # structures that are built on first use are pickled too
    twin: Matcher = pickle.loads(pickle.dumps(matcher))
    _expect(twin, clauses, events)
    slot = next(iter(clauses))
    remove(twin, [slot])
    _expect(matcher, clauses, events)
    del clauses[slot]
    _expect(twin, clauses, events)


@check
def memory_given_back(make: Make) -> None:
    """Removing everything frees the memory, and churn does not leak it."""
    matcher = make()
    nothing = matcher.nbytes
    clauses, events = _random_set(8, 2000, 3)
    add(matcher, clauses)
    answers(matcher, events)
    full = matcher.nbytes
    assert full > nothing, "clauses take memory"
    for _ in range(6):
        slots = list(clauses)
        remove(matcher, slots[:1000])
        add(matcher, {slot: clauses[slot] for slot in slots[:1000]})
        answers(matcher, events[:1])
    assert matcher.nbytes < 4 * full, f"churn grew {full} bytes to {matcher.nbytes}"
    remove(matcher, list(clauses))
    answers(matcher, events[:1])
    left = matcher.nbytes
    assert left <= max(2 * nothing, full // 8), f"{left} bytes left of {full}, {nothing} at first"


@check
def tally_counts(make: Make) -> None:
    """The tally counts events, and can be reset."""
    matcher = make()
    clauses, events = _random_set(9, 50, 10)
    add(matcher, clauses)
    answers(matcher, events)
    assert matcher.tally.events == 10
    matcher.tally.reset()
    assert matcher.tally.events == 0


@check
def terms_kept(make: Make) -> None:
    """A matcher returns the terms of its slots."""
    matcher = make()
    clauses, _ = _random_set(10, 40, 1)
    add(matcher, clauses)
    for slot, rows in clauses.items():
        kept = matcher.terms(np.array([slot]))
        columns = (kept.attribute, kept.term, kept.kind, kept.low, kept.high)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows


@check
def survives_failure(make: Make) -> None:
    """A failure during an add loses no clause and adds none."""
    matcher = make()
    clauses, events = _random_set(14, 60, 10)
    add(matcher, clauses)
    added = matcher.index_clauses

    def fails(slots: Slots, terms: Terms) -> None:
        added(slots, terms)
        matcher.index_clauses = added  # type: ignore[method-assign]
        raise MemoryError("in the middle")

    matcher.index_clauses = fails  # type: ignore[method-assign]
    try:
        add(matcher, {1000 + slot: rows for slot, rows in clauses.items()})
    except MemoryError:
        pass
    else:
        raise AssertionError("the failure is passed on")
    _expect(matcher, clauses, events)


@check
def many_gone_at_once(make: Make) -> None:
    """Thousands of clauses that share a predicate are removed in one call."""
    matcher = make()
    rows: list[Row] = [(0, 0, SOME, 5, 5), (1, 1, SOME, 2, _HIGH)]
    clauses: dict[int, Sequence[Row]] = dict.fromkeys(range(3000), rows)
    add(matcher, clauses)
    remove(matcher, list(range(0, 3000, 3)))
    kept = {slot: rows for slot in range(3000) if slot % 3}
    _expect(matcher, kept, [{0: [5], 1: [3]}, {0: [5]}])


@check
def far_slots(make: Make) -> None:
    """Clauses without intervals, in slots far above those in use."""
    matcher = make()
    clauses, events = _random_set(15, 200, 10)
    add(matcher, clauses)
    answers(matcher, events)
    for number in range(12):
        slot = 1000 * (number + 1)
        odd: Sequence[Row] = [(number % 6, 0, MISSING, 0, -1)] if number % 3 else []
        add(matcher, {slot: odd})
        clauses[slot] = odd
        _expect(matcher, clauses, events)
    remove(matcher, [slot for slot in clauses if slot >= 1000])
    _expect(matcher, {s: rows for s, rows in clauses.items() if s < 1000}, events)
