"""Operators of a module that others can import."""

from __future__ import annotations

import os
from typing import Any

from tamis.operators import operator


@operator(name="core.workerPid", reads=("n",), gives={"pid": "number"}, run="process", timeout=20)
def worker_pid(n: int) -> int:
    return os.getpid() + 0 * n


@operator(
    name="core.sizes",
    reads=("words",),
    gives={"size": "number"},
    run="process",
    batch=True,
    timeout=20,
)
def sizes(words: list[str]) -> list[Any]:
    return [len(word) or None for word in words]
