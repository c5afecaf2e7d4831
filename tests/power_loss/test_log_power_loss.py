"""After a power cut at any moment, what was acknowledged is in the log, and the log goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tamis.store import Log
from tamis.store.verification import verify
from tests.campaign import campaign
from tests.power_loss import log_program
from tests.power_loss.restart import CAMPAIGN, cut_runs, cuts, start_machine_again

_CUTS_OF_A_RUN = 50


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
    start_machine_again(log)
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
    for name in ("fsync", "fdatasync"):  # the checks need no disk
        monkeypatch.setattr(os, name, lambda _: None)
    most = cuts(150)
    with campaign(CAMPAIGN, "log") as running:
        module = log_program.__name__
        for place, acknowledged in cut_runs(
            running, module, 40, recorder, tmp_path, most, _CUTS_OF_A_RUN
        ):
            _check(place, acknowledged)
