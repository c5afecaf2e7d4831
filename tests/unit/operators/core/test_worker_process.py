"""What goes to a worker process and comes back, and how long a worker lives."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.model.operator import Fault, Signature
from tamis.operators import Operator, Runner, operator
from tamis.operators.process_executor import ProcessExecutor
from tamis.operators.worker_main import _GRACE
from tamis.operators.worker_process import WorkerProcess
from tests.running import in_threads
from tests.unit.operators.core import declared
from tests.unit.operators.core.worker_probes import exists, gone, kinds, pid_of, reason_of

SCRIPT = """
import os, sys
print("ran", __name__)
from tamis.operators import Runner, operator

LEAST = 3

class Weight:
    def __init__(self, grams):
        self.grams = grams

def heavy(weight):
    return weight.grams > LEAST

@operator(reads=("n",), arguments={"k": "number"}, gives={"m": "number"}, run="process", timeout=20)
def depth(n, k):
    "Calls itself, by the name under which the operator stands."
    return 0 if n == 0 else 1 + depth(n - 1, k)

@operator(reads=("weight",), run="process", timeout=20)
def weighs(weight):
    return heavy(weight)

runner = Runner()
print(runner.call(depth, [(0,), (4,)], (1, None)))
print(runner.call(weighs, [(Weight(3),), (Weight(4),)], ()))
print(*[each._process.pid for caller in runner._callers.values() for each in caller.executor._idle])
"""


def test_functions_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True
    )
    ran, depths, weights, pids = ended.stdout.splitlines()
    assert ran == "ran __main__"
    assert depths == "[((0,),), ((4,),)]"
    assert weights == "[(), ((),)]"
    assert ended.stderr == ""
    assert len(pids.split()) == 2
    assert all(gone(int(pid)) for pid in pids.split())


def test_a_module_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "from tamis.operators import operator\n"
        "lock = __import__('threading').Lock()\n"  # cannot be pickled, and need not be
        "@operator(reads=('n',), run='process', timeout=20)\n"
        "def positive(n):\n    with lock:\n        return n > 0\n"
    )
    (tmp_path / "script.py").write_text(
        "import beside\nfrom tamis.operators import Runner\n"
        "print(Runner().call(beside.positive, [(0,), (1,)], ()))\n"
    )
    ended = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == "[(), ((),)]\n"


class Stubborn:
    """Cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("not me")


