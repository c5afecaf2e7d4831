"""A plan is made from a sample of clauses; it must also suit those that the sample misses."""

from __future__ import annotations

import pytest

from tamis import workload
from tamis.match.default.matcher import Tamis
from tamis.match.default.planning import layout
from tamis.match.plan import SPARSE
from tests.loaded import loaded


def test_keys_that_no_surveyed_clause_has_are_used_where_few_events_have_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 500 attributes the survey sees few clauses each, and of some values none at all.

    Clauses that ask for an attribute which few events bind belong under that attribute. In the
    family most of them would have to be verified for every event: it has no column for it.
    """
    monkeypatch.setattr(layout, "_SURVEYED", 1000)
    made = workload.make("sparse", 20_000, seed=3, attributes=500)
    engine = loaded(made)
    batch = engine.encode(made.events(300))
    matcher = engine.matcher
    assert isinstance(matcher, Tamis)
    matcher.match(batch)
    matcher.settle()
    plan = matcher.plan()
    (family,) = [route for route in plan.routes if route.sort == SPARSE]
    assert family.clauses < 0.1 * len(matcher)
    assert family.met < plan.met / 3, "candidates of an event, most of them in buckets"
