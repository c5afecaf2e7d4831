"""Operators in worker processes: killed when they hang, and free to die."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.model.operator import Fault
from tamis.operators import Runner, operator
from tests.unit.operators.core import declared
from tests.unit.operators.core.worker_probes import (
    at_last,
    exists,
    gone,
    kinds,
    pid_of,
    reason_of,
    state,
)


def test_it_runs_elsewhere_and_stays_there(runner: Runner) -> None:
    pids = {pid_of(runner) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_no_worker_is_left_after_close() -> None:
    with Runner() as runner:
        pid = pid_of(runner)
        assert exists(pid)
    assert not exists(pid)
    with runner:
        another = pid_of(runner)
        assert another != pid
    assert not exists(another)


def test_a_worker_goes_with_its_runner() -> None:
    pid = pid_of(Runner())
    assert not exists(pid)


def test_batch(runner: Runner) -> None:
    found = runner.call(declared.sizes, [("a",), ("",), ("abc",)], (None,))
    assert found == [((1,),), (), ((3,),)]
    assert runner.report()["core.sizes"].calls == 1


def _sleeps() -> None:
    time.sleep(1e9)


def _spins() -> None:
    while True:
        pass


def _ignores() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1e9)


@pytest.mark.parametrize("hang", [_sleeps, _spins, _ignores])
def test_one_that_hangs_is_killed(hang: Any) -> None:
    @operator(reads=("n",), gives={"pid": "number"}, timeout=0.4, run="process")
    def hanging(n: int) -> int:
        if n == 1:
            hang()
        return os.getpid()

    with Runner(faults=1000) as runner:
        first, late = runner.call(hanging, [(0,), (1,)], (None,))
        assert late == Fault("timeout: no answer within 0.4 s", "timeout")
        assert isinstance(first, tuple)
        assert not exists(first[0][0])
        assert at_last(runner, hanging) != first


def test_its_own_children_are_killed_too(runner: Runner, tmp_path: Path) -> None:
    @operator(reads=("path",), timeout=0.5, run="process")
    def parent(path: str) -> bool:
        with subprocess.Popen(["sleep", "1000"]) as child:
            Path(path).write_text(str(child.pid))
        return True

    path = tmp_path / "pid"
    assert kinds(runner.call(parent, [(str(path),)], ())) == ["timeout"]
    assert gone(int(path.read_text()))


def _segfault() -> None:
    ctypes.string_at(0)


def _exits() -> None:
    os._exit(7)


def _closes() -> None:
    os.closerange(0, 100)


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (_segfault, "raised: its worker process was killed by SIGSEGV"),
        (_exits, "raised: its worker process ended (exit status 7)"),
        (_killed, "raised: its worker process was killed by SIGKILL"),
        (_closes, "raised: its worker process "),
    ],
)
def test_one_that_dies_is_a_fault(runner: Runner, end: Any, why: str) -> None:
    @operator(reads=("n",), timeout=20, run="process")
    def dies(n: int) -> bool:
        if n:
            end()
        return True

    found = runner.call(dies, [(0,), (1,), (0,)], ())
    assert kinds(found) == ["answered", "raised", "answered"]
    assert reason_of(found[1]).startswith(why)


def test_one_bad_event_does_not_take_its_batch_along(runner: Runner) -> None:
    @operator(reads=("n",), gives={"m": "number"}, timeout=20, run="process", batch=True)
    def dies(n: list[int]) -> list[int]:
        if 5 in n:
            os._exit(1)
        return n

    found = runner.call(dies, [(n,) for n in range(8)], (None,))
    assert kinds(found) == ["answered"] * 5 + ["raised"] + ["answered"] * 2
    assert found[4] == ((4,),)


def test_a_worker_that_died_between_calls_is_replaced(runner: Runner) -> None:
    pid = pid_of(runner)
    os.kill(pid, signal.SIGKILL)
    while state(pid) not in ("Z", ""):
        time.sleep(0.01)
    another = pid_of(runner)
    assert another != pid
    assert runner.report().faults == 0


def test_printing_and_reading_do_not_disturb(
    runner: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    @operator(reads=("n",), gives={"text": "text"}, run="process", timeout=20)
    def chatty(n: int) -> str:
        print("said by print", n)
        os.write(1, b"said by write\n" * n)
        subprocess.run(["echo", "said by a child"], check=True)
        return f"<{sys.stdin.read()}>"

    assert runner.call(chatty, [(1,), (5000,)], (None,)) == [(("<>",),)] * 2
    runner.close()
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("said by write") == 5001
    assert "said by print 5000\n" in said.err
    assert said.err.count("said by a child") == 2


def test_lambdas_and_closures(runner: Runner) -> None:
    least, words = 3, {"a": 1}

    def helper(n: int) -> int:
        return n + words["a"]

    made = operator(name="closure", reads=("n",), run="process")(lambda n: helper(n) > least)
    assert runner.call(made, [(2,), (3,)], ()) == [(), ((),)]
