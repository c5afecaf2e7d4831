"""After a power cut at any moment, a stream goes on: nothing is lost, and nothing comes twice.

The log, the versions, the sink and the checkpoint lose power together. Spark's loop is a model;
tests/integration/spark/test_power_loss.py has the real one.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.engine import Engine
from tamis.replay.compact_parts import compact
from tamis.store import Log, SubscriptionSnapshot, Version, Versions
from tests.campaign import SEED, Campaign, campaign
from tests.power_loss import store_program
from tests.power_loss.disk import Disk, content, operations, power_cuts, recorded_run
from tests.power_loss.restart import CAMPAIGN, cuts, start_machine_again
from tests.power_loss.small_world import (
    began,
    check_notifications,
    compile_version,
    some_changes,
    some_events,
)

_CUTS_OF_A_RUN = 50


def _recorded(recorder: Path, folder: Path, seed: int, start: str) -> tuple[Path, Path]:
    place, record = folder / "place", folder / "record"
    place.mkdir()
    program = [sys.executable, "-m", store_program.__name__, str(place), str(seed), start, "60"]
    recorded_run(program, recorder, place, record)
    return place, record


@pytest.mark.slow
def test_power_cut_at_any_moment(
    recorder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fsync", "fdatasync"):  # the checks need no disk
        monkeypatch.setattr(os, name, lambda _: None)
    most = cuts(40)
    with campaign(CAMPAIGN, "store") as running:
        seed = 1000 * SEED
        while running.tried < most:
            seed += 1
            start = ("0", "latest")[seed % 2]
            place, record = _recorded(recorder, tmp_path, seed, start)
            # Nothing is missing from the record.
            disk, again = Disk(str(place)), tmp_path / "again"
            for operation in operations(record):
                disk.apply(operation)
            disk.sync_all()
            disk.cut_power(again, random.Random(0))
            assert content(again) == content(place)
            shutil.rmtree(again)
            shutil.rmtree(place)
            left = min(_CUTS_OF_A_RUN, most - running.tried)
            for acknowledged in power_cuts(record, place, place, running.draw, left):
                running.tried += 1
                _check(place, start, acknowledged, running)
            shutil.rmtree(place)
            record.unlink()


def _check(place: Path, start: str, acknowledged: list[dict[str, Any]], running: Campaign) -> None:
    if not acknowledged:
        return
    known = {name: value for each in acknowledged for name, value in each.items()}
    log, versions = Log.open(place / "log"), Versions(place / "index")
    start_machine_again(log)
    assert log.end >= known["end"]
    begun = known.get("begun", 0 if start == "0" else began(log) or log.end)
    _check_versions(log, versions, acknowledged)
    # The stream does what was left, then what comes, and is merged and swept as ever.
    store_program.restarted(place, start).run(100)
    for _ in range(3):
        log.append(events=some_events(running.draw), changes=some_changes(running.draw))
    store_program.restarted(place, start).run(100)
    check_notifications(log, store_program.out_of(place), begun)
    compact(store_program.out_of(place), keep=1, many=1, older=0.0)
    versions.sweep(compile_version(log, versions))
    check_notifications(log, store_program.out_of(place), begun)
    assert [*versions.folder.glob(".*")] == [], "leftovers of publishing and sweeping"


def _check_versions(log: Log, versions: Versions, acknowledged: list[dict[str, Any]]) -> None:
    """Those that are there are whole, and the last one that was published is there."""
    for each in versions.all():
        snapshot = SubscriptionSnapshot()
        snapshot.fold(log.changes(0, each.sequence))
        (shard,) = Version.open(each.folder).shard_folders
        with Engine.open(shard) as engine:
            assert sorted(engine.ids()) == sorted(snapshot)
    published = [each["version"] for each in acknowledged if "version" in each]
    if published:
        latest = versions.latest()
        assert latest is not None
        assert latest.sequence >= published[-1]
    for note in acknowledged:
        if "pinned" in note:
            assert versions.pin("frames", note["batch"], keep=100).sequence == note["pinned"]
