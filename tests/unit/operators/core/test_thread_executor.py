"""Operators in threads: one that hangs is left behind, and everybody else goes on."""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from tamis.model.operator import Fault
from tamis.operators import Operator, Runner, operator
from tamis.operators.thread_executor import is_abandoned
from tests.running import in_threads, run_script
from tests.unit.operators.core.worker_probes import kinds


@pytest.fixture
def release() -> Iterator[Event]:
    """Lets go what still hangs when the test is over."""
    made = Event()
    yield made
    made.set()


def _hanging(release: Event, timeout: float = 0.2, batch: bool = False) -> Operator:
    """Hangs on odd numbers until it is released."""

    @operator(name="hanging", reads=("n",), timeout=timeout, batch=batch)
    def hanging(n: Any) -> Any:
        if any(each % 2 for each in (n if batch else [n])):
            release.wait()
        return [True for _ in n] if batch else True

    return hanging


def _threads() -> set[Thread]:
    return {each for each in threading.enumerate() if each.name == "tamis operator"}


def _settled(before: set[Thread], more: int) -> bool:
    """There come to be so many threads more than before, whatever becomes of those."""
    for _ in range(500):
        if len(_threads() - before) == more:
            return True
        time.sleep(0.01)
    return False


def test_it_runs_in_another_thread_which_is_kept(runner: Runner) -> None:
    @operator(reads=("n",), gives={"thread": "number"})
    def where(n: int) -> int:
        return threading.get_ident()

    before = _threads()
    found = {repr(each) for _ in range(5) for each in runner.call(where, [(1,), (2,)], (None,))}
    assert len(found) == 1
    assert str(threading.get_ident()) not in found.pop()
    assert len(_threads() - before) == 1
    runner.close()
    assert _settled(before, 0)
    assert isinstance(runner.call(where, [(1,)], (None,))[0], tuple)


def test_one_that_hangs_comes_back_as_a_fault(runner: Runner, release: Event) -> None:
    hanging = _hanging(release)
    found = runner.call(hanging, [(0,), (1,), (2,), (3,), (4,)], ())
    late = Fault("timeout: no answer within 0.2 s", "timeout")
    assert found == [((),), late, ((),), late, ((),)]
    count = runner.report()["hanging"]
    assert (count.events, count.timeouts, count.answered) == (5, 2, 3)


def test_a_batch_has_one_timeout(runner: Runner, release: Event) -> None:
    hanging = _hanging(release, batch=True)
    found = runner.call(hanging, [(0,), (1,), (2,)], ())
    assert kinds(found) == ["timeout"] * 3
    assert runner.call(hanging, [(0,), (2,)], ()) == [((),), ((),)]
    # The second time it is asked about fewer at once.
    assert runner.report()["hanging"].calls == 3


def test_a_batch_that_raises_and_hangs_has_one_timeout(runner: Runner, release: Event) -> None:
    @operator(reads=("n",), timeout=0.2, batch=True)
    def bad(n: list[int]) -> list[bool]:
        if len(n) > 2:
            raise ValueError
        release.wait()
        return [True for _ in n]

    found = runner.call(bad, [(n,) for n in range(16)], ())
    assert found == [Fault("timeout: no answer within 0.2 s", "timeout")] * 16
    count = runner.report()["bad"]
    assert (count.calls, count.timeouts) == (8, 16)


def test_after_repeated_timeouts_it_is_not_asked(release: Event) -> None:
    hanging = _hanging(release, timeout=0.05)
    runner = Runner(faults=2)
    found = runner.call(hanging, [(1,)] * 100, ())
    assert kinds(found) == ["timeout"] * 2 + ["set aside"] * 98


def test_no_more_than_a_few_are_left_behind(release: Event) -> None:
    hanging = _hanging(release, timeout=0.1)
    runner = Runner(faults=1000, left=3)
    before = _threads()
    found = runner.call(hanging, [(1,)] * 6 + [(2,)], ())
    assert kinds(found) == ["timeout"] * 3 + ["set aside"] * 4
    last = found[-1]
    assert isinstance(last, Fault)
    assert last.reason == "set aside until a call comes back: 3 calls hang"
    assert "until a call that hangs comes back" in str(runner.report())
    assert len(_threads() - before) == 3
    release.set()
    assert _settled(before, 0)
    assert runner.call(hanging, [(1,), (2,)], ()) == [((),), ((),)]
    assert runner.report()["hanging"].set_aside_for is None


