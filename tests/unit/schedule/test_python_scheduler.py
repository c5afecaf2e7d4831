"""What a scheduler in Python sees of an event, and what it may choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.errors import SchedulerError
from tamis.schedule.base import FALSE, NEVER, ON_FALSE, ON_TRUE, TRUE
from tamis.schedule.python_scheduler import EventState, PythonScheduler
from tamis.schedule.registry import SchedulerEntry, create, register


class _First(PythonScheduler):
    """Keeps the state that it was given, and returns what the test wants."""

    state: EventState
    answer: Any = None

    def choose(self, state: EventState) -> int:
        self.state = state
        return state.open[0] if self.answer is None else self.answer


@pytest.fixture
def scheduler() -> _First:
    """Clauses 4 and 9 are alternatives; predicates 1 and 2 share a call."""
    made = _First()
    made.add(4, [1, 5], [ON_FALSE, ON_TRUE], owner=0)
    made.add(9, [2], [NEVER], owner=0)
    made.add(7, [5, 2], [ON_FALSE, ON_FALSE], owner=1)
    made.assign_call(1, 3)
    made.assign_call(2, 3)
    made.statistics.set([1, 2, 5], p=[0.25, 0.5, 0.9], cost=[1.0, 1.0, 8.0])
    return made


def test_the_state_of_an_event(scheduler: _First) -> None:
    run = scheduler.run(np.array([4, 7, 9]))
    assert run.next() == 1
    state = scheduler.state
    assert (state.open, state.undecided) == ([1, 5, 2], [4, 7, 9])
    assert (state.cost(5), state.probability(1)) == (8.0, 0.25)
    assert (state.clauses(2), state.predicates(7)) == ([7, 9], [5, 2])
    assert state.kill_probability(1, 4) == 0.75
    assert state.kill_probability(5, 4) == pytest.approx(0.9)
    assert state.kill_probability(2, 9) == 0
    assert state.kill_probability(1, 9) == 0, "it does not contain the predicate"
    assert (state.alternatives(4), state.alternatives(7)) == ([4, 9], [7])
    assert (state.answered_with(1), state.answered_with(5)) == ([1, 2], [5])
    run.record(1, FALSE)
    assert (state.open, state.undecided) == ([5, 2], [7, 9])
    assert (state.clauses(1), state.predicates(4), state.answered_with(2)) == ([], [], [2])
    (complete,) = run.record(2, TRUE)
    run.settle(int(complete), True)
    assert (state.open, state.undecided) == ([5], [7])
    run.record(5, TRUE)
    assert run.next() == -1
    assert (state.open, state.undecided) == ([], [])


@pytest.mark.parametrize("answer", [3, -1, "1", 1.0, True])
def test_a_choice_that_is_not_open_is_refused(scheduler: _First, answer: Any) -> None:
    scheduler.answer = answer
    with pytest.raises(SchedulerError, match=r"_First\.choose returned .*open are 1, 5, 2"):
        scheduler.run(np.array([4, 7, 9])).next()
    scheduler.answer = np.int64(5)
    assert scheduler.run(np.array([4, 7, 9])).next() == 5


def _lost(path: str) -> None:
    register(SchedulerEntry("lost", path, "none", "nothing"))
    create("lost")


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("tests.unit.schedule.test_python_scheduler:Missing", "cannot be imported"),
        ("tests.no_such_module:Missing", "cannot be imported"),
        ("tests.unit.schedule.test_python_scheduler:EventState", "not a subclass of Scheduler"),
        ("tests.unit", "module:name"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, wrong: str) -> None:
    with pytest.raises(SchedulerError, match=wrong):
        _lost(path)
