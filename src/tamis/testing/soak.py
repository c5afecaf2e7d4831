"""The soak: compares two matchers over thousands of random adds, removes and matches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.match.base import Matcher
from tamis.model.condition import Condition
from tamis.model.schema import Schema
from tamis.testing import cases

_POPULATION = 1500  # mean number of subscriptions
_CHECK = 2000  # operations between two checks of the invariants
_GROWTH = 1 / 400  # chance of an operation that a domain grows before it
_GROWN = 20  # versions of the schema at most: with more values, fewer events match


@dataclass
class SoakResult:
    """The result of a soak."""

    operations: int = 0
    adds: int = 0
    removes: int = 0
    matches: int = 0
    pairs: int = 0
    missing: int = 0  # matches that the reference found and the matcher did not
    extra: int = 0  # the other way round

    @property
    def disagreements(self) -> int:
        """Pairs on which the two differ."""
        return self.missing + self.extra


class GrownSchema(NamedTuple):
    """A domain has grown."""

    schema: Schema


class AddedCondition(NamedTuple):
    """A subscription has come."""

    id: int
    condition: Condition


class RemovedCondition(NamedTuple):
    """A subscription has gone."""

    id: int


class AskedEvents(NamedTuple):
    """Events, and the subscriptions that match each of them, by the reference."""

    events: list[dict[str, Any]]
    right: list[set[int]]
    pairs: int


StoryStep = GrownSchema | AddedCondition | RemovedCondition | AskedEvents


def story(reference: Callable[[], Matcher], operations: int, seed: int = 0) -> Iterator[StoryStep]:
    """Random operations over every domain, with the answers of the reference.

    They do not depend on the matcher that is tried, so several can be tried with one story.
    """
    chance, chooser = random.Random(seed), cases.RandomChooser(seed)
    trusted = Engine(cases.SCHEMA, reference())
    live: list[int] = []
    done = 0
    while done < operations:
        kind = chance.random()
        if trusted.schema.version < _GROWN and chance.random() < _GROWTH:
            trusted.extend(cases.grown(chooser, trusted.schema))
            yield GrownSchema(trusted.schema)
        if kind < 0.5 * min(1.0, _POPULATION / (len(live) + 1)) or not live:
            condition = cases.condition(chooser, schema=trusted.schema)
            try:
                id = int(trusted.subscribe(condition))
            except NeverTrueError:
                continue
            live.append(id)
            yield AddedCondition(id, condition)
        elif kind < 0.8:
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            id = live.pop()
            trusted.unsubscribe(id)
            yield RemovedCondition(id)
        else:
            many = chance.randint(1, 3)
            events = [cases.event(chooser, trusted.schema) for _ in range(many)]
            right = [{*map(int, ids)} for ids in trusted.match_batch(events)]
            yield AskedEvents(events, right, len(events) * len(trusted))
        done += 1


def soak(
    matcher: Callable[[], Matcher],
    reference: Callable[[], Matcher],
    operations: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> SoakResult:
    """Run random operations over every domain on both matchers, and compare all answers."""
    return replay(matcher, story(reference, operations, seed), progress)


def replay(
    matcher: Callable[[], Matcher],
    steps: Iterable[StoryStep],
    progress: Callable[[int], None] | None = None,
) -> SoakResult:
    """Run a story, and compare all answers."""
    tried, result = Engine(cases.SCHEMA, matcher()), SoakResult()
    for step in steps:
        match step:
            case GrownSchema(schema):
                tried.extend(schema)
                continue
            case AddedCondition(id, condition):
                tried.subscribe(condition, id=id)
                result.adds += 1
            case RemovedCondition(id):
                tried.unsubscribe(id)
                result.removes += 1
            case AskedEvents():
                _compare(tried, step, result)
        result.operations += 1
        if result.operations % _CHECK == 0:
            tried.check()
        if progress:
            progress(result.operations)
    tried.check()
    return result


def _compare(tried: Engine, asked: AskedEvents, result: SoakResult) -> None:
    for got, right in zip(tried.match_batch(asked.events), asked.right, strict=True):
        assert len(got) == len(set(got)), "an id occurs once in an answer"
        result.missing += len(right - set(got))
        result.extra += len(set(got) - right)
    result.matches += len(asked.events)
    result.pairs += asked.pairs
