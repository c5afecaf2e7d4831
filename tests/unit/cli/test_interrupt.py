"""Ctrl-C takes effect between two steps."""

from __future__ import annotations

import io
import os
import signal
import threading
import time

import pytest
from rich.console import Console

from tamis.cli.terminal.interrupt import InterruptGuard, StartupSteps, StoppedError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_noted(number: int) -> None:
    before = signal.getsignal(number)
    with InterruptGuard() as interrupt:
        assert not interrupt.wait(0)
        os.kill(os.getpid(), number)
        assert interrupt.wait(60)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_terminal_that_is_closed_ends_nothing_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with InterruptGuard() as interrupt:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupt.wait(0)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


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


def test_a_long_step_shows_that_it_goes_on() -> None:
    file = io.StringIO()
    with InterruptGuard() as interrupt:
        steps = StartupSteps(Console(file=file, width=80), interrupt, every=0.0)

        def work() -> int:
            until = time.monotonic() + 60
            while "so far" not in file.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
            return 7

        assert steps.run("Compiling: a while", work, lambda made: f"{made} compiled") == 7
    lines = file.getvalue().splitlines()
    assert lines[0] == "Compiling: a while"
    assert lines[1] == "Compiling, 0 s so far"
    assert lines[-1].startswith("✓ 7 compiled")
