"""While clauses move from one plan to the next, all is as if they lay still.

A plan for many clauses is made in a thread beside the work, and clauses then move a few with each
call. Here either many clauses are there, or the numbers from which on that happens are small and
the test says when the thread is done, so that every moment can be looked at.
"""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis.encode.terms import from_rows
from tamis.index.clauses import SOME
from tamis.match.capabilities import match_bits, saved_form
from tamis.match.default import matcher
from tamis.match.default.matcher import Tamis
from tamis.match.default.planning import layout
from tamis.match.default.planning.costs import costs
from tamis.match.default.planning.event_sample import EventSample
from tamis.match.default.planning.layout import SurveyedClauses, in_order, lay_out
from tamis.match.default.planning.survey import nearness
from tamis.match.default.structure.packed_clauses import PackedTable
from tamis.match.default.structure.routes import trimmed
from tamis.match.default.workers import WorkerPool
from tamis.testing.matcher_checks import batch_of, random_clause, random_event
from tamis.testing.saving_checks import restored
from tests.running import run_machine
from tests.unit.match.default.two_matchers import (
    Both,
    one_clause,
    same_answer,
    some_clauses,
    some_events,
)


class Later:
    """A plan that is made when the test says so."""

    every: ClassVar[list[Later]] = []  # none while plans are made as usual
    at_once = False  # made when it is asked for, and known to be done later

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made = make() if self.at_once else None
        self._done = False
        Later.every.append(self)

    def finish(self) -> None:
        if not self._done and self._made is None:
            self._made = self._make()
        self._done = True

    def done(self) -> bool:
        return self._done

    def result(self) -> Any:
        self.finish()
        return self._made


@pytest.fixture
def _small() -> Iterator[None]:
    with small():
        yield


class small:  # noqa: N801 - read as `with small():`
    """Plans are made beside the work, and clauses move, however few there are."""

    def __enter__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        Later.every, Later.at_once = [], False
        for module, name, value in (
            (matcher, "_AT_ONCE", 0),
            (matcher, "_STEP", 7),
            (matcher, "_FEWER", 2),
            (layout, "_FEW", 0),
        ):
            self._patch.setattr(module, name, value)
        self._patch.setattr(WorkerPool, "beside", lambda _, make: Later(make))

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def finish_plans() -> None:
    for later in Later.every:
        later.finish()
    Later.every = []


