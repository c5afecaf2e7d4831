"""Appenders, mergers and trimmers are killed: nothing acknowledged is lost, nothing is there twice.

`TAMIS_LOG_KILLS` says how many processes are killed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.store import Log, SubscriptionSnapshot
from tamis.store.log import segment_files
from tamis.store.verification import verify
from tests import soak_report
from tests.unit.store import crashing
from tests.unit.store.world import SCHEMA, files

KILLS = int(os.environ.get("TAMIS_LOG_KILLS", "60"))
EACH = 60  # kills of one log


def _names(log: Log) -> list[str]:
    """What is at each sequence number from the beginning on; each number has one row."""
    names: dict[int, str] = {}
    changes = log.changes(log.begin)
    for first, table in log.events(log.begin):
        names |= dict(enumerate(table["name"].to_pylist(), first))
    for number, id in zip(changes["sequence"].to_pylist(), changes["id"].to_pylist(), strict=True):
        assert number not in names
        names[number] = id
    assert sorted(names) == list(range(log.begin, log.end))
    return [names[number] for number in range(log.begin, log.end)]


def _check(log: Log, notes: list[dict[str, Any]]) -> None:
    assert verify(log).findings == []
    # The next who appends takes in what the last one who died had finished, or sweeps it.
    log.publish({"name": ["last"]})
    names = _names(log)
    assert names[-1] == "last"
    done = [note for note in notes if "done" in note]
    for note in done:
        for number, name in enumerate(note["ids"], note["first"]):
            assert number < log.begin or names[number - log.begin] == name
    added = [name for name in names if name not in ("first", "last")]
    cancelled = {id for note in notes if "cancel" in note.values() for id in note["ids"]}
    once = [name for name in added if name not in cancelled]
    assert len(once) == len(set(once))
    snapshot = SubscriptionSnapshot()
    snapshot.fold(log.changes(0), log.end)
    live = set(snapshot)
    wanted = {id for note in done if note["done"] == "subscribe" for id in note["ids"]}
    assert wanted - cancelled <= live
    assert not live & {id for note in done if note["done"] == "cancel" for id in note["ids"]}
    log.compact(log.end)
    sections = segment_files(log.folder, str(log.identity)).sections(0, log.end)
    assert files(log) == sorted({section.file for section in sections})
    assert _names(Log.open(log.folder)) == names
    assert verify(log).findings == []


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    started, killed, acknowledged = time.perf_counter(), 0, 0
    failed = 1  # of one log, until it is good
    try:
        while killed < KILLS:
            kills = min(EACH, KILLS - killed)
            place = tmp_path / str(killed)
            log, noted = Log.create(place / "log", SCHEMA), place / "notes"
            arguments = (log.folder, noted, kills, 1000 * soak_report.seed() + killed)
            program = [sys.executable, crashing.__file__, *map(str, arguments)]
            subprocess.run(program, check=True, timeout=300)
            killed += kills
            notes = [json.loads(line) for line in noted.read_text().splitlines()]
            acknowledged += len(notes)
            _check(Log.open(log.folder), notes)
            shutil.rmtree(place)
        failed = 0
    finally:
        soak_report.record("log-kills", killed, failed, time.perf_counter() - started)
    assert acknowledged
