"""Comparison of two matchers on millions of pairs, on the papers' workloads.

The soak covers the language and the schema, with changing subscriptions; this covers size. Both
engines load the same table and match the same events. The answer must be right as a list and as
bits.
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

_BATCHES = (1, 10, 100, 1000)  # events at once, in turn: a matcher may treat few events differently


@dataclass
class PairComparison:
    """The result. A pair that is wrong as a list and as bits counts twice."""

    pairs: int = 0
    matches: int = 0  # pairs that match, as the reference says
    missing: int = 0  # of these, not found by the matcher
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
) -> PairComparison:
    """Compare two matchers on at least `pairs` pairs of a workload."""
    schema = Schema.from_dict(made.schema)
    tried, trusted = Engine(schema, matcher()), Engine(schema, reference())
    for engine in (tried, trusted):
        engine.subscribe_table(made.subscriptions)
    left = -(-pairs // len(trusted))
    result = PairComparison()
    for number in count():
        events = made.events(min(left, sum(_BATCHES)), seed=number)
        left -= len(events)
        for first, last in pairwise(accumulate(_BATCHES, initial=0)):
            _compare(tried, trusted, events.slice(first, last - first), result)
            if progress:
                progress(result.pairs)
        if not left:
            break
    return result


def _compare(tried: Engine, trusted: Engine, events: pa.Table, result: PairComparison) -> None:
    right = trusted.match_batch(events)
    result.pairs += len(events) * len(trusted)
    result.matches += right.total
    for found in (tried.match_batch(events), tried.match_bitmap(events).matches()):
        missing, extra = differences(found, right)
        result.missing += missing
        result.extra += extra
