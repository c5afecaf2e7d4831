"""Schedulers by name, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import SchedulerError
from tamis.schedule import registry
from tamis.schedule.base import ON_FALSE, TRUE
from tamis.schedule.registry import SchedulerEntry, create, entry, schedulers
from tamis.schedule.statistics import PredicateStatistics
from tests.unit.schedule.instances import NAMES


def test_the_table() -> None:
    assert schedulers()[0] == "adaptive", "the default comes first"
    assert {"sub-order", "sequential", "naive", "in-python"} <= set(schedulers())
    statistics = PredicateStatistics()
    for name in schedulers():
        known = entry(name)
        assert known.paper
        assert known.idea
        assert create(name, statistics=statistics).statistics is statistics
        assert create(name).statistics is not create(name).statistics


def test_unknown_names_and_ones_own() -> None:
    with pytest.raises(SchedulerError, match="adaptive"):
        create("adaptiv")
    with pytest.raises(SchedulerError, match="statistics"):
        create("naive", threads=2)
    path = "tamis.schedule.naive:NaiveScheduler"
    registry.register(SchedulerEntry("mine", path, "none", "an alias"))
    assert "mine" in schedulers()
    assert len(create("mine")) == 0
    with pytest.raises(SchedulerError, match="already"):
        registry.register(entry("mine"))


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name: str) -> None:
    scheduler = create(name)
    scheduler.add(2, [0, 1], [ON_FALSE] * 2, owner=0)
    for clause, predicates, kills, message in (
        (2, [0], [ON_FALSE], "already"),
        (3, [], [], "no predicates"),
        (3, [0, 1], [ON_FALSE], "2 predicates"),
        (3, [0], [3], "ON_FALSE"),
        (3, [-1], [ON_FALSE], "numbered"),
        (-3, [1], [ON_FALSE], "numbered"),
    ):
        with pytest.raises(SchedulerError, match=message):
            scheduler.add(clause, predicates, kills, owner=0)
    with pytest.raises(SchedulerError, match="no clause 3"):
        scheduler.remove(3)
    for clauses in ([3], [-1], [10**9]):
        with pytest.raises(SchedulerError, match="no clause"):
            scheduler.run(np.array(clauses))
    with pytest.raises(SchedulerError, match="2 predicates, but 1"):
        scheduler.simulate(np.array([2]), np.ones(1, np.int8))
    run = scheduler.run(np.array([2]))
    with pytest.raises(SchedulerError, match="FAULT"):
        run.record(run.next(), 7)
    with pytest.raises(SchedulerError, match="not complete"):
        run.settle(2, True)
    run.record(0, TRUE)
    with pytest.raises(SchedulerError, match="recorded"):
        run.record(0, TRUE)
    assert run.record(1, TRUE).tolist() == [2]
    run.settle(2, False)
    with pytest.raises(SchedulerError, match="settled"):
        run.settle(2, True)
    scheduler.check()
    assert len(scheduler) == 1
