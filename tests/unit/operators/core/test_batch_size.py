"""How the events of a batch share calls and time; no moment of real time is taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.model.operator import Fault
from tamis.operators import Operator, Runner, operator
from tamis.operators.batch_size import BatchSizer
from tamis.operators.executor import Executor, LateError
from tests.unit.operators.core.worker_probes import kinds


def _made(timeout: float, *, run: str = "thread", cost: float = 1.0, batch: Any = True) -> Operator:
    return operator(
        name="staged",
        reads=("n",),
        arguments={"k": "number"},
        gives={"m": "number"},
        run=run,
        batch=batch,
        timeout=timeout,
        cost=cost,
    )(lambda n, k: n)


class Staged(Executor):
    """An executor where a call takes as long as the test says, and not a moment of real time.

    `plan` says of how many events a call is, by which it hangs or takes so many seconds to raise.
    """

    def __init__(self, plan: dict[int, float]) -> None:
        self.plan, self.now = plan, 0.0
        self.calls: list[tuple[int, float]] = []  # how many events, and how much time they had

    def start(self, operator: Operator) -> None:
        self.now += 100.0  # on time of its own

    def call(self, operator: Operator, events: Any, handed: Any, timeout: float) -> Any:
        self.calls.append((len(events), timeout))
        seconds = self.plan[len(events)]
        self.now += min(seconds, timeout)
        if seconds > timeout:
            raise LateError
        return Fault("raised: no", "raised")


HANGS = float("inf")


@pytest.mark.parametrize(
    ("plan", "calls", "expected"),
    [
        # It hangs for every part: one timeout for all of them.
        (
            {16: 0.0, 8: 0.0, 4: 0.0, 2: HANGS},
            [(16, 4.0), *[(8, 4.0)] * 2, *[(4, 4.0)] * 4, (2, 4.0)],
            ["timeout"] * 16,
        ),
        # The parts have what the whole has left.
        ({16: 3.0, 8: HANGS}, [(16, 4.0), (8, 1.0)], ["timeout"] * 16),
        # Nothing hung: the events without a call of their own failed with the others.
        ({16: 1.0, 8: 1.5}, [(16, 4.0), (8, 3.0), (8, 1.5)], ["raised"] * 16),
        ({16: HANGS}, [(16, 4.0)], ["timeout"] * 16),
    ],
)
def test_a_batch_takes_one_timeout_whatever_it_does(
    plan: dict[int, float],
    calls: list[tuple[int, float]],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = Staged(plan)
    monkeypatch.setattr(Runner, "_executor", lambda runner, run: executor)
    monkeypatch.setattr("time.perf_counter", lambda: executor.now)
    runner = Runner()
    found = runner.call(_made(4.0), [(0,)] * 16, (0, None))
    assert kinds(found) == expected
    assert executor.calls == calls
    assert executor.now <= 104.0
    count = runner.report()["staged"]
    assert (count.events, count.calls) == (16, len(calls))
    assert count.seconds <= 4.0


def test_each_event_has_its_timeout_where_there_are_no_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = Staged({1: HANGS})
    monkeypatch.setattr(Runner, "_executor", lambda runner, run: executor)
    found = Runner().call(_made(4.0, batch=False), [(0,)] * 6, (0, None))
    assert kinds(found) == ["timeout"] * 5 + ["set aside"]
    assert executor.calls == [(1, 4.0)] * 5


class Timed(Executor):
    """An executor where each event takes the seconds that it, or its constant, is."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, list[int]()

    def call(self, operator: Operator, events: Any, handed: Any, timeout: float) -> Any:
        self.calls.append(len(events))
        seconds = sum(event[0] + handed.get("k", 0.0) for event in events)
        self.now += min(seconds, timeout)
        if seconds > timeout:
            raise LateError
        if any(event[0] == BAD for event in events):
            return Fault("raised: bad", "raised")
        return [((event[0],),) for event in events]


BAD = 0.125


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timed:
    executor = Timed()
    monkeypatch.setattr(Runner, "_executor", lambda runner, run: executor)
    monkeypatch.setattr("time.perf_counter", lambda: executor.now)
    return executor


def test_a_call_is_for_as_many_as_half_its_timeout_suffices_for(timed: Timed) -> None:
    runner, made = Runner(), _made(1.0)
    alone = [runner.call(made, [(0.167,)], (0, None)) for _ in range(3)]
    assert alone == [[((0.167,),)]] * 3
    timed.calls.clear()
    assert kinds(runner.call(made, [(0.167,)] * 12, (0, None))) == ["answered"] * 12
    assert timed.calls == [2] * 6
    count = runner.report()["staged"]
    assert (count.events, count.calls, count.faults) == (15, 9, 0)


