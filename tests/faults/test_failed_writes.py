"""A write or sync that fails: what was acknowledged stays, and nothing wrong is ever said.

By default some operations of a short run fail; `TAMIS_FAILED_WRITES` says how many. With a number
as large as the run has operations, each of them fails once.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.power_loss import broker_program
from tests.power_loss.test_broker_power_loss import check_acknowledged
from tests.soak_report import record, seed

TRIED = int(os.environ.get("TAMIS_FAILED_WRITES", "4"))
TURNS = 25


@pytest.mark.slow
def test_any_write_or_sync_may_fail(failing: Path, tmp_path: Path) -> None:
    began, draw = time.monotonic(), random.Random(seed())
    place, count = tmp_path / "place", tmp_path / "count"
    assert _run(failing, place, count, at=0) == 0
    operations = len(count.read_bytes())
    assert operations > 100
    chosen = draw.sample(range(1, operations + 1), min(TRIED, operations))
    for tried, at in enumerate(chosen):
        shutil.rmtree(place)
        _run(failing, place, count, at, (errno.EIO, errno.ENOSPC)[tried % 2])
        check_acknowledged(place, _acknowledged(place))
    record("failed-writes", len(chosen), 0, time.monotonic() - began)


def _run(failing: Path, place: Path, count: Path, at: int, error: int = errno.EIO) -> int:
    """Run a broker in a process of its own, in which one operation fails."""
    place.mkdir()
    count.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(failing),
        "TAMIS_FAIL_BELOW": str(place / "data"),
        "TAMIS_FAIL_AT": str(at),
        "TAMIS_FAIL_ERROR": str(error),
        "TAMIS_FAIL_COUNT": str(count),
    }
    program = [sys.executable, "-m", broker_program.__name__, str(place), str(seed()), str(TURNS)]
    done = subprocess.run(program, env=environment, check=False, capture_output=True, timeout=600)
    return done.returncode


def _acknowledged(place: Path) -> list[dict[str, Any]]:
    path = place / "acknowledged"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]
