"""A service that matches itself, and lets Spark match: the notifications are the same.

The log goes on all the time: subscriptions come, change and go, leases run out, the schema is
extended. What must come out is worked out from the log with the definition of truth.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pyspark.sql import SparkSession

from tamis.broker.access.lease_office import Lease
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.errors import SparkError
from tamis.replay.matching_shifts import INLINE, SPARK, MatchingShifts
from tamis.spark.stream.shift import spark_shift
from tamis.spark.stream.stream import Stream, service_job
from tamis.store.log import Log
from tamis.store.versions import Versions
from tests.notification_model import expected_pairs, found_pairs
from tests.serving import serving
from tests.soak_report import seed

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
CONDITIONS = ("price < 5", "price >= 3 and title = oak", "title exists", "not price < 8")
KILLED = """
import os, sys
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
broker = Broker(sys.argv[1])
broker.subscribe("price < 7", lease=None).result()
for at in range(10**9):
    broker.publish([IncomingEvent('{"price": %d}' % (at % 10))]).result()
    os.write(1, b"published\\n")
"""
_LIMIT = 300.0  # seconds


class Story:
    """A broker that is called at random."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folder, self._draw = folder, draw
        self._moment = 4_000_000_000_000_000  # after the clock of this machine
        self._leases: list[Lease] = []
        self._extended = 0
        self.broker = self.start(SCHEMA)

    def start(self, schema: dict[str, Any] | None = None) -> Broker:
        self.broker = Broker(self.folder, schema, clock=lambda: self._moment)
        return self.broker

    def go_on(self, steps: int) -> None:
        """Some requests, each answered before the next."""
        for _ in range(steps):
            self._draw.choice((self._publish, self._publish, self._subscribe, self._change))()

    def _publish(self) -> None:
        draw = self._draw
        events: list[str] = []
        for _ in range(draw.randint(1, 8)):
            more = f', "a{self._extended - 1}": {draw.randint(0, 9)}' if self._extended else ""
            title = ', "title": "oak"' if draw.random() < 0.5 else ""
            events.append(f'{{"price": {draw.randint(0, 9)}{title}{more}}}')
        self.broker.publish([IncomingEvent(text) for text in events]).result()

    def _subscribe(self) -> None:
        condition = self._draw.choice(CONDITIONS)
        if self._extended and self._draw.random() < 0.5:
            condition = f"a{self._extended - 1} >= 4"
        lease = self._draw.choice((None, timedelta(minutes=1)))
        self._leases.append(self.broker.subscribe(condition, lease=lease).result())

    def _change(self) -> None:
        live = [
            each for each in self._leases if self.broker.state.subscription(each.id) is not None
        ]
        if not live:
            return
        one = self._draw.choice(live)
        match self._draw.randrange(4):
            case 0:
                self.broker.cancel(one.id, ticket=one.ticket).result()
            case 1:
                condition = self._draw.choice(CONDITIONS)
                self.broker.update(one.id, ticket=one.ticket, condition=condition).result()
            case 2:
                self.broker.renew(one.id, timedelta(minutes=2), ticket=one.ticket).result()
            case _:
                self._moment += 61_000_000
                self.broker.expire_due()

    def extend(self) -> None:
        name = f"a{self._extended}"
        self.broker.extend(lambda schema: schema.create_attribute(name, "integer")).result()
        self._extended += 1

    def wait(self) -> None:
        """Until all events are matched, and in files."""
        last, matching = last_event(self.broker.log), self.broker.matching
        until(lambda: matching.matched > last, lambda: matching.failure)


def until(reached: Callable[[], bool], failure: Callable[[], object] = lambda: None) -> None:
    limit = time.monotonic() + _LIMIT
    while not reached():
        assert failure() is None, failure()
        assert time.monotonic() < limit
        time.sleep(0.02)


def kill_broker(folder: Path, lines: int) -> None:
    """A service that matches inline, killed while it publishes."""
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(lines):
        assert child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def test_five_switches_and_kills_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(seed())
    folder = tmp_path / "data"
    story = Story(folder, draw)
    story.go_on(40)
    for step in range(5):
        to = SPARK if step % 2 == 0 else INLINE
        shift = story.broker.matching.switch(to)
        assert (shift.matching, story.broker.matching.is_inline) == (to, to == INLINE)
        story.extend()
        story.go_on(15)
        if to == SPARK:
            run_spark(spark, story, killed=step == 2)
        else:
            story.wait()
            story.broker.close()
            kill_broker(folder, 20 + draw.randrange(30))
            story.start()
            assert story.broker.matching.is_inline
            story.go_on(15)
            story.wait()
    story.broker.close()
    log = Log.open(folder / "log")
    kinds = set(log.changes(0)["kind"].to_pylist())
    assert kinds == {"subscribe", "update", "renew", "cancel", "expire"}, "the story is too short"
    assert found_pairs(folder / "notifications") == expected_pairs(log)
    with Broker(folder) as broker:  # what readers get is what the files have
        page = broker.notifications(-1, None, 10**6).notifications
        assert sorted((one.sequence, one.subscription) for one in page) == expected_pairs(log)


