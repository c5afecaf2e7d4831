"""A worker process that is gone is replaced, and nobody waits longer for that than for a call."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tamis.operators import Operator, Runner, operator
from tamis.operators.process_executor import ProcessExecutor
from tests.running import in_threads
from tests.unit.operators.core.worker_probes import at_last, exists, gone, kinds, reason_of

STILL = "its worker process was still starting"


class Slow:
    """Takes its time to arrive in a worker."""

    def __init__(self, seconds: float = 0.8) -> None:
        self._seconds = seconds

    def __reduce__(self) -> Any:
        return time.sleep, (self._seconds,)


@pytest.fixture
def patient() -> Iterator[Runner]:
    with Runner(faults=1000) as made:
        yield made


def _pids(runner: Runner) -> list[int]:
    (caller,) = runner._callers.values()
    assert isinstance(caller.executor, ProcessExecutor)
    return [worker._process.pid for worker in caller.executor._idle]


def _hanging(timeout: float = 0.3) -> Operator:
    slow = Slow()

    @operator(reads=("n",), gives={"pid": "number"}, timeout=timeout, run="process")
    def hanging(n: int) -> int:
        if n and slow is None:
            time.sleep(1000)
        return os.getpid()

    return hanging


def test_the_start_of_another_takes_nobody_more_than_a_timeout(patient: Runner) -> None:
    hanging = _hanging()
    ((first,),) = at_last(patient, hanging)  # on time of its own: longer than the timeout
    assert patient.report()["hanging"].calls == 1
    (late,) = patient.call(hanging, [(1,)], (None,))
    assert reason_of(late) == "timeout: no answer within 0.3 s"
    assert not exists(first)
    (another,) = _pids(patient)  # it starts already, while nobody asks
    (late,) = patient.call(hanging, [(0,)], (None,))
    assert reason_of(late) == f"timeout: no answer within 0.3 s, {STILL}"
    assert kinds([late]) == ["timeout"]
    assert _pids(patient) == [another]  # and goes on doing so
    assert at_last(patient, hanging) == ((another,),)


def test_parts_of_a_batch_wait_for_the_next_worker_within_its_time(patient: Runner) -> None:
    slow = Slow(1.5)

    @operator(reads=("n",), timeout=1.0, run="process", batch=True)
    def dies(n: list[int]) -> list[bool]:
        if 1 in n and slow is None:
            os._exit(3)
        return [True for _ in n]

    found = patient.call(dies, [(n,) for n in range(8)], ())
    assert kinds(found) == ["timeout"] * 8
    assert STILL in reason_of(found[0])
    count = patient.report()["dies"]
    assert (count.events, count.calls, count.timeouts) == (8, 2, 8)
    at_last(patient, dies, ())
    assert kinds(patient.call(dies, [(n,) for n in range(2, 8)], ())) == ["answered"] * 6


def test_one_that_came_late_is_not_killed_for_it(patient: Runner) -> None:
    """A call that waits for a start has little time left; the worker can do nothing about it."""
    slow = Slow(0.5)

    @operator(reads=("n",), gives={"pid": "number"}, timeout=1.0, run="process")
    def sleeps(n: float) -> int:
        time.sleep(n if slow is None else 0)
        return os.getpid()

    at_last(patient, sleeps)
    patient.call(sleeps, [(1000,)], (None,))
    (another,) = _pids(patient)
    found: list[Any] = []
    while kinds(found[-1:]) != ["answered"]:
        found += patient.call(sleeps, [(0.5,)], (None,))
    assert found[-1] == ((another,),)
    assert all("its worker process" in reason_of(each) for each in found[:-1])


def test_one_that_died_between_calls_too(patient: Runner) -> None:
    hanging = _hanging()
    ((first,),) = at_last(patient, hanging)
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    (late,) = patient.call(hanging, [(0,)], (None,))
    assert STILL in reason_of(late)
    assert at_last(patient, hanging) != ((first,),)


def test_one_that_cannot_be_replaced_is_a_fault(
    patient: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    @operator(reads=("n",), timeout=20, run="process")
    def dies(n: int) -> bool:
        if n:
            os._exit(3)
        return True

    assert kinds(patient.call(dies, [(0,)], ())) == ["answered"]
    with monkeypatch.context() as without:
        without.setattr("sys.executable", "/no/such/python")
        died, not_started = patient.call(dies, [(1,), (0,)], ())
    assert reason_of(died) == "raised: its worker process ended (exit status 3)"
    reason = reason_of(not_started)
    assert reason.startswith("raised: no worker process can be started: FileNotFoundError")
    assert kinds(patient.call(dies, [(0,)], ())) == ["answered"]


def test_one_that_takes_for_ever_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.operators.worker_process.START_LIMIT", 60.0)
    hanging = _hanging(timeout=0.1)
    with Runner(faults=1000) as runner:
        ((first,),) = at_last(runner, hanging)
        monkeypatch.setattr("tamis.operators.worker_process.START_LIMIT", 0.5)
        os.kill(first, signal.SIGKILL)
        assert gone(first)
        found: list[Any] = []
        while not found or kinds(found[-1:]) == ["timeout"]:
            found += runner.call(hanging, [(0,)], (None,))
        assert all(STILL in reason_of(each) for each in found[:-1])
        assert reason_of(found[-1]) == "raised: its worker process did not start within 0.5 s"
        assert kinds(runner.call(hanging, [(0,)], (None,))) == ["set aside"]
        assert _pids(runner) == []


def test_one_that_starts_ends_with_close() -> None:
    hanging = _hanging()
    with Runner(faults=1000) as runner:
        at_last(runner, hanging)
        runner.call(hanging, [(1,)], (None,))
        (starting,) = _pids(runner)
        assert exists(starting)
    assert not exists(starting)
    with runner:  # a new beginning has time of its own again
        assert kinds(runner.call(hanging, [(0,)], (None,))) == ["answered"]


def test_a_large_function_starts_without_anybody_feeding_it(patient: Runner) -> None:
    large = b"x" * (1 << 22)  # more than a pipe holds

    @operator(reads=("n",), gives={"size": "number"}, timeout=20, run="process")
    def sized(n: int) -> int:
        if n:
            os._exit(3)
        return len(large)

    assert patient.call(sized, [(1,)], (None,)) != [((1 << 22,),)]
    assert patient.call(sized, [(0,)], (None,)) == [((1 << 22,),)]


def test_calls_at_once_have_a_start_each(patient: Runner) -> None:
    """The second of two calls at once replaces nothing: its worker too is a first one."""
    hanging = _hanging(timeout=0.5)
    both = threading.Barrier(2)
    found: list[Any] = []

    def ask() -> None:
        both.wait(20)
        found.extend(patient.call(hanging, [(0,)], (None,)))

    in_threads(ask, [(), ()])
    assert kinds(found) == ["answered"] * 2
