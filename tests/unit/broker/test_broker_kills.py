"""A broker that is killed under load keeps what it has acknowledged, and starts again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tamis.broker.broker import Broker
from tamis.store.log import Log
from tamis.store.subscription_snapshot import SubscriptionSnapshot
from tests.soak_report import record, seed

SCHEMA = {"attributes": {"price": "decimal"}}
CYCLES = int(os.environ.get("TAMIS_BROKER_KILLS", "4"))
# Four threads call the broker, and write a line for each acknowledgement.
CALLER = """
import os, random, sys, threading
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent

broker = Broker(sys.argv[1], {"attributes": {"price": "decimal"}})

def call(which):
    draw, mine, tickets = random.Random(f"{sys.argv[2]} {which}"), [], {}
    for turn in range(10**9):
        if draw.random() < 0.6:
            texts = ['{"price": %d}' % (turn % 9) for _ in range(draw.randint(1, 3))]
            given = [IncomingEvent(t, f"{sys.argv[2]}-{which}", str((turn, at)))
                     for at, t in enumerate(texts)]
            numbers = broker.publish(given).result().numbers
            line = "published " + " ".join(map(str, numbers))
        elif mine and draw.random() < 0.5:
            id = mine.pop(draw.randrange(len(mine)))
            broker.cancel(id, ticket=tickets[id]).result()
            line = f"cancelled {id}"
        else:
            lease = broker.subscribe(f"price < {turn % 9}").result()
            mine.append(lease.id)
            tickets[lease.id] = lease.ticket
            line = f"subscribed {lease.id}"
        os.write(1, (line + "\\n").encode())

for which in range(4):
    threading.Thread(target=call, args=(which,)).start()
"""


def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    """Acknowledged rows are in the log, and the state is the fold of the log, after each kill."""
    began, draw = time.monotonic(), random.Random(seed())
    events: set[int] = set()
    live: set[int] = set()
    ended: set[int] = set()
    folder = tmp_path / "data"
    for cycle in range(CYCLES):
        child = subprocess.Popen(
            [sys.executable, "-c", CALLER, str(folder), f"{seed()}-{cycle}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        for _, line in zip(range(draw.randint(1, 400)), child.stdout, strict=False):
            _note(line, events, live, ended)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read()  # what was acknowledged before the kill arrived
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                _note(line, events, live, ended)
        child.wait()
        _check(folder, events, live, ended)
    assert events, "nothing was acknowledged"
    record("broker-kills", CYCLES, 0, time.monotonic() - began)


def _note(line: str, events: set[int], live: set[int], ended: set[int]) -> None:
    word, *numbers = line.split()
    if word == "published":
        assert not events & set(map(int, numbers)), "a number was given twice"
        events.update(map(int, numbers))
    elif word == "subscribed":
        live.add(int(numbers[0]))
    else:
        live.discard(int(numbers[0]))
        ended.add(int(numbers[0]))


def _check(folder: Path, events: set[int], live: set[int], ended: set[int]) -> None:
    with Broker(folder) as broker:
        log = Log.open(broker.log.folder)
        there = {first + row for first, table in log.events(0) for row in range(table.num_rows)}
        assert events <= there, f"lost: {sorted(events - there)}"
        snapshot = SubscriptionSnapshot()
        snapshot.fold(log.changes(0), log.end)
        # A cancel may be in the log although its acknowledgement did not arrive.
        assert not ended & snapshot.keys()
        assert {each.id for each in broker.state.subscriptions(most=10**6)} == {*snapshot}
        added = {int(number) for number in log.changes(0)["id"].to_pylist()}
        assert live <= added
        live &= {*map(int, snapshot)}
