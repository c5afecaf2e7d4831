"""`now` in a log is the time of the log, whoever matches, and whenever."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tamis.broker.access.caller import Caller
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.questions.backtests import BacktestQuestion
from tamis.language import parse
from tamis.model.semantics import satisfies
from tamis.model.times.moments import moment_text
from tamis.replay.live_subscriptions import LiveSubscriptions
from tamis.replay.log_matching import match_log
from tamis.replay.pipeline import BatchPace
from tamis.store.log import Log
from tamis.store.pack import moments
from tests.notification_model import Pairs, expected_pairs, found_pairs

SCHEMA = {
    "attributes": {
        "at": "timestamp",
        "until": "timestamp",
        "items": {"kind": "structs", "attributes": {"due": "timestamp"}},
    }
}
CONDITIONS = [
    "at > now - 1h",
    "at < now and until >= now",
    "@until - @at < 2h",
    "@until - now < now - @at",
    "some i in items (i.due < now + 90min)",
]
BEGIN, HOUR = 4_000_000_000_000_000, 3_600_000_000
ANALYST = Caller("ann", frozenset({"reader"}))


def event_text(draw: random.Random, now: int) -> str:
    def near() -> str:
        moment = now + draw.choice([-2 * HOUR, -HOUR - 1, -HOUR, -HOUR + 1, -1, 0, 1, HOUR])
        return moment_text(moment)

    return json.dumps({"at": near(), "until": near(), "items": [{"due": near()}]})


def filled(folder: Path) -> Broker:
    """A broker whose clock goes on by leaps, with events and changes in turn."""
    draw, now = random.Random(7), [BEGIN]
    broker = Broker(folder, SCHEMA, clock=lambda: now[0])
    for step in range(12):
        broker.subscribe(CONDITIONS[step % len(CONDITIONS)]).result()
        texts = [event_text(draw, now[0]) for _ in range(4)]
        broker.publish([IncomingEvent(text) for text in texts]).result()
        now[0] += draw.choice([0, 1, HOUR, 3 * HOUR])
    return broker


def replayed(log: Log) -> Pairs:
    """What a task of a stream finds in the whole log."""
    live = LiveSubscriptions(log.schema_at(0), log.ids)
    pairs: Pairs = []
    for events, found in match_log(live, log, 0, log.end, BatchPace(16, 16)):
        pairs += zip(events.numbers[found.rows].tolist(), found.ids.to_pylist(), strict=True)
    return sorted(pairs)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 3)


@pytest.mark.usefixtures("small_segments")
def test_whoever_matches_and_whenever(tmp_path: Path) -> None:
    with filled(tmp_path / "data") as broker:
        end = broker.publish([IncomingEvent("{}")]).result().numbers[0]
        assert broker.matching.wait(end, 60) > end
        page = broker.notifications(-1, None, 10_000).notifications
        inline = sorted((each.sequence, each.subscription) for each in page)
        condition = "at > now - 1h or @until - now < 1h"
        asked = BacktestQuestion(condition, samples=0)
        past = broker.backtests.start(asked, ANALYST).result.result(60)
    log = Log.open(tmp_path / "data" / "log")
    expected = expected_pairs(log)
    assert len({number for number, _ in expected}) > 20
    assert inline == expected == found_pairs(tmp_path / "data" / "notifications") == replayed(log)
    times = [int(each) for _, table in log.events(0) for each in moments(table)]
    texts = [each for _, table in log.events(0) for each in table["json"].to_pylist()]
    schema = log.schema_at()
    assert past.matched == sum(
        satisfies(parse(condition), json.loads(text), schema, now=moment_text(now))
        for text, now in zip(texts, times, strict=True)
    )
    # Merged packs keep the times of their events, as often as they are merged.
    for rows in (3, 20, 100_000):
        log.compact(log.end, rows=rows)
        again = Log.open(log.folder)
        assert [int(e) for _, table in again.events(0) for e in moments(table)] == times
        assert replayed(again) == expected == expected_pairs(again)
    assert log.compact(log.end) == 0


def test_a_dry_run_takes_the_moment_of_the_call(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", SCHEMA) as broker:
        id = broker.subscribe("at > now - 1h").result().id
        for minutes, found in ((-30, [id]), (-90, []), (30, [id])):
            at = datetime.now(UTC) + timedelta(minutes=minutes)
            assert broker.matching.dry_run({"at": at.isoformat()}) == found
        explained = broker.explain("at > now - 1h", {"at": "2026-01-01"}, "tamis")
        assert "now is 2" in str(explained)