@pytest.mark.parametrize(
    ("made", "seconds", "calls"),
    [
        # Before the first call the declared cost is believed.
        (_made(1.0, cost=100.0), [0.001] * 300, [5, 295]),
        # An operator that costs more than its timeout is called all the same.
        (_made(1.0, cost=5000.0), [0.9] * 3, [1, 1, 1]),
        # In place there is no limit on time.
        (_made(9.0, run="here", cost=4000.0), [0.1] * 10, [10]),
    ],
)
def test_the_first_calls(
    timed: Timed, made: Operator, seconds: list[float], calls: list[int]
) -> None:
    found = Runner().call(made, [(each,) for each in seconds], (0, None))
    assert kinds(found) == ["answered"] * len(seconds)
    assert timed.calls == calls


def test_after_one_hangs_the_rest_is_not_tried(timed: Timed) -> None:
    runner, made = Runner(), _made(1.0, cost=100.0)
    found = runner.call(made, [(0.1,)] * 5 + [(9.0,)] + [(0.1,)] * 10, (0, None))
    assert kinds(found) == ["answered"] * 5 + ["timeout"] * 11
    assert timed.calls == [5, 5]
    assert timed.now == 1.5  # what was answered, and one timeout
    rest = found[-1]
    assert rest == Fault("timeout: not tried, it hung for others of the batch", "timeout")
    count = runner.report()["staged"]
    assert (count.events, count.calls, count.timeouts) == (16, 2, 11)
    # Too much was asked for in one call, as far as anybody knows.
    timed.calls.clear()
    assert kinds(runner.call(made, [(0.1,)] * 8, (0, None))) == ["answered"] * 8
    assert timed.calls[0] == 1
    assert len(timed.calls) < 8


def test_that_it_hung_once_counts_once(timed: Timed) -> None:
    runner, made = Runner(faults=2), _made(1.0, cost=500.0)
    assert kinds(runner.call(made, [(9.0,)] * 8, (0, None))) == ["timeout"] * 8
    assert kinds(runner.call(made, [(0.0,)], (0, None))) == ["answered"]


def test_constants_have_a_pace_of_their_own(timed: Timed) -> None:
    runner, made = Runner(), _made(1.0)
    slow, quick = (0.1, None), (0.0, None)
    for constants in (slow, quick, slow, quick):
        runner.call(made, [(0.0,)], constants)
    timed.calls.clear()
    assert kinds(runner.call(made, [(0.0,)] * 256, quick)) == ["answered"] * 256
    assert timed.calls == [256]
    assert kinds(runner.call(made, [(0.0,)] * 10, slow)) == ["answered"] * 10
    assert timed.calls[1:] == [5, 5]


def test_pairs_go_in_as_many_calls(timed: Timed) -> None:
    runner, made = Runner(), _made(1.0, batch="pairs")
    events = [(0.1,)] * 10
    runner.call_pairs(made, events[:1], [(0, None)])
    found = runner.call_pairs(made, events, [(k, None) for k in range(10)])
    assert kinds(found) == ["answered"] * 10
    assert timed.calls == [1, 5, 5]


def test_what_is_well_is_answered_before_the_time_is_up(timed: Timed) -> None:
    """Of a batch with a bad event the good halves come first, not what is left of the bad one."""
    runner, made = Runner(), _made(1.0)
    events = [(BAD,), *[(0.0,)] * 63]  # a call with the bad one takes an eighth of the timeout
    found = runner.call(made, events, (0, None))
    assert kinds(found) == ["raised"] + ["answered"] * 63
    bad = _made(0.6)
    found = runner.call(bad, events, (0, None))
    assert kinds(found) == ["timeout"] * 8 + ["answered"] * 56
    # It hung for some of them, although the last was answered: what comes after is not tried.
    dear = _made(0.6, cost=0.3 / 64 * 1000)
    found = runner.call(dear, events + events, (0, None))
    assert kinds(found) == ["timeout"] * 8 + ["answered"] * 56 + ["timeout"] * 64


@given(st.integers(1, 40), st.floats(0.001, 0.9), st.floats(0.01, 1e4))
def test_what_alone_is_in_time_is_so_in_a_batch(events: int, seconds: float, cost: float) -> None:
    sizer = BatchSizer(cost / 1000, 1.0)
    sizer.answered("k", 1, seconds)
    for _ in range(events):
        most = sizer.size("k")
        assert most == 1 or most * seconds <= 0.5
        sizer.answered("k", most, most * seconds)


def test_a_pace_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.operators.batch_size._KEPT", 2)
    sizer = BatchSizer(0.001, 1.0)
    for key, seconds in (("a", 0.1), ("b", 0.01), ("c", 0.001), ("c", 0.001)):
        sizer.answered(key, 1, seconds)
    assert [sizer.size(key) for key in "bc"] == [50, 500]
    assert sizer.size("a") == sizer.size("never seen")
    sizer.answered("b", 10**9, 0.0)
    for _ in range(5000):
        sizer.answered("b", 1, 0.0)
    assert sizer.size("b") > 10**6  # nothing is divided by nothing
