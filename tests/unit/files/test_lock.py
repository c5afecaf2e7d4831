"""Locks exclude threads and processes, and end with their process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tamis.files.lock import locked

_HOLDS = """
import sys, time
from pathlib import Path
from tamis.files.lock import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path), pytest.raises(BlockingIOError), locked(path, wait=False):
        pytest.fail("somebody else holds it")
    with locked(path, wait=False):
        pass


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", _HOLDS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(BlockingIOError), locked(path, wait=False):
            pytest.fail("the other process holds it")
        holder.kill()
    with locked(path, wait=False):
        pass
