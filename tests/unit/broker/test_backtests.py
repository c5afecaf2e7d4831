"""Back-tests over the events that a log keeps, compared with the definition of truth."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from tamis.broker.access.caller import SUBSCRIBER, AccessError, Caller
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.questions import backtests
from tamis.broker.questions.backtests import BacktestQuestion, Backtests
from tamis.errors import BrokerError, ConditionError, NotFoundError, QuotaError
from tamis.language import parse
from tamis.model.semantics import satisfies
from tamis.operators.enabled_operators import EnabledOperators

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
ANALYST = Caller("ann", frozenset({"reader"}))
HOUR = 3_600_000_000


def filled(folder: Path, draw: random.Random) -> tuple[Broker, dict[int, tuple[int, str]]]:
    """A broker with events of ten hours, and these by number: the moment and the text."""
    now = [4_000_000_000_000_000]
    broker = Broker(folder, SCHEMA, clock=lambda: now[0])
    events: dict[int, tuple[int, str]] = {}
    for hour in range(10):
        if hour == 5:
            broker.extend(lambda schema: schema.create_attribute("size", "integer")).result()
        for _ in range(draw.randint(1, 5)):
            texts = [event_text(draw, hour) for _ in range(draw.randint(1, 9))]
            numbers = broker.publish([IncomingEvent(text) for text in texts]).result().numbers
            events |= {n: (now[0], text) for n, text in zip(numbers, texts, strict=True)}
            broker.subscribe("price < 3").result()  # numbers of events have gaps
        now[0] += HOUR
    return broker, events


def event_text(draw: random.Random, hour: int) -> str:
    event: dict[str, object] = {"price": draw.randint(0, 9)}
    if draw.random() < 0.5:
        event["title"] = draw.choice(["oak", "ash"])
    if hour >= 5:
        event["size"] = draw.randint(0, 9)
    return json.dumps(event)


@pytest.mark.parametrize(
    "condition",
    ["price < 5", "title = oak and price >= 3", "not title = oak", "size > 4 or price = 1"],
)
def test_counts_are_those_of_the_definition(tmp_path: Path, condition: str) -> None:
    draw = random.Random(condition)
    broker, events = filled(tmp_path, draw)
    with broker:
        schema = broker.schema
        read = parse(condition, schema)
        right = {n for n, (_, text) in events.items()
                 if satisfies(read, schema.event(json.loads(text)), schema)}  # fmt: skip
        asked = BacktestQuestion(condition, samples=3, buckets=7)
        found = broker.backtests.start(asked, ANALYST).result.result(60)
        assert (found.events, found.matched, found.dead) == (len(events), len(right), 0)
        assert len(found.samples) == min(3, len(right))
        assert set(found.samples) <= right
        assert sum(each.events for each in found.over_time) == len(events)
        for bucket in found.over_time:
            inside = {n for n, (moment, _) in events.items()
                      if bucket.begin <= moment_of(moment) < bucket.end}  # fmt: skip
            assert (bucket.events, bucket.matched) == (len(inside), len(inside & right))
        # A part of the log, by numbers and by moments.
        numbers = sorted(events)
        low, high = numbers[len(numbers) // 4], numbers[len(numbers) // 2]
        part = BacktestQuestion(condition, first=low, end=high)
        found = broker.backtests.start(part, ANALYST).result.result(60)
        assert found.matched == len([n for n in right if low <= n < high])
        since, until = (moment_of(events[n][0]) for n in (low, high))
        part = BacktestQuestion(condition, since=since, until=until)
        found = broker.backtests.start(part, ANALYST).result.result(60)
        assert found.matched == len([n for n in right
                                     if since <= moment_of(events[n][0]) < until])  # fmt: skip


def moment_of(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def test_who_may_ask_and_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker, events = filled(tmp_path, random.Random(1))
    with broker:
        asked = BacktestQuestion("price < 5")
        with pytest.raises(AccessError, match="lacks the role reader"):
            broker.backtests.start(asked, Caller("bob", frozenset({SUBSCRIBER})))
        with pytest.raises(ConditionError):
            broker.backtests.start(BacktestQuestion("prise < 5"), ANALYST)
        small = Backtests(broker.log, EnabledOperators(), most=len(events) - 1)
        monkeypatch.setattr(backtests, "has_spark", lambda: False)
        with pytest.raises(BrokerError, match="on Spark, which is not installed here"):
            small.start(asked, ANALYST)
        small.stop()
        job = broker.backtests.start(asked, ANALYST)
        job.result.result(60)
        assert broker.backtests.job(job.id, ANALYST) is job
        with pytest.raises(NotFoundError):
            broker.backtests.job(job.id, Caller("bob", frozenset({"reader"})))
        broker.backtests.cancel(job.id, ANALYST)
        with pytest.raises(NotFoundError):
            broker.backtests.job(job.id, ANALYST)


def test_a_cancelled_one_ends(tmp_path: Path) -> None:
    broker, _ = filled(tmp_path, random.Random(2))
    with broker:
        job = broker.backtests.start(BacktestQuestion("price < 5"), ANALYST)
        job.cancelled = True
        why = job.result.exception(60)
        assert why is None or "cancelled" in str(why)  # it may have been done before


def test_cancelled_ones_wait_too(tmp_path: Path) -> None:
    """Whoever starts and cancels back-tests does not fill the memory with them."""
    broker, _ = filled(tmp_path, random.Random(3))
    with broker:
        busy = Event()
        broker.backtests._pool.submit(busy.wait, 60)
        for _ in range(10):
            job = broker.backtests.start(BacktestQuestion("price < 5"), ANALYST)
            broker.backtests.cancel(job.id, ANALYST)
        with pytest.raises(QuotaError):
            broker.backtests.start(BacktestQuestion("price < 5"), ANALYST)
        busy.set()
        with pytest.raises(NotFoundError):
            broker.backtests.job(job.id, ANALYST)
        job.result.exception(60)
        done = broker.backtests.start(BacktestQuestion("price < 5"), ANALYST)
        assert done.result.result(60).events > 0


def test_a_range_after_the_end_is_empty(tmp_path: Path) -> None:
    broker, _ = filled(tmp_path, random.Random(4))
    with broker:
        for first, end in ((2**62, None), (2**62, 3), (5, 3)):
            asked = BacktestQuestion("price < 5", first=first, end=end)
            assert broker.backtests.start(asked, ANALYST).result.result(60).events == 0
