"""Inputs of any kind at every door: accepted or refused with a `TamisError`, never a crash.

`TAMIS_FUZZED` says how many. They are tried in a child process, because a crash ends it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import soak_report
from tests.fuzzing.child import NOW

INPUTS = int(os.environ.get("TAMIS_FUZZED", "4000"))
ROOT = Path(__file__).parents[2]
_HANGING = 120.0  # seconds
_MANY = 20  # failures after which the rest is not tried


def _now(folder: Path) -> int:
    (number,) = NOW.unpack((folder / "now").read_bytes())
    return int(number)


def _tried(folder: Path, seed: int, first: int, end: int) -> tuple[int, str]:
    """Try inputs in a process; which is the next, and how the process failed, if it did."""
    program = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzzing.child", str(folder)]
    output = folder / "output"
    (folder / "now").write_bytes(NOW.pack(first))
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*program, *map(str, (seed, first, end))], cwd=ROOT, stdout=file, stderr=file
        )
        before, since = first, time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            if (now := _now(folder)) != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > _HANGING:
                process.kill()
    if process.returncode == 0:
        return end, ""
    said = output.read_text(errors="replace")[-3000:]
    return _now(folder) + 1, f"input {_now(folder)}: exit code {process.returncode}: {said}"


@pytest.mark.slow
def test_every_input_is_accepted_or_refused(tmp_path: Path) -> None:
    seed, started = soak_report.seed(), time.perf_counter()
    number = 0
    failures: list[str] = []
    while number < INPUTS and len(failures) < _MANY:
        number, failed = _tried(tmp_path, seed, number, INPUTS)
        failures += [failed] if failed else []
    if (tmp_path / "wrong").exists():
        wrong = map(json.loads, (tmp_path / "wrong").read_text().splitlines())
        failures += [f"input {each['input']}, {each['door']}: {each['error']}" for each in wrong]
    soak_report.record("fuzz", number, len(failures), time.perf_counter() - started)
    again = f"repeat with python -m tests.fuzzing.child FOLDER {seed} INPUT INPUT+1"
    assert not failures, "\n\n".join([*failures[:_MANY], again])
