"""Engines with operators at random moments of their lives, against the definition of truth.

Conditions and events are those of `operator_cases`, where few names and values make nearly all
calls shared ones. Hypothesis chooses the steps, and the seeds that conditions and events grow from.
"""

from __future__ import annotations

import pickle
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from tamis import Engine, schedulers
from tamis.engine.calls import call_group as sharing
from tamis.errors import ConditionError
from tamis.model.condition import And, Call, Condition, ValueConstraint, Variable
from tamis.model.printer import to_text
from tamis.testing import operator_cases as cases
from tests.running import run_machine
from tests.unit.engine.calls.filled import expected, patient

SEEDS = st.integers(0, 10_000)
LIMITS = st.tuples(
    st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), st.sampled_from((0, 1, 1.5, 2, 3.0, "x"))
)


def _machine(scheduler: str) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.folder = tempfile.TemporaryDirectory()
            self.engine = Engine(cases.SCHEMA, operators=cases.OPERATORS, scheduler=scheduler)
            self.live: dict[int, Condition] = {}
            patient(self.engine)

        def teardown(self) -> None:
            self.folder.cleanup()

        @rule(seed=SEEDS, text=st.booleans())
        def subscribe(self, seed: int, text: bool) -> None:
            condition = cases.condition(random.Random(seed))
            before = len(self.engine)
            try:
                id = self.engine.subscribe(to_text(condition) if text else condition)
            except ConditionError:  # nothing binds a variable, or it can never hold
                assert len(self.engine) == before
            else:
                assert isinstance(id, int)
                self.live[id] = condition

        @rule(limits=st.lists(LIMITS, min_size=1, max_size=6), name=st.sampled_from("ab"))
        def subscribe_to_one_call(self, limits: list[tuple[str, Any]], name: str) -> None:
            for comparator, constant in limits:
                limit = ValueConstraint(Variable("n"), comparator, constant)
                condition = And((Call("one", (name, Variable("n"))), limit))
                id = self.engine.subscribe(condition)
                assert isinstance(id, int)
                self.live[id] = condition

        @precondition(lambda self: self.live)
        @rule(data=st.data())
        def unsubscribe(self, data: st.DataObject) -> None:
            ids = st.lists(st.sampled_from(sorted(self.live)), min_size=1, unique=True)
            for id in data.draw(ids):
                self.engine.unsubscribe(id)
                del self.live[id]

        @precondition(lambda self: self.live)
        @rule()
        def unsubscribe_all(self) -> None:
            for id in self.live:
                self.engine.unsubscribe(id)
            self.live.clear()
            assert len(self.engine.calls) == len(self.engine.calls.predicates) == 0

        @rule(seeds=st.lists(SEEDS, min_size=1, max_size=4))
        def match(self, seeds: list[int]) -> None:
            batch = [cases.event(random.Random(seed)) for seed in seeds]
            right = [expected(self.live, event) for event in batch]
            answers = list(self.engine.match_batch(batch))
            assert [set(ids) for ids in answers] == right
            assert [len(ids) for ids in answers] == [len(ids) for ids in right]
            assert set(self.engine.match(batch[0])) == right[0]
            bits = self.engine.match_bitmap(batch)
            assert [set(bits[at]) for at in range(len(batch))] == right

        @precondition(lambda self: self.live)
        @rule(seed=SEEDS, data=st.data())
        def explain(self, seed: int, data: st.DataObject) -> None:
            event = cases.event(random.Random(seed))
            id = data.draw(st.sampled_from(sorted(self.live)))
            assert bool(self.engine.explain(id, event)) == (id in expected(self.live, event))

        @rule()
        def save_and_open(self) -> None:
            folder = Path(self.folder.name) / "index"
            self.engine.save(folder, replace=True)
            self.engine.close()
            self.engine = Engine.open(folder, operators=cases.OPERATORS)
            assert self.engine.calls.scheduler_name == scheduler
            patient(self.engine)

        @rule()
        def pickle(self) -> None:
            self.engine = pickle.loads(pickle.dumps(self.engine))

        @rule()
        def close(self) -> None:
            self.engine.close()

        @invariant()
        def whole(self) -> None:
            assert set(self.engine.ids()) == set(self.live)
            self.engine.check()
            self.engine.calls.scheduler.check()

    return Machine


@pytest.mark.parametrize("few", [0, 4])
@pytest.mark.parametrize("scheduler", schedulers())
@pytest.mark.slow
def test_answers_are_those_of_the_definition_whatever_happens(
    scheduler: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_FEW", few)  # so that there is always something in groups
    run_machine(_machine(scheduler), examples=8, steps=20)
