"""The soak: compares two matchers over thousands of random adds, removes and matches."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.match.base import Matcher
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


def soak(
    matcher: Callable[[], Matcher],
    reference: Callable[[], Matcher],
    operations: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> SoakResult:
    """Run random operations over every domain on both matchers, and compare all answers."""
    chance, chooser = random.Random(seed), cases.RandomChooser(seed)
    tried, trusted = Engine(cases.SCHEMA, matcher()), Engine(cases.SCHEMA, reference())
    live: list[int] = []
    result = SoakResult()
    while result.operations < operations:
        kind = chance.random()
        if tried.schema.version < _GROWN and chance.random() < _GROWTH:
            schema = cases.grown(chooser, tried.schema)
            tried.extend(schema)
            trusted.extend(schema)
        if kind < 0.5 * min(1.0, _POPULATION / (len(live) + 1)) or not live:
            condition = cases.condition(chooser, schema=tried.schema)
            try:
                id = int(tried.subscribe(condition))
            except NeverTrueError:
                continue
            trusted.subscribe(condition, id=id)
            live.append(id)
            result.adds += 1
        elif kind < 0.8:
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            id = live.pop()
            tried.unsubscribe(id)
            trusted.unsubscribe(id)
            result.removes += 1
        else:
            _compare(
                tried,
                trusted,
                [cases.event(chooser, tried.schema) for _ in range(chance.randint(1, 3))],
                result,
            )
        result.operations += 1
        if result.operations % _CHECK == 0:
            tried.check()
        if progress:
            progress(result.operations)
    tried.check()
    return result


def _compare(
    tried: Engine, trusted: Engine, events: list[dict[str, object]], result: SoakResult
) -> None:
    for got, right in zip(tried.match_batch(events), trusted.match_batch(events), strict=True):
        assert len(got) == len(set(got)), "an id occurs once in an answer"
        result.missing += len(set(right) - set(got))
        result.extra += len(set(got) - set(right))
    result.matches += len(events)
    result.pairs += len(events) * len(trusted)
