"""A service that is killed under load loses nothing, and notifies exactly once.

The callers and the receiver of webhooks are another process than the server, and record what was
acknowledged. `TAMIS_SERVICE_KILLS` says how often it is killed.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from pathlib import Path

from tamis.store.log import Log
from tests.faults.callers import Caller, Receiver
from tests.faults.oracle import expected, published, written
from tests.soak_report import record, seed
from tests.warm_servers import WarmServers

CYCLES = int(os.environ.get("TAMIS_SERVICE_KILLS", "30"))
_STILL = 60.0  # seconds without a webhook after which those that lack are lost


def test_kills_under_load_lose_nothing_and_repeat_nothing(
    tmp_path: Path, servers: WarmServers, schema: str
) -> None:
    began, draw = time.monotonic(), random.Random(seed())
    data = tmp_path / "data"
    receiver = Receiver()
    callers = [Caller(f"caller-{n}", seed(), receiver.url) for n in range(3)]
    options = ("--schema", schema, "--allow-sink", "127.0.0.1")
    for _ in range(CYCLES):
        server = servers.start(data, *options).wait_ready()
        enough, before = threading.Event(), sum(each.answers for each in callers)
        threads = [threading.Thread(target=each.run, args=(server.url, enough)) for each in callers]
        for thread in threads:
            thread.start()
        wanted = before + draw.randint(1, 60)
        while sum(each.answers for each in callers) < wanted and server.alive:
            time.sleep(0.001)
        server.kill()
        for thread in threads:
            thread.join()
    server = servers.start(data, *options).wait_ready()
    sinks = _wait_for_webhooks(data, receiver)
    _wait_for_files(data)
    server.end()
    assert "stopped" in server.output
    receiver.close()
    log = Log.open(data / "log")
    assert not [each.problems for each in callers if each.problems]
    _check_acknowledged(log, callers)
    right, found = expected(log), written(data / "notifications")
    twice = {pair for pair, count in found.items() if count > 1}
    assert found.keys() == right, f"{len(right - found.keys())} lost"
    assert not twice, f"{len(twice)} twice"
    assert sinks <= receiver.came.keys()
    assert all(len(names) == 1 for names in receiver.came.values()), "an id changed"
    record("service-kills", CYCLES, 0, time.monotonic() - began)


def _check_acknowledged(log: Log, callers: list[Caller]) -> None:
    events = published(log)
    keys = [(each["$source"], each["$id"]) for each in events.values()]
    assert len(set(keys)) == len(keys), "an event is there twice"
    for caller in callers:
        for id, number in caller.events.items():
            assert json.loads(events[number]["json"]) == json.loads(caller.texts[id])
    rows = log.changes(0).to_pylist()
    added = {row["id"] for row in rows if row["kind"] == "subscribe"}
    ended = {row["id"] for row in rows if row["kind"] == "cancel"}
    leases = {id for caller in callers for id in caller.leases}
    assert leases <= added
    cancelled = {id for caller in callers for id in caller.cancelled}
    assert cancelled <= ended
    assert ended - cancelled <= {id for each in callers for id in each.unanswered_cancels()}
    assert len(added) - len(leases) <= len(callers), "a repeated subscribe was added again"
    assert sum(len(caller.events) for caller in callers) > CYCLES


def _wait_for_files(data: Path) -> None:
    """Wait until all that there is to find is on disk; what is wrong shows later."""
    right, until = len(expected(Log.open(data / "log"))), time.monotonic() + 30
    while len(written(data / "notifications")) < right and time.monotonic() < until:
        time.sleep(0.1)


def _wait_for_webhooks(data: Path, receiver: Receiver) -> set[tuple[int, int]]:
    """Wait until the receiver has what it must get; returns that."""
    log = Log.open(data / "log")
    rows = log.changes(0, details=True).to_pylist()
    with_sink = {row["id"] for row in rows if row["sink"] is not None}
    ended = {row["id"] for row in rows if row["kind"] == "cancel"}
    # What a cancelled subscription was not sent yet is not sent any more.
    sinks = {pair for pair in expected(log) if pair[1] in with_sink - ended}
    came, until = 0, time.monotonic() + _STILL
    while not sinks <= receiver.came.keys():
        if len(receiver.came) > came:  # after many cycles, there are tens of thousands
            came, until = len(receiver.came), time.monotonic() + _STILL
        assert time.monotonic() < until, f"{len(sinks - receiver.came.keys())} webhooks lost"
        time.sleep(0.05)
    return sinks
