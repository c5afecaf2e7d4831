"""Comparison of engines with `satisfies` on the constructs that real events need.

Dynamic attributes, lists of structs, comparisons of attributes, residuals, domains that grow, and
missing values. Each pair of an event and a condition is evaluated by `satisfies` once. Engines with
different matchers must all give that answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.match.base import Matcher
from tamis.model.condition import (
    Comparison,
    Condition,
    Duration,
    Now,
    Predicate,
    Some,
    attributes_of,
    leaves,
    operands,
)
from tamis.model.dynamic import Dynamic
from tamis.model.elements.structs import Structs, list_name
from tamis.model.event import Event
from tamis.model.schema import EVENT_TYPE, Schema
from tamis.model.semantics import clause_holds, open_clauses
from tamis.model.times.moments import at_moment, read_moment
from tamis.testing import cases

DYNAMIC, ELEMENTS, COMPARISONS = "dynamic attributes", "lists of structs", "attribute pairs"
RESIDUALS, GROWN, MISSING = "residuals", "grown domains", "missing values"
TIMES = "now and durations"
CONSTRUCTS = (DYNAMIC, ELEMENTS, COMPARISONS, RESIDUALS, GROWN, MISSING, TIMES)

_CONDITIONS, _BATCHES, _EVENTS = 100, 4, 300
_CHANGED = 10  # conditions that go, and that come, between two batches
_NAN = float("nan")


@dataclass
class Compared:
    """How many pairs agreed, in all and by construct."""

    pairs: int = 0
    matches: int = 0
    pairs_with: Counter[str] = field(default_factory=Counter)
    matches_with: Counter[str] = field(default_factory=Counter)


def compare_constructs(
    matchers: Mapping[str, Callable[[], Matcher]], pairs: int, seed: int = 0
) -> Compared:
    """Compare matchers with `satisfies` on at least so many pairs; raises if one differs.

    A pair counts once, however many matchers there are. Each condition has one of the constructs.
    """
    done = Compared()
    for number in count():
        if done.pairs >= pairs:
            return done
        world = _World(matchers, f"{seed} {number}", declared=number % 2 == 0, done=done)
        world.run(pairs)
    raise AssertionError("count has no end")


class _World:
    """Engines over one schema, with the same subscriptions."""

    def __init__(
        self,
        matchers: Mapping[str, Callable[[], Matcher]],
        seed: str,
        declared: bool,
        done: Compared,
    ) -> None:
        self._seed, self._done = seed, done
        self._chooser = cases.RandomChooser(seed)
        self._drawn = cases.SCHEMA if declared else cases.OPEN
        schema = cases.SCHEMA if declared else None
        self._engines = {name: Engine(schema, make()) for name, make in matchers.items()}
        self._first = next(iter(self._engines.values()))
        self._conditions: dict[int, Condition] = {}
        self._constructs: dict[int, set[str]] = {}

    def run(self, enough: int) -> None:
        """Subscriptions come and go and domains grow, between batches of events."""
        self._subscribe(_CONDITIONS)
        for number in range(_BATCHES):
            if number:
                self._change()
            self._compare(missing=number % 2 == 1)
            if self._done.pairs >= enough:
                break
        for engine in self._engines.values():
            engine.check()

    def _subscribe(self, number: int) -> None:
        wanted = len(self._conditions) + number
        while len(self._conditions) < wanted:
            condition = cases.condition(self._chooser, schema=self._drawn)
            if not self._drawn.is_open and self._chooser.number(0, 9) == 0:
                condition = cases.timed(self._chooser, condition)
            residuals = len(self._first.residuals)
            found = set(constructs_of(condition, self._drawn))
            try:
                id = int(self._first.subscribe(condition))
            except NeverTrueError:
                continue
            if len(self._first.residuals) > residuals:
                found.add(RESIDUALS)
            if not found:
                self._first.unsubscribe(id)
                continue
            for engine in self._engines.values():
                if engine is not self._first:
                    engine.subscribe(condition, id=id)
            self._conditions[id], self._constructs[id] = condition, found

    def _change(self) -> None:
        for _ in range(_CHANGED):
            id = self._chooser.pick([*self._conditions])
            for engine in self._engines.values():
                engine.unsubscribe(id)
            del self._conditions[id], self._constructs[id]
        if not self._drawn.is_open:
            before, self._drawn = self._drawn, cases.grown(self._chooser, self._drawn)
            changed = set(self._drawn.grown_attributes(before))
            for engine in self._engines.values():
                engine.extend(self._drawn)
            for id, condition in self._conditions.items():
                if not changed.isdisjoint(_names(condition)):
                    self._constructs[id].add(GROWN)
        self._subscribe(_CHANGED)

    def _compare(self, missing: bool) -> None:
        drawn = [self._event() for _ in range(_EVENTS)]
        given = (
            [_with_gaps(self._chooser, each, self._drawn) for each in drawn] if missing else drawn
        )
        now = self._chooser.pick(cases.VALUES["timestamp"])
        right = self._right(drawn, missing, read_moment(now))
        for name, engine in self._engines.items():
            answer = engine.match_batch(given, missing="absent" if missing else None, now=now)
            for number, (got, wanted) in enumerate(zip(answer, right, strict=True)):
                assert len(got) == len(set(got)), f"{name}: an id occurs once in an answer"
                assert set(got) == wanted, (
                    f"{name} differs from satisfies (seed {self._seed}) on {given[number]}: "
                    f"missing {self._some(wanted - set(got))}, "
                    f"too many {self._some(set(got) - wanted)}"
                )

    def _event(self) -> dict[str, Any]:
        if self._drawn.is_open:
            return cases.open_event(self._chooser)
        return cases.event(self._chooser, self._drawn)

    def _right(self, events: Sequence[dict[str, Any]], missing: bool, now: int) -> list[set[int]]:
        """The answers of `satisfies`."""
        schema, done, right = self._first.schema, self._done, []
        conditions = {id: at_moment(each, now) for id, each in self._conditions.items()}
        for each in events:
            event = schema.event(each)
            found = {id for id, c in conditions.items() if _holds(c, event, schema)}
            right.append(found)
            done.pairs += len(self._conditions)
            done.matches += len(found)
            for ids, counted in ((self._conditions, done.pairs_with), (found, done.matches_with)):
                counted[MISSING] += len(ids) if missing else 0
                for id in ids:
                    counted.update(self._constructs[id])
        return right

    def _some(self, ids: set[int]) -> list[Condition]:
        return [self._conditions[id] for id in sorted(ids)[:2]]


def _holds(condition: Condition, event: Event, schema: Schema) -> bool:
    """`satisfies`, for a schema that has all attributes of the condition."""
    return any(
        clause_holds(clause, event, schema, None)
        for clause in open_clauses(condition, True, event, schema)
    )


def constructs_of(condition: Condition, schema: Schema) -> Iterator[str]:
    """The constructs in a condition, those within conditions on elements included."""
    for leaf in leaves(condition):
        if isinstance(leaf, Some):
            yield ELEMENTS
            inner = schema.attributes[list_name(leaf.attribute, schema)]
            assert isinstance(inner, Structs)
            yield from constructs_of(leaf.condition, inner.element)
        elif isinstance(leaf, Comparison):
            timed = any(isinstance(each, Duration | Now) for each in operands(leaf))
            yield TIMES if timed else COMPARISONS
        elif isinstance(leaf, Predicate) and isinstance(schema.attributes[leaf.attribute], Dynamic):
            yield DYNAMIC


def _names(condition: Condition) -> Iterator[str]:
    for leaf in leaves(condition):
        if isinstance(leaf, Predicate | Comparison):
            yield from attributes_of(leaf)
        elif isinstance(leaf, Some):
            yield leaf.attribute


def _with_gaps(chooser: cases.Chooser, event: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The event with NaN in places where it has nothing: attributes, lists and elements."""
    found = dict(event)
    for name, value in event.items():
        if isinstance(value, list) and value and name != EVENT_TYPE and chooser.number(0, 1):
            found[name] = [*(_element(chooser, each) for each in value), _NAN]
    known = schema.attributes if schema.is_open else schema.view(_types(event))
    for name in known:
        if name not in event and name != EVENT_TYPE and chooser.number(0, 1):
            found[name] = _NAN
    return found


def _element(chooser: cases.Chooser, value: Any) -> Any:
    if isinstance(value, dict) and chooser.number(0, 1):
        return {**value, "sku": value.get("sku", _NAN)}
    return value


def _types(event: Mapping[str, Any]) -> list[str]:
    types = event[EVENT_TYPE]
    return types if isinstance(types, list) else [types]
