"""What past events tell an engine: where clauses should lie, and which operators come first.

An engine learns both from the events that it matches, and until it has seen some it guesses. Who
has statistics of past events need not wait for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from tamis.encode.batch import EventBatch
from tamis.encode.validation import validate
from tamis.errors import EventError
from tamis.match.answers import Matches
from tamis.match.capabilities import settle
from tamis.schedule.exhaustive import PredicateCounts
from tamis.schedule.statistics import PredicateEstimate

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


class PastStatistics(Protocol):
    """What an engine wants to know of past events. `tamis.store.Stats` is one."""

    @property
    def sample(self) -> pa.Table:
        """Some of the events, in no order."""
        ...

    @property
    def known(self) -> Mapping[str, PredicateEstimate]:
        """What came of predicates on operators, by their texts; costs are in milliseconds."""
        ...


def expect(engine: Engine, past: PastStatistics) -> None:
    """Tell the scheduler and the matcher of an engine what events are like."""
    engine.calls.expect(past.known)
    if past.sample.num_rows and not plan_for(engine, past.sample):
        reason = validate(engine.encoder, past.sample.slice(0, 1)).refused[0].reason
        raise EventError(
            "the past events are of another schema than the engine: not one of their sample is an "
            f"event of its schema; the first: {reason}"
        )


def plan_for(engine: Engine, events: pa.Table) -> int:
    """Have a matcher decide where clauses lie, by what some events are like; how many are good.

    No operator is called for that: what they answer has no part in it.
    """
    valid = validate(engine.encoder, events)
    if len(valid):
        batch = valid.batch(engine.encoder)
        for _ in range(2):  # a plan for the first few is made again when there are more
            engine.matcher.match(batch)
            settle(engine.matcher)
    return len(valid)


class MeasuredMatches(NamedTuple):
    """Matches, and what came of each predicate on operators, by its text."""

    found: Matches
    told: Mapping[str, PredicateCounts]


def match_and_measure(engine: Engine, events: pa.Table | EventBatch) -> MeasuredMatches:
    """Match events, and have all predicates on operators evaluated that could matter to them.

    These are the predicates of clauses whose ordinary ones hold. That is what a scheduler will be
    asked about as well: of `borough = Bronx and locIn(Bronx)` it never sees an event elsewhere.
    """
    with engine._lock.mutex, engine.calls.measuring() as told:
        found = engine.match_batch(events)
    return MeasuredMatches(found, told)