def test_others_go_on_meanwhile(runner: Runner, release: Event) -> None:
    @operator(reads=("n",))
    def quick(n: int) -> bool:
        return n > 1

    hanging = _hanging(release, timeout=0.3)
    found: list[Any] = []
    waiting = Thread(target=lambda: found.append(runner.call(hanging, [(1,)], ())))
    waiting.start()
    for _ in range(50):
        assert runner.call(quick, [(1,), (2,)], ()) == [(), ((),)]
    waiting.join()
    assert isinstance(found[0][0], Fault)


def test_two_calls_at_once_do_not_wait_for_each_other(runner: Runner) -> None:
    barrier = Barrier(2)

    @operator(reads=("n",), gives={"m": "number"}, timeout=20)
    def together(n: int) -> int:
        barrier.wait(20)
        return n

    found: dict[int, Any] = {}

    def ask(n: int) -> None:
        found[n] = runner.call(together, [(n,)] * 20, (None,))

    in_threads(ask, [(1,), (2,)])
    assert found == {1: [((1,),)] * 20, 2: [((2,),)] * 20}
    assert runner.report()["together"].events == 40


def test_a_result_that_comes_too_late_is_not_taken_for_the_next(runner: Runner) -> None:
    @operator(reads=("n",), gives={"m": "number"}, timeout=0.2)
    def slow(n: float) -> float:
        time.sleep(n)
        return n

    for _ in range(2):
        first, second = runner.call(slow, [(0.3,), (0.0,)], (None,))
        assert isinstance(first, Fault)
        assert second == ((0.0,),)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_the_runner_usable(runner: Runner, release: Event) -> None:
    hanging = _hanging(release, timeout=20)
    caller = threading.main_thread().ident
    assert caller is not None
    threading.Timer(0.1, signal.pthread_kill, (caller, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        runner.call(hanging, [(1,)], ())
    assert runner.call(hanging, [(2,)], ()) == [((),)]
    assert runner.report()["hanging"].faults == 0


def test_threads_go_with_their_operator() -> None:
    before = _threads()
    runner = Runner()

    def ask() -> None:
        made = operator(name="forgotten", reads=("n",))(lambda n: n > 0)
        runner.call(made, [(1,)], ())

    for _ in range(5):
        ask()
    gc.collect()
    assert _settled(before, 1)  # the last one is still registered
    assert runner.report()["forgotten"].events == 5
    runner.close()
    assert _settled(before, 0)


def test_values_are_not_held_after_the_call(runner: Runner) -> None:
    class Image:
        pass

    alive: list[int] = []

    @operator(reads=("image",))
    def look(image: Image) -> bool:
        return True

    image = Image()
    weakref.finalize(image, alive.append, 1)
    runner.call(look, [(image,)], ())
    del image
    for _ in range(500):
        gc.collect()
        if alive:
            break
        time.sleep(0.01)
    assert alive


@pytest.mark.parametrize("body", ["time.sleep(1e9)", "while True: pass"])
def test_the_interpreter_ends_though_a_thread_hangs(body: str) -> None:
    script = f"""
        import time
        from tamis.operators import Runner, operator, thread_executor

        thread_executor.EXIT_WAIT = 0.5

        @operator(reads=("n",), timeout=0.2)
        def hangs(n):
            {body}

        @operator(reads=("n",))
        def quick(n):
            return n > 1

        runner = Runner(faults=2)
        print([each.kind for each in runner.call(hangs, [(1,)] * 3, ())])
        print(runner.call(quick, [(1,), (2,)], ()))
    """
    ended = run_script(script)
    assert ended.stdout.splitlines() == ["['timeout', 'timeout', 'set aside']", "[(), ((),)]"]
    assert ended.stderr == ""


def test_the_interpreter_waits_a_while_for_a_thread_that_comes_back() -> None:
    script = """
        import time
        from tamis.operators import Runner, operator

        @operator(reads=("n",), timeout=0.05)
        def slow(n):
            time.sleep(0.5)
            print("came back", flush=True)

        print([each.kind for each in Runner().call(slow, [(1,)], ())], flush=True)
    """
    ended = run_script(script)
    assert ended.stdout.splitlines() == ["['timeout']", "came back"]
    assert ended.stderr == ""


def test_a_function_may_ask_whether_anybody_waits(runner: Runner) -> None:
    seen: list[bool] = []
    gone = Event()

    @operator(reads=("n",), timeout=0.05)
    def asks(n: int) -> bool:
        seen.append(is_abandoned())
        while n and not is_abandoned():
            time.sleep(0.01)
        gone.set()
        return True

    assert runner.call(asks, [(0,)], ()) == [((),)]
    (late,) = runner.call(asks, [(1,)], ())
    assert isinstance(late, Fault)
    assert gone.wait(20)
    assert runner.call(asks, [(0,)], ()) == [((),)]
    assert seen == [False] * 3
    assert not is_abandoned()
