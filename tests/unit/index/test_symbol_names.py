"""Code that different processes compiled is loaded into one, and each part calls its own parts."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.bytecode import FunctionIdentity

import tamis.index.symbol_names  # noqa: F401 - numbers functions its own way

# Numba sorts values and positions by functions of the same name and for the same types: which of
# the two it is stands in a closure only. Sorting positions takes three functions more.
PROGRAM = """\
import sys
import numpy as np
from numba.core.bytecode import FunctionIdentity
from tamis.index.kernel import kernel

@kernel
def values(a):
    return np.sort(a)

@kernel
def positions(a):
    return np.argsort(a)

a = np.arange(40)[::-1] * 3
if sys.argv[1:] == ["values"]:
    for _ in range(3):
        next(FunctionIdentity._unique_ids)
for name in sys.argv[1:]:
    print(name, *globals()[name](a))
"""
VALUES = " ".join(["values", *(str(3 * n) for n in range(40))])
POSITIONS = " ".join(["positions", *(str(39 - n) for n in range(40))])


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return [sys.executable, str(path)]


@pytest.mark.slow
def test_code_of_two_processes_in_a_third(program: list[str], tmp_path: Path) -> None:
    def said(*names: str) -> list[str]:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        return subprocess.run(
            [*program, *names], env=environment, text=True, check=True, capture_output=True
        ).stdout.splitlines()

    assert said("values") == [VALUES]
    assert said("positions") == [POSITIONS]
    assert said("values", "positions") == [VALUES, POSITIONS]
    assert said("positions", "values") == [POSITIONS, VALUES]


def _next() -> int:
    return next(FunctionIdentity._unique_ids)


def test_forked_processes_number_functions_differently() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        numbers = {pool.apply(_next) for _ in range(4)}
    assert len(numbers | {_next()}) == 5
    assert min(numbers) > 1 << 32