class Trapped:
    """Can be pickled, but not be read again."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


@pytest.mark.parametrize("kind", [Stubborn, Trapped])
def test_values_that_cannot_travel(runner: Runner, kind: type[object]) -> None:
    @operator(reads=("n",), gives={"pid": "number"}, run="process", timeout=20)
    def where(n: Any) -> int:
        return os.getpid()

    first, fault, last = runner.call(where, [(1,), (kind(),), (2,)], (None,))
    assert isinstance(fault, Fault)
    assert fault.kind == "raised"
    assert "by a worker process" in fault.reason or "to a worker process" in fault.reason
    assert first == last  # the worker has not suffered


def test_functions_that_cannot_travel_or_arrive(runner: Runner) -> None:
    lock, trapped = threading.Lock(), Trapped()

    @operator(reads=("n",), run="process")
    def locked(n: int) -> bool:
        with lock:
            return True

    @operator(reads=("n",), run="process", batch=True)
    def refers(n: list[int]) -> list[bool]:
        return [trapped is not None for _ in n]

    reason = reason_of(runner.call(locked, [(1,)], ())[0])
    assert "the function cannot be sent to a worker process: TypeError: cannot pickle" in reason
    found = runner.call(refers, [(1,)] * 8, ())
    assert "its worker process cannot load the function: ValueError" in reason_of(found[0])
    assert runner.report()["refers"].calls == 1  # a smaller batch would not do better


def test_results_that_cannot_travel(runner: Runner) -> None:
    @operator(reads=("n",), gives={"x": "any"}, run="process", timeout=20)
    def odd(n: int) -> Any:
        return [lambda: n, Stubborn(), object, threading.Lock(), n][n]

    found = runner.call(odd, [(n,) for n in range(5)], (None,))
    assert kinds(found) == ["nonsense"] * 4 + ["answered"]


def test_large_values_go_through(runner: Runner) -> None:
    @operator(reads=("image",), gives={"text": "text"}, run="process", timeout=20)
    def twice(image: bytes) -> str:
        return (image + image).decode()

    image = b"x" * (1 << 21)
    assert runner.call(twice, [(image,)], (None,)) == [(((image + image).decode(),),)]


def test_a_worker_that_does_not_read_is_late(runner: Runner) -> None:
    @operator(reads=("image",), timeout=0.3, run="process")
    def stops(image: bytes) -> bool:
        return bool(image)

    assert runner.call(stops, [(b"x",)], ()) == [((),)]
    (caller,) = runner._callers.values()
    assert isinstance(caller.executor, ProcessExecutor)
    (worker,) = caller.executor._idle
    pid = worker._process.pid
    os.kill(pid, signal.SIGSTOP)
    assert kinds(runner.call(stops, [(b"x" * (1 << 21),)], ())) == ["timeout"]
    assert not exists(pid)


@pytest.mark.parametrize(
    "noise",
    [
        b"x" * 100,
        b"\0" * 7 + b"\3abc",
        b"\0" * 7 + b"\5\x80\5N.x",
        b"\0" * 7 + b"\5\x80\5].x",
        b"\0" * 7 + b"\x0ecos\nsystem\n.xx",
    ],
)
def test_noise_on_the_pipe_is_a_fault(runner: Runner, noise: bytes) -> None:
    @operator(reads=("n",), timeout=20, run="process")
    def noisy(n: int) -> bool:
        if n:  # the pipe of the answers is some file above 2
            for file in range(3, 10):
                try:
                    os.write(file, noise)
                except OSError:
                    continue
            time.sleep(1e9)
        return True

    found = runner.call(noisy, [(0,), (1,), (0,)], ())
    assert kinds(found) == ["answered", "raised", "answered"]
    assert reason_of(found[1]) == "raised: its worker process sends invalid replies"


def test_two_calls_at_once_do_not_wait_for_each_other(runner: Runner) -> None:
    found: dict[int, Any] = {}

    def ask(n: int) -> None:
        found[n] = runner.call(declared.worker_pid, [(n,)] * 10, (None,))

    in_threads(ask, [(1,), (2,)])
    assert kinds(found[1] + found[2]) == ["answered"] * 20
    assert len(set(found[1])) == len(set(found[2])) == 1
    pids = {pid for answers in found.values() for ((pid,),) in answers}
    runner.close()
    assert not any(map(exists, pids))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_the_runner_usable(runner: Runner) -> None:
    @operator(reads=("n",), timeout=20, run="process")
    def slow(n: int) -> bool:
        time.sleep(n)
        return True

    assert runner.call(slow, [(0,)], ()) == [((),)]
    caller = threading.main_thread().ident
    assert caller is not None
    threading.Timer(0.1, signal.pthread_kill, (caller, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        runner.call(slow, [(1000,)], ())
    assert runner.call(slow, [(0,)], ()) == [((),)]


def test_a_fork_has_workers_of_its_own(runner: Runner) -> None:
    @operator(name="threaded", reads=("n",))
    def threaded(n: int) -> bool:
        return True

    runner.call(threaded, [(1,)], ())
    mine = pid_of(runner)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            found = [pid_of(runner), pid_of(runner), runner.call(threaded, [(1,)], ())]
            os.write(write, repr(found).encode())
            runner.close()
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    theirs, again, answer = ast.literal_eval(said)
    assert theirs == again != mine
    assert answer == [((),)]
    assert not exists(theirs)
    assert pid_of(runner) == mine


def test_workers_end_with_their_parent() -> None:
    script = """
        import os, signal, sys, threading, time
        from tamis.operators import Runner, operator

        @operator(reads=("n",), gives={"pid": "number"}, run="process", timeout=20)
        def where(n):
            time.sleep(n)
            return os.getpid()

        runner = Runner()
        (((pid,),),) = runner.call(where, [(0,)], (None,))
        # A thread of which the fork knows nothing is in the middle of a call.
        threading.Thread(target=runner.call, args=(where, [(1,)], (None,)), daemon=True).start()
        time.sleep(0.3)
        if os.fork() == 0:
            sys.stdin.read()  # lives until the test lets it go
            os._exit(0)
        print(pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.wait(60) == -signal.SIGKILL
        assert gone(pid)  # although a fork of its parent is still there


def test_a_call_that_nobody_stops_stops_itself() -> None:
    @operator(reads=("n",), run="process")
    def spins(n: int) -> bool:
        while n:
            pass
        return True

    spins.timeout = 0.3 - _GRACE
    worker = WorkerProcess(spins)
    assert worker.call([(0,)], {}, 20) == [((),)]
    with pytest.raises(Exception, match="killed by SIGALRM"):
        worker.call([(1,)], {}, 60)


def test_a_worker_that_does_not_start(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    (found,) = runner.call(declared.worker_pid, [(1,)], (None,))
    assert reason_of(found).startswith(
        "raised: no worker process can be started: FileNotFoundError"
    )
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (found,) = runner.call(declared.worker_pid, [(1,)], (None,))
    assert reason_of(found).startswith("raised: while it was loaded, its worker process ended")


def test_a_worker_that_takes_for_ever_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __reduce__(self) -> Any:
            return time.sleep, (1000,)

    slow = Slow()
    monkeypatch.setattr("tamis.operators.worker_process.START_LIMIT", 0.5)
    for timeout, limit in ((0.1, "0.5"), (0.6, "0.6")):  # the longer of the two
        made = Operator(
            lambda n: slow, Signature("slow", (), ("n",)), run="process", timeout=timeout
        )
        with Runner() as runner:
            found = runner.call(made, [(1,)] * 4, ())
        late = f"raised: its worker process did not start within {limit} s"
        assert reason_of(found[0]) == late
        # To wait for the next one as long would help nobody.
        assert kinds(found) == ["raised"] + ["set aside"] * 3
        assert runner.report()["slow"].calls == 1


def test_a_start_takes_nothing_of_the_timeout(runner: Runner, tmp_path: Path) -> None:
    class Slow:
        def __reduce__(self) -> Any:
            return time.sleep, (1,)

    slow = Slow()

    @operator(reads=("n",), run="process", batch=True, timeout=0.9)
    def bad(n: list[int]) -> list[bool]:
        if 3 in n:
            raise ValueError(f"{slow}")
        return [True for _ in n]

    found = runner.call(bad, [(n,) for n in range(4)], ())
    assert kinds(found) == ["answered"] * 3 + ["raised"]


def test_a_module_that_hangs_when_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hangs_in_workers.py").write_text(
        "import os, time\n"
        "from tamis.operators import operator\n"
        "if 'TAMIS_HANGS' in os.environ:\n    time.sleep(1000)\n"
        "@operator(reads=('n',), run='process', timeout=0.1)\n"
        "def positive(n):\n    return n > 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("hangs_in_workers")
    monkeypatch.setenv("TAMIS_HANGS", "1")
    monkeypatch.setattr("tamis.operators.worker_process.START_LIMIT", 0.5)
    with Runner() as runner:
        found = runner.call(module.positive, [(1,), (1,)], ())
        assert kinds(found) == ["raised", "set aside"]
        assert reason_of(found[0]).endswith("did not start within 0.5 s")
