"""Warm start: plan an engine for events like past ones.

An engine learns from the events that it matches where to place clauses and which operators to call
first. Statistics of past events spare it that phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from tamis.encode.batch import EventBatch
from tamis.encode.validation import validate
from tamis.engine.element_engine import with_element_engines
from tamis.errors import EventError
from tamis.match.answers import Matches
from tamis.match.capabilities import settle
from tamis.schedule.exhaustive import PredicateCounts
from tamis.schedule.statistics import PredicateEstimate

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


class PastStatistics(Protocol):
    """Statistics of past events. `tamis.store.Stats` implements it."""

    @property
    def sample(self) -> pa.Table:
        """A sample of the events, in any order."""
        ...

    @property
    def known(self) -> Mapping[str, PredicateEstimate]:
        """Outcomes of operator predicates, by their texts; costs are in milliseconds."""
        ...


def expect(engine: Engine, past: PastStatistics) -> None:
    """Prepare the scheduler and the matcher of an engine for events like past ones."""
    engine.calls.expect(past.known)
    if past.sample.num_rows and not plan_for(engine, past.sample):
        reason = validate(engine.encoder, past.sample.slice(0, 1)).refused[0].reason
        raise EventError(
            "the past events have another schema than the engine: no event of their sample is "
            f"valid under its schema; the first: {reason}"
        )


def plan_for(engine: Engine, events: pa.Table) -> int:
    """Let the matcher plan for events like these; return how many of them are valid.

    No operator is called: the plan does not depend on operators.
    """
    valid = validate(engine.encoder, events)
    if len(valid):
        engine.matcher.match(valid.batch(engine.encoder))  # once: twice would count double
        for each in with_element_engines(engine):
            settle(each.matcher)
    return len(valid)


class MeasuredMatches(NamedTuple):
    """Matches, and the outcomes of each operator predicate, by its text."""

    found: Matches
    outcomes: Mapping[str, PredicateCounts]


def match_and_measure(engine: Engine, events: pa.Table | EventBatch) -> MeasuredMatches:
    """Match events, and evaluate every operator predicate of every candidate clause.

    Candidates are the clauses whose ordinary predicates hold. A scheduler sees the same events: for
    `borough = Bronx and locIn(Bronx)` it never sees an event elsewhere.
    """
    with engine._lock.mutex:
        engine._ready()
        with engine.calls.measuring() as outcomes:
            found = engine.match_batch(events)
    return MeasuredMatches(found, outcomes)