class MovingMachine(RuleBasedStateMachine):
    """Clauses come, go and move, in any order; the answers are those of the naive matcher."""

    def __init__(self) -> None:
        super().__init__()
        Later.every, Later.at_once = [], False
        self.both = Both()

    @rule(seed=st.integers(0, 10**6), many=st.sampled_from([1, 1, 3, 40, 100]), back=st.booleans())
    def add(self, seed: int, many: int, back: bool) -> None:
        chance = random.Random(seed)
        clauses = [random_clause(chance, 4) for _ in range(many)]
        free = [
            slot for slot in range(max(self.both.live, default=0)) if slot not in self.both.live
        ]
        if back and len(free) >= many:  # into slots that others left
            self.both.add(clauses, chance.sample(free, many))
        else:
            self.both.add(clauses)

    @precondition(lambda self: self.both.live)
    @rule(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    def remove(self, seed: int, share: float) -> None:
        live = sorted(self.both.live)
        self.both.remove(random.Random(seed).sample(live, max(1, int(share * len(live)))))

    @rule(seed=st.integers(0, 10**6), size=st.sampled_from([1, 1, 5, 70]), bits=st.booleans())
    def match(self, seed: int, size: int, bits: bool) -> None:
        chance = random.Random(seed)
        batch = batch_of([random_event(chance, 4) for _ in range(size)])
        if bits:
            self.both.agree_on_bits(batch)
        else:
            self.both.agree(batch)

    @rule(at_once=st.booleans())
    def plans_are_made(self, at_once: bool) -> None:
        finish_plans()
        Later.at_once = at_once

    @rule()
    def pickle(self) -> None:
        self.both.tamis = pickle.loads(pickle.dumps(self.both.tamis))

    @rule()
    def save_and_restore(self) -> None:
        other = restored(self.both.tamis, Tamis())
        assert isinstance(other, Tamis)
        self.both.tamis = other

    @rule()
    def ask_for_the_plan(self) -> None:
        if self.both.tamis._index is not None or not self.both.live:
            plan = self.both.tamis.plan()
            assert plan.clauses == sum(route.clauses for route in plan.routes)
            assert 0 <= plan.moving <= plan.clauses == len(self.both.live)

    @invariant()
    def every_clause_has_one_home(self) -> None:
        self.both.tamis.check()


@pytest.mark.slow
def test_clauses_come_and_go_while_others_move() -> None:
    with small():
        run_machine(MovingMachine, examples=40, steps=30)


def moving(many: int, seed: int = 1) -> Both:
    """A matcher in the middle of moving."""
    chance = random.Random(seed)
    both = Both()
    both.add(some_clauses(chance, many // 3))
    both.agree(some_events(chance, 50))
    both.add(some_clauses(chance, many - many // 3))
    for _ in range(2000):
        both.tamis.match(some_events(chance, 1))
        finish_plans()
        if both.moving():
            return both
        time.sleep(0.005)
    raise AssertionError("no new plan was made")


@pytest.mark.usefixtures("_small")
@pytest.mark.slow
def test_clauses_move_a_few_with_each_call() -> None:
    both = moving(600)
    event = some_events(random.Random(2), 1)
    left = [both.moving()]
    while left[-1]:
        both.agree(event)
        left.append(both.moving())
        both.tamis.check()
    steps = [before - after for before, after in pairwise(left)]
    assert steps[:-1] == [7] * (len(steps) - 1)
    both.agree_on_bits(some_events(random.Random(3), 80))


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("moved", [0, 100])
def test_clauses_that_moved_and_those_that_did_not_can_go(moved: int) -> None:
    both = moving(600)
    chance = random.Random(4)
    batch = some_events(chance, 60)
    for _ in range(moved // 7):
        both.agree(batch[:1])
    assert both.moving()
    for _ in range(5):
        gone = chance.sample(sorted(both.live), 20)
        both.remove(gone[:1])
        both.remove(gone[1:])
        both.agree(batch)
        both.tamis.check()
        both.add(some_clauses(chance, 20), gone)
        both.agree(batch)
        both.tamis.check()
    both.remove(sorted(both.live))
    assert both.tamis.nbytes == Tamis().nbytes
    both.agree(batch)


@pytest.mark.usefixtures("_small")
def test_what_happens_while_a_plan_is_made() -> None:
    """The plan knows nothing of it, and takes it in when it is done."""
    chance = random.Random(5)
    both = Both()
    both.add(some_clauses(chance, 200))
    both.agree(some_events(chance, 50))
    both.add(some_clauses(chance, 400))
    both.agree(some_events(chance, 1))
    assert Later.every, "a plan is under way"
    both.remove(range(0, 600, 3))
    both.add(some_clauses(chance, 100), range(0, 300, 3))
    both.add([[(90, 0, SOME, 1, 5)], []])  # an attribute that the plan does not know
    both.agree(some_events(chance, 60))
    both.agree_on_bits(some_events(chance, 60))
    finish_plans()
    for _ in range(200):
        both.agree(some_events(chance, 2))
        both.agree(batch_of([{90: [3]}, {90: [3, 7]}]))
    assert both.moving() == 0
    both.tamis.check()
    both.agree_on_bits(some_events(chance, 60))


@pytest.mark.usefixtures("_small")
def test_a_matcher_is_saved_and_pickled_in_the_middle() -> None:
    both = moving(600)
    batch = some_events(random.Random(6), 100)
    right = both.naive.match(batch)
    copy: Tamis = pickle.loads(pickle.dumps(both.tamis))
    assert copy.plan().moving == both.moving() > 0
    other = restored(both.tamis, Tamis(threads=2))
    for each in (both.tamis, copy, other):
        each.check()
        same_answer(each.match(batch), right)
        same_answer(match_bits(each, batch).matches(), right)


@pytest.mark.usefixtures("_small")
def test_threads_look_at_both_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    both = moving(600)
    both.tamis.threads = 2
    monkeypatch.setattr(matcher, "_STEP", 0)  # so that all of them meet both
    chance = random.Random(7)
    for size in (1, 63, 127, 128, 700):
        both.agree(some_events(chance, size))
    assert both.moving()


@pytest.mark.slow
def test_many_clauses_move() -> None:
    """The true numbers: first at once, then at once again, then beside the work and in steps."""
    both = moving(25_000)
    chance = random.Random(8)
    batch = some_events(chance, 40)
    both.agree(batch)
    left = both.moving()
    both.remove(chance.sample(sorted(both.live), 500))
    both.add(some_clauses(chance, 300))
    both.agree_on_bits(batch)
    assert 0 < both.moving() < left
    copy: Tamis = pickle.loads(pickle.dumps(both.tamis))
    saved_form(both.tamis)  # all have to be in one place for that
    assert both.moving() == 0
    both.agree(batch)
    both.agree_on_bits(batch)
    both.tamis.check()
    same_answer(copy.match(batch), both.naive.match(batch))


@pytest.mark.usefixtures("_small")
def test_a_plan_that_cannot_be_made_leaves_things_as_they_were() -> None:
    """A match may raise once; the next one gives an answer."""
    chance = random.Random(9)
    both = Both()
    both.add(some_clauses(chance, 200))
    both.agree(some_events(chance, 50))

    def fails(_: object, make: Callable[[], Any]) -> Later:
        def no() -> Any:
            raise MemoryError("no memory is left")

        del make
        later = Later(lambda: None)
        later._done, later.result = True, no  # type: ignore[method-assign]
        return later

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerPool, "beside", fails)
        both.add(some_clauses(chance, 400))
        both.agree(some_events(chance, 1))  # the plan begins
        with suppress(MemoryError):
            both.tamis.match(some_events(chance, 1))
        both.agree(some_events(chance, 50))
    both.tamis.check()


def test_clauses_that_come_while_an_order_is_made() -> None:
    """The table grows and moves to new memory; the order is made from the old."""
    chance = random.Random(10)
    terms = from_rows([one_clause(chance, 2) for _ in range(1000)])  # for the sparse family
    table = PackedTable()
    table.add(np.arange(1000), terms.starts, terms[1:])
    sample = EventSample.of(some_events(chance, 500).pairs)
    new = lay_out(SurveyedClauses.of(table), sample, costs(1000), table.width, table.slots)
    assert (new.sparse.attribute >= 0).any()
    view = table.view
    table.remove(np.arange(900, 1000))
    long = from_rows([[(2, 0, SOME, 2 * i, 2 * i) for i in range(50)]] * 100)
    table.add(np.arange(900, 1000), long.starts, long[1:])
    assert table.view.rows is not view.rows
    assert table.view.where is view.where
    with pytest.MonkeyPatch.context() as patch:
        # Not compiled, it notices when it reads past the end.
        patch.setattr(layout, "nearness", nearness.py_func)
        order = in_order(new, view)
    assert set(range(900)) <= set(order.tolist()) <= set(range(1000))


def test_room_for_clauses_that_never_came_is_not_saved() -> None:
    """Without a clause in it, a family is still of its sort."""
    both = Both()
    both.add([(0, 0, SOME, 0, 1000 + i)] for i in range(2000))
    both.agree(batch_of([{0: [i]} for i in range(100)]))
    (framed,) = both.tamis._indexes()
    assert framed.record.dense.head[0] > 0
    asked = SurveyedClauses.of(both.tamis.clauses)
    empty = lay_out(asked, both.tamis._watch.planned_for, costs(2000), 1, 0)
    kept = trimmed(empty)
    assert len(kept.dense.slot_of) == 0
    assert len(kept.dense.edges) > 0, "by which a dense family is known"
    assert len(kept.sparse.edges) == 0
