"""What every matcher must do, as plain checks that raise `AssertionError`.

A check takes a function that makes an empty matcher. Each holds for a matcher by itself (terms in,
slots out, against a few plain lines that say what terms mean) or for an engine with that matcher
(conditions in, ids out, against `semantics.satisfies`).
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.clause import MISSING, NONE, SOME
from tamis.encode.terms import Row, from_rows
from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.language import parse
from tamis.match.base import Matcher
from tamis.model.condition import Condition
from tamis.model.semantics import satisfies
from tamis.testing import cases

Make = Callable[[], Matcher]
Check = Callable[[Make], None]
PlainEvent = dict[int, list[int]]
CHECKS: dict[str, Check] = {}

_LOW, _HIGH = -(2**63), 2**63 - 1


def check_matcher(make: Make) -> None:
    """Run all checks on matchers made by `make`; the first failure names its check."""
    for name, check in CHECKS.items():
        try:
            check(make)
        except AssertionError as failure:
            raise AssertionError(f"conformance check '{name}': {failure}") from failure


def _check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


# -- a matcher by itself ---------------------------------------------------------------------------


def clause_holds(rows: Sequence[Row], event: PlainEvent) -> bool:
    """What terms mean, in plain words of Python."""
    for number in {row[1] for row in rows}:
        term = [row for row in rows if row[1] == number]
        values = event.get(term[0][0], [])
        inside = any(low <= v <= high for v in values for _, _, _, low, high in term)
        kind = term[0][2]
        if kind == SOME and not inside:
            return False
        if kind == NONE and (inside or not values):
            return False
        if kind == MISSING and values:
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
    """The slots that match each event; refuses an answer with a slot twice."""
    matches = matcher.match(batch_of(events))
    assert len(matches) == len(events), "one answer for each event"
    found = []
    for event in range(len(events)):
        slots = matches[event]
        assert len(slots) == len(set(slots)), "a slot stands once in an answer"
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
    expected = [
        {slot for slot, rows in clauses.items() if clause_holds(rows, event)} for event in events
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
    """A clause of any shape that encoders make: one interval mostly, and all the odd ones."""
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


@_check
def empty(make: Make) -> None:
    """An empty matcher answers, with nothing; so does an empty batch."""
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


@_check
def no_terms(make: Make) -> None:
    """A clause without terms matches every event, also one that binds nothing."""
    matcher = make()
    clauses: dict[int, Sequence[Row]] = {3: [], 1: [(0, 0, SOME, 5, 5)]}
    add(matcher, clauses)
    _expect(matcher, clauses, [{}, {0: [5]}, {9: [1]}])


@_check
def absent(make: Make) -> None:
    """A term on an attribute that is not bound fails, whatever it allows; `missing` holds."""
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


@_check
def several_values(make: Make) -> None:
    """One value must lie in the intervals of a term; two terms may be met by two values."""
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


@_check
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


@_check
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


@_check
def batch_equals_one_by_one(make: Make) -> None:
    """Events do not influence each other."""
    matcher = make()
    clauses, events = _random_set(3, 150, 60)
    add(matcher, clauses)
    assert answers(matcher, events) == [answers(matcher, [event])[0] for event in events]


@_check
def order_of_adds(make: Make) -> None:
    """One by one, backwards or in bulk: the answers are the same."""
    clauses, events = _random_set(4, 120, 40)
    bulk, forth, back = make(), make(), make()
    add(bulk, clauses)
    for slot, rows in clauses.items():
        add(forth, {slot: rows})
    for slot in sorted(clauses, reverse=True):
        add(back, {slot: clauses[slot]})
    for matcher in (bulk, forth, back):
        _expect(matcher, clauses, events)


@_check
def many(make: Make) -> None:
    """Enough clauses for tiles, nodes and buckets to fill, split and empty again."""
    matcher = make()
    clauses, events = _random_set(5, 3000, 25)
    add(matcher, clauses)
    _expect(matcher, clauses, events)
    gone = list(clauses)[::2]
    remove(matcher, gone)
    for slot in gone:
        del clauses[slot]
    _expect(matcher, clauses, events)


@_check
def wide(make: Make) -> None:
    """Thousands of attributes, of which each clause and each event names a few."""
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


@_check
def pickling(make: Make) -> None:
    """A matcher survives pickling, and goes on living."""
    matcher = make()
    clauses, events = _random_set(7, 80, 20)
    add(matcher, clauses)
    answers(matcher, events)  # whatever is built on first use is pickled too
    twin: Matcher = pickle.loads(pickle.dumps(matcher))
    _expect(twin, clauses, events)
    slot = next(iter(clauses))
    remove(twin, [slot])
    _expect(matcher, clauses, events)
    del clauses[slot]
    _expect(twin, clauses, events)


@_check
def memory_given_back(make: Make) -> None:
    """Removing everything gives the memory back, and churn does not grow it without end."""
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


@_check
def tally_counts(make: Make) -> None:
    """The tally counts events, and can be reset."""
    matcher = make()
    clauses, events = _random_set(9, 50, 10)
    add(matcher, clauses)
    answers(matcher, events)
    assert matcher.tally.events == 10
    matcher.tally.reset()
    assert matcher.tally.events == 0


@_check
def terms_kept(make: Make) -> None:
    """A matcher can say what its slots ask."""
    matcher = make()
    clauses, _ = _random_set(10, 40, 1)
    add(matcher, clauses)
    for slot, rows in clauses.items():
        kept = matcher.terms(np.array([slot]))
        columns = (kept.attribute, kept.term, kept.kind, kept.low, kept.high)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows


# -- an engine with the matcher --------------------------------------------------------------------


def agree(
    engine: Engine, conditions: Mapping[int, Condition], events: Sequence[dict[str, Any]]
) -> int:
    """Compare an engine with `satisfies` on all pairs; gives how many there were."""
    checked = [engine.schema.event(event) for event in events]
    matches = engine.match_batch(list(events))
    for number, event in enumerate(checked):
        right = {id for id, c in conditions.items() if satisfies(c, event, engine.schema)}
        got = matches[number]
        assert len(got) == len(set(got)), "an id stands once in an answer"
        assert set(got) == right, (
            f"event {events[number]}: missing {[conditions[i] for i in right - set(got)][:2]}, "
            f"too many {[conditions[i] for i in set(got) - right][:2]}"
        )
    return len(conditions) * len(events)


def subscribe_random(engine: Engine, chooser: cases.Chooser, number: int) -> dict[int, Condition]:
    """Random subscriptions; conditions that can never hold are refused and drawn again."""
    made: dict[int, Condition] = {}
    while len(made) < number:
        condition = cases.condition(chooser, schema=engine.schema)
        try:
            made[int(engine.subscribe(condition))] = condition
        except NeverTrueError:
            continue
    return made


@_check
def agrees_with_satisfies(make: Make) -> None:
    """Random conditions and events over every domain mean what `satisfies` says."""
    chooser = cases.RandomChooser(11)
    engine = Engine(cases.SCHEMA, make())
    conditions = subscribe_random(engine, chooser, 150)
    agree(engine, conditions, [cases.event(chooser) for _ in range(40)])
    engine.check()


@_check
def language_examples(make: Make) -> None:
    """One subscription for each thing that the language can say."""
    engine = Engine(cases.SCHEMA, make())
    conditions: dict[int, Condition] = {}
    for text in _EXAMPLES:
        conditions[int(engine.subscribe(text))] = parse(text, engine.schema)
    chooser = cases.RandomChooser(12)
    agree(engine, conditions, [cases.event(chooser) for _ in range(60)])


_EXAMPLES = (
    "event_type contains several",
    "event_type = single and price <= 1.5",
    "price != 1",
    "not price < 1",
    "price > 0 and price < 2",
    "price between -1 and 1.5",
    "number in (1, 2, 9223372036854775807)",
    "number < 1.5 or number >= 2.5",
    "small > 1 and small < 3",
    "title starts with 'a'",
    "title ends with 'b' and title != 'b'",
    "title like '%b%'",
    "not title like 'a%'",
    "tags contains 'a' and tags contains 'b'",
    "tags excludes 'a'",
    "tags contains 'ab' and tags excludes 'b'",
    "not tags contains 'a'",
    "open = true",
    "at >= 1970-01-01 and at < 2026-03-01T10:00:00.000001Z",
    "period < XVIII",
    "rank < top",
    "not rank < left",
    "rank >= bottom and rank != top",
    "colour in (red, 'dark blue')",
    "category <= table",
    "not category <= table",
    "category > desk",
    "craft <= wood and craft <= storage",
    "craft < storage",
    "picture exists",
    "picture missing and price exists",
    "price missing",
    "price exists or tags missing",
    "(price < 1 or number > 1) and (title exists or open = false)",
    "not (price < 1 and number > 1)",
)


@_check
def labels_move(make: Make) -> None:
    """Text constants that crowd into one gap: labels are dealt anew and the matcher follows."""
    engine = Engine(cases.SCHEMA, make())
    conditions: dict[int, Condition] = {}
    for number in range(120):
        # Each new constant lies just below the one before: the gap halves every time.
        constant = "a" * (number + 1)
        for text in (f'title = "b{constant}"', f'title > "c" and title < "d{constant}"'):
            conditions[int(engine.subscribe(text))] = parse(text)
    events: list[dict[str, Any]] = [
        {"event_type": "single", "title": f"{first}{'a' * many}"}
        for first in "bcd"
        for many in (0, 1, 2, 60, 119, 120, 121)
    ]
    agree(engine, conditions, events)
    engine.check()
