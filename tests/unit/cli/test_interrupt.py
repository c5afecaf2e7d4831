"""Ctrl-C takes effect between two steps."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tamis.cli.terminal.interrupt import InterruptGuard, StoppedError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_noted(number: int) -> None:
    before = signal.getsignal(number)
    with InterruptGuard() as interrupt:
        assert not interrupt.wait(0)
        os.kill(os.getpid(), number)
        assert interrupt.wait(60)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_steps_run_in_one_other_thread() -> None:
    with InterruptGuard() as interrupt:
        first = interrupt.run(threading.get_ident)
        assert first == interrupt.run(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            interrupt.run(lambda: 1 // 0)


@pytest.mark.parametrize("fails", [False, True])
def test_a_step_is_cancelled_and_the_next_is_refused(fails: bool) -> None:
    """A failure after cancelling is an interruption."""
    with InterruptGuard() as interrupt:
        cancelled = threading.Event()

        def work() -> str:
            os.kill(os.getpid(), signal.SIGINT)
            assert cancelled.wait(60)
            if fails:
                raise OSError("interrupted")
            return "done"

        if not fails:
            assert interrupt.run(work, cancelled.set) == "done"
        with pytest.raises(StoppedError):
            interrupt.run(work, cancelled.set)