def run_spark(spark: SparkSession, story: Story, *, killed: bool) -> None:
    """Match on Spark while the story goes on; killed between the commits of the sink and Spark."""
    with Stream(service_job(story.folder, most=50), spark=spark) as stream:
        stream.prepare()
        stream.start()
        story.go_on(25)
        story.extend()
        story.go_on(15)
        until(lambda: stream.look().backlog == 0, stream.check)
        story.wait()
        assert stream.keeper.trouble is None, "it does not expire leases of a log that is served"
        checkpoint = stream.job.checkpoint
    if killed:
        last = max(
            int(each.name) for each in (checkpoint / "commits").iterdir() if each.name[0] != "."
        )
        for left in (f"{last}", f".{last}.crc"):
            (checkpoint / "commits" / left).unlink(missing_ok=True)
        story.go_on(10)
        with Stream(service_job(story.folder, trigger=None), spark=spark) as stream:
            assert stream.job.checkpoint == checkpoint, "the same shift goes on"
            stream.start()
            until(lambda: not stream.running)
            stream.check()
        story.wait()


def test_the_matcher_before_can_add_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Spark runs on after a switch back, and its commits are refused."""
    story = Story(tmp_path / "data", random.Random(7))
    story.go_on(30)
    with pytest.raises(SparkError, match=r"the service itself \(inline\) matches here"):
        service_job(story.folder)
    story.broker.matching.switch(SPARK)
    with Stream(service_job(story.folder), spark=spark) as stream:
        stream.prepare()
        stream.start()
        story.go_on(20)
        until(lambda: stream.look().backlog == 0, stream.check)
        story.wait()
        story.broker.matching.switch(INLINE)
        story.go_on(30)
        until(lambda: not stream.running)
        with pytest.raises(SparkError, match="matching went over to inline at"):
            stream.check()
        name = f"{stream.job.checkpoint.name}"
        assert stream.superseded is not None
    story.wait()
    readers = Versions(story.folder / "index").folder / "readers"
    assert not list(readers.glob("run-*.json")), "no version is kept for it any more"
    assert name.startswith("checkpoint-")
    story.broker.close()
    log = Log.open(story.folder / "log")
    assert found_pairs(story.folder / "notifications") == expected_pairs(log)


def test_what_is_lost_is_matched_again(spark: SparkSession, tmp_path: Path) -> None:
    """Manifests, the checkpoint or all notifications are gone while Spark matches."""
    story = Story(tmp_path / "data", random.Random(3))
    story.broker.matching.switch(SPARK)
    shifts = MatchingShifts(story.folder)
    story.go_on(40)

    def matched() -> None:
        with Stream(service_job(story.folder, trigger=None, most=20), spark=spark) as stream:
            stream.start()
            until(lambda: not stream.running)
            stream.check()

    matched()
    story.wait()
    story.broker.close()
    first = shifts.current()
    assert first is not None
    log = Log.open(story.folder / "log")
    whole = expected_pairs(log)
    assert found_pairs(shifts.out) == whole
    # A manifest in the middle: what comes after it is found again, from there on.
    gone = sorted((shifts.out / "manifests").glob("*.json"))[1]
    gone.unlink()
    after = spark_shift(shifts)
    assert after.name != first.name
    assert 0 < after.start < log.end
    matched()
    assert found_pairs(shifts.out) == whole
    # The checkpoint: Spark would begin its shift again.
    for each in sorted(shifts.checkpoint(after).rglob("*"), reverse=True):
        each.unlink() if each.is_file() else each.rmdir()
    assert spark_shift(shifts).start > last_event(log)
    matched()
    assert found_pairs(shifts.out) == whole
    with Broker(story.folder) as broker:
        assert not broker.matching.is_inline


def last_event(log: Log) -> int:
    return max(each.end for each in log.boundaries(0, log.end) if each.kind == "events") - 1


def test_a_reader_of_a_service_hears_from_spark(spark: SparkSession, tmp_path: Path) -> None:
    """A real server with `--matching spark`; long poll, and a dry run."""
    folder = tmp_path / "data"
    with serving(folder, "--matching", "spark") as (client, _):
        lease = client.post("/v1/subscriptions", json={"condition": "price < 5"}).json()
        number = client.post("/v1/events", json={"price": 4}).json()["first"]
        assert _notified(client, lease, 0) == [], "nobody has matched yet"
        with Stream(service_job(folder, trigger=None), spark=spark) as stream:
            stream.prepare()
            stream.start()
            until(lambda: not stream.running)
            stream.check()
        assert _notified(client, lease, 30) == [number]
        answer = client.post("/v1/match", json={"event": {"price": 3}})
        assert answer.status_code == 200, answer.text
        assert client.get("/readyz").status_code == 200


def _notified(client: httpx2.Client, lease: dict[str, Any], wait: int) -> list[int]:
    answer = client.get(
        f"/v1/subscriptions/{lease['id']}/notifications",
        params={"after": -1, "wait": wait},
        headers={"Tamis-Ticket": lease["ticket"]},
    )
    assert answer.status_code == 200, answer.text
    return [each["sequence"] for each in answer.json()["notifications"]]
