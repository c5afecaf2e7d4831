"""Millions of pairs of an event and a subscription, on the workloads of the papers.

The soak is about everything that the language and the schema can say, with subscriptions that come
and go; this is about size. Both engines load the same table and are asked the same events, and the
answer of the one that is tried has to be right as a list and as bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, count, pairwise

import pyarrow as pa

from tamis.engine import Engine
from tamis.lab.instruments.agreement import differences
from tamis.match.base import Matcher
from tamis.model.schema import Schema
from tamis.workload import Workload

_BATCHES = (1, 10, 100, 1000)  # events at once, in turn: a matcher may go other ways for few


@dataclass
class Paired:
    """What was compared, and how it came out; what is wrong as a list and as bits counts twice."""

    pairs: int = 0
    matches: int = 0  # pairs that match, as the reference says
    missing: int = 0  # of them not found by the matcher
    extra: int = 0  # found by the matcher only

    @property
    def disagreements(self) -> int:
        """Pairs on which the two differ."""
        return self.missing + self.extra


def compare_pairs(
    matcher: Callable[[], Matcher],
    reference: Callable[[], Matcher],
    made: Workload,
    pairs: int,
    progress: Callable[[int], None] | None = None,
) -> Paired:
    """Compare two matchers on at least so many pairs of a workload's events and subscriptions."""
    schema = Schema.from_dict(made.schema)
    tried, trusted = Engine(schema, matcher()), Engine(schema, reference())
    for engine in (tried, trusted):
        engine.subscribe_table(made.subscriptions)
    left = -(-pairs // len(trusted))
    result = Paired()
    for number in count():
        events = made.events(min(left, sum(_BATCHES)), seed=number)
        left -= len(events)
        for first, last in pairwise(accumulate(_BATCHES, initial=0)):
            _ask(tried, trusted, events.slice(first, last - first), result)
            if progress:
                progress(result.pairs)
        if not left:
            break
    return result


def _ask(tried: Engine, trusted: Engine, events: pa.Table, result: Paired) -> None:
    right = trusted.match_batch(events)
    result.pairs += len(events) * len(trusted)
    result.matches += right.total
    for found in (tried.match_batch(events), tried.match_bitmap(events).matches()):
        missing, extra = differences(found, right)
        result.missing += missing
        result.extra += extra
