"""After a power cut at any moment, a broker has all that it acknowledged, and goes on exactly.

The log, the state database, the keys and the notifications lose power together.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.store import Log
from tests.campaign import campaign
from tests.faults.oracle import expected, published, written
from tests.power_loss import broker_program
from tests.power_loss.restart import CAMPAIGN, cut_runs, cuts, start_machine_again

_CUTS_OF_A_RUN = 25


def check_acknowledged(folder: Path, acknowledged: list[dict[str, Any]]) -> None:
    """A broker on this folder has what was acknowledged, and notifies exactly once."""
    if not acknowledged:
        return
    data = folder / "data"
    start_machine_again(Log.open(data / "log"))
    (data / "server.key").chmod(0o600)  # the simulated disk has no modes
    with Broker(data) as broker:
        log = broker.log
        end = log.end
        events = published(log)
        live: dict[int, str] = {}
        for note in acknowledged:
            for number in note.get("events", ()):
                assert json.loads(events[number]["json"])["title"] == note["title"]
            if "subscribed" in note:
                live[note["subscribed"]] = note["ticket"]
            live.pop(note.get("cancelled", -1), None)
            if "key" in note:
                assert broker.keys.caller(note["key"]) is not None
        # What came last may have been cancelled without an acknowledgement.
        missing = [id for id in live if broker.state.subscription(id) is None]
        assert len(missing) <= 1
        for id, ticket in live.items():
            if id not in missing:
                assert broker.subscription(id, ticket=ticket).id == id
        cursors = [note["cursor"] for note in acknowledged if "cursor" in note]
        if cursors:
            assert broker.consumers.cursor("ann", "reader") >= cursors[-1]
        got = broker.publish([IncomingEvent('{"price": 0}')]).result().numbers
        assert got[0] >= end
        broker.matching.wait(got[0], 60)
    found = written(data / "notifications")
    assert found.keys() == expected(log)
    assert max(found.values(), default=1) == 1


@pytest.mark.slow
def test_power_cut_at_any_moment(
    tmp_path: Path, recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fsync", "fdatasync"):  # the checks need no disk
        monkeypatch.setattr(os, name, lambda _: None)
    most = cuts(40)
    with campaign(CAMPAIGN, "broker") as running:
        module = broker_program.__name__
        for place, acknowledged in cut_runs(
            running, module, 40, recorder, tmp_path, most, _CUTS_OF_A_RUN
        ):
            check_acknowledged(place, acknowledged)
