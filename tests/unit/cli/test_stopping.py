"""Ctrl-C is a wish that is granted between two steps."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tamis.cli.stopping import StoppedError, Stopping


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_noted(number: int) -> None:
    before = signal.getsignal(number)
    with Stopping() as stopping:
        assert not stopping.wait(0)
        os.kill(os.getpid(), number)
        assert stopping.wait(60)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_steps_are_done_elsewhere_and_give_what_they_give() -> None:
    with Stopping() as stopping:
        first = stopping.step(threading.get_ident)
        assert first == stopping.step(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            stopping.step(lambda: 1 // 0)


def test_a_step_is_cancelled_and_the_next_is_refused() -> None:
    with Stopping() as stopping:
        cancelled = threading.Event()

        def work() -> str:
            os.kill(os.getpid(), signal.SIGINT)
            assert cancelled.wait(60)
            return "done"

        assert stopping.step(work, cancelled.set) == "done"
        with pytest.raises(StoppedError):
            stopping.step(lambda: "never")


def test_what_fails_because_it_was_cancelled_is_no_failure() -> None:
    with Stopping() as stopping:
        cancelled = threading.Event()

        def work() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            assert cancelled.wait(60)
            raise OSError("interrupted")

        with pytest.raises(StoppedError):
            stopping.step(work, cancelled.set)
