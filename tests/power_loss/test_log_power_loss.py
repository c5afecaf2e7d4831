"""After a power cut at any moment, what was acknowledged is in the log, and the log goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.store import Log, head
from tamis.store.verification import verify
from tests.power_loss import log_program
from tests.power_loss.disk import Disk, build_recorder, operations, recorded_run

STATES = int(os.environ.get("TAMIS_POWER_LOSSES", "150"))


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    return build_recorder(tmp_path_factory.mktemp("recorder"))


def _named(log: Log) -> dict[int, str]:
    """The name at each sequence number that is kept."""
    found: dict[int, str] = {}
    for first, table in log.events(0):
        found |= dict(enumerate(table["name"].to_pylist(), first))
    changes = log.changes(log.begin)
    found |= dict(zip(changes["sequence"].to_pylist(), changes["id"].to_pylist(), strict=True))
    return found


def _check(folder: Path, acknowledged: list[dict[str, Any]]) -> None:
    if not acknowledged:
        return
    log = Log.open(folder / "log")
    named = _named(log)
    assert sorted(named) == list(range(log.begin, log.end))
    for note in acknowledged:
        for number in range(note.get("first", 0), note.get("end", 0)):
            assert number < log.begin or named[number] == note["name"]
    end = log.end
    # An appender may keep a pack that was whole but not acknowledged.
    got = log.publish({"name": ["last"]})
    assert got.start >= end
    again = Log.open(log.folder)
    assert _named(again) | named == _named(again)
    assert verify(again).findings == []


@pytest.mark.slow
def test_power_cut_at_any_moment(
    tmp_path: Path, recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(STATES)
    tried = 0
    seed = 0
    while tried < STATES:
        seed += 1
        place, record = tmp_path / f"run-{seed}", tmp_path / f"record-{seed}"
        place.mkdir()
        program = [sys.executable, log_program.__file__, str(place), str(seed), "40"]
        recorded_run(program, recorder, place, record)
        every = list(operations(record))
        for _ in range(min(50, STATES - tried)):
            tried += 1
            disk, acknowledged = Disk(str(place)), []
            for operation in every[: draw.randrange(len(every) + 1)]:
                if operation.path.endswith("/acknowledged"):
                    if operation.kind == "write":
                        acknowledged.append(json.loads(operation.data))
                else:
                    disk.apply(operation)
            state = tmp_path / "state"
            disk.cut_power(state, draw)
            # The machine has started again.
            monkeypatch.setattr(head, "this_boot", lambda mark=bytes([tried % 256] * 16): mark)
            monkeypatch.setattr("tamis.store.segment_files.this_boot", head.this_boot)
            _check(state, acknowledged)
            shutil.rmtree(state)
        shutil.rmtree(place)
        record.unlink()
