"""What the log says while code is compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
from structlog.testing import capture_logs

from tamis.service.observation.compile_log import CompileLog


def _until(check: Callable[[], Any]) -> None:
    for _ in range(3000):
        if check():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def test_compiling_is_said_once_with_its_end() -> None:
    @numba.njit
    def inner(number: int) -> int:
        return number * 3

    @numba.njit
    def slowly_compiled(number: int) -> int:
        total = 0
        for each in range(number):
            total += inner(each)
        return total

    with capture_logs() as said, CompileLog(patience=0.001, pause=0.05):
        assert slowly_compiled(3) == 9
        _until(lambda: any(line["event"] == "compiled" for line in said))
    assert said[0]["event"].startswith("compiling the matcher for this machine; this happens once")
    (done,) = [line for line in said if line["event"] == "compiled"]
    assert done["functions"] == 2
    for line in said[1:-1]:
        assert (line["event"], line["at"]) == ("still compiling", "slowly_compiled")


def test_loaded_code_is_not_worth_a_line() -> None:
    @numba.njit
    def quick(number: int) -> int:
        return number + 1

    quick(1)
    with capture_logs() as said, CompileLog(patience=0.001, pause=0.01):
        quick(2)
        time.sleep(0.1)
    assert said == []
