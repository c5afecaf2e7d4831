"""What the tests of worker processes ask and look at."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tamis.model.operator import Fault
from tamis.operators import Operator, Runner
from tests.unit.operators.core import declared


def kinds(found: list[Any]) -> list[str]:
    return [each.kind if isinstance(each, Fault) else "answered" for each in found]


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int) -> bool:
    """Somebody else's child may stay a while until it is waited for."""
    for _ in range(1000):
        if not exists(pid) or state(pid) == "Z":
            return True
        time.sleep(0.01)
    return False


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def reason_of(found: Any) -> str:
    assert isinstance(found, Fault)
    return found.reason


def pid_of(runner: Runner) -> int:
    """Of the worker that answers a call."""
    (found,) = runner.call(declared.worker_pid, [(1,)], (None,))
    assert isinstance(found, tuple)
    ((pid,),) = found
    assert isinstance(pid, int)
    return pid


def at_last(runner: Runner, asked: Operator, arguments: tuple[Any, ...] = (None,)) -> Any:
    """The first answer, however many calls it takes until a worker is there."""
    for _ in range(1000):
        (found,) = runner.call(asked, [(0,)], arguments)
        if isinstance(found, tuple):
            return found
    raise AssertionError(found)
