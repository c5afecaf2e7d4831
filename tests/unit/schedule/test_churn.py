"""Clauses are added and removed at random: schedulers always agree with the oracle."""

from __future__ import annotations

import random
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis.schedule.base import FAULT, NEVER
from tamis.schedule.registry import create
from tamis.testing.scheduler_checks import ScheduledClause, ScheduledClauses, check_event
from tests.running import run_machine
from tests.unit.schedule.instances import NAMES

_PREDICATES = 9
_literals = st.lists(
    st.tuples(st.integers(0, _PREDICATES - 1), st.integers(0, NEVER)), min_size=1, max_size=6
)


class Churn(RuleBasedStateMachine):
    """One scheduler, and what it should know."""

    name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = create(self.name)
        self.instance = ScheduledClauses({}, _PREDICATES)

    @rule(number=st.integers(0, 40), literals=_literals, owner=st.integers(0, 12))
    def add(self, number: int, literals: list[tuple[int, int]], owner: int) -> None:
        if number not in self.instance.clauses:
            clause = ScheduledClause(
                [t for t, _ in literals], [kill for _, kill in literals], owner
            )
            self.scheduler.add(number, clause.predicates, clause.kills, owner)
            self.instance.clauses[number] = clause

    @rule(seed=st.integers(0, 999), many=st.integers(5, 20))
    def add_many(self, seed: int, many: int) -> None:
        rng = random.Random(seed)
        for _ in range(many):
            literals = [(rng.randrange(_PREDICATES), rng.randrange(3)) for _ in range(3)]
            self.add(rng.randrange(41), literals, rng.randrange(13))

    @precondition(lambda self: self.instance.clauses)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.instance.clauses)))
        self.scheduler.remove(number)
        del self.instance.clauses[number]

    @precondition(lambda self: self.instance.clauses)
    @rule()
    def remove_all(self) -> None:
        for number in self.instance.clauses:
            self.scheduler.remove(number)
        self.instance.clauses.clear()
        assert self.scheduler.graph.nbytes == 0

    @rule(
        predicate=st.integers(0, _PREDICATES - 1),
        outcome=st.integers(0, FAULT),
        cost=st.floats(0, 1000) | st.none(),
        times=st.integers(1, 30),
    )
    def learn(self, predicate: int, outcome: int, cost: float | None, times: int) -> None:
        for _ in range(times):
            self.scheduler.statistics.learn(predicate, outcome, cost)

    @rule(
        seed=st.integers(0, 999),
        outcome=st.lists(st.integers(0, FAULT), min_size=_PREDICATES, max_size=_PREDICATES),
    )
    def event(self, seed: int, outcome: list[int]) -> None:
        rng = random.Random(seed)
        every = sorted(self.instance.clauses)
        survivors = rng.sample(every, rng.randint(0, len(every)))
        check_event(self.instance, self.scheduler, survivors, outcome)

    @invariant()
    def sound(self) -> None:
        self.scheduler.check()
        assert len(self.scheduler) == len(self.instance.clauses)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_churn(name: str) -> None:
    run_machine(type("ChurnOf", (Churn,), {"name": name}), examples=40, steps=25)
