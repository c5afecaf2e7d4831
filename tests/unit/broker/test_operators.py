"""Operators in a broker: only those that are enabled, and none that stops the others."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.timed_pace import AIM, TimedPace
from tamis.broker.matching.version_keeper import VersionKeeper
from tamis.errors import OperatorError
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.live_subscriptions import LiveSubscriptions
from tamis.replay.log_matching import match_log
from tamis.replay.pipeline import BatchPace
from tamis.store.versions import Versions
from tests.unit.broker.test_webhooks import until

pytestmark = pytest.mark.slow

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
MODULE = "tests.unit.broker.watch_operators"


def _publish(broker: Broker, *events: dict[str, Any]) -> list[int]:
    given = [IncomingEvent(json.dumps(each)) for each in events]
    numbers = broker.publish(given).result().numbers
    assert broker.matching.wait(numbers[-1], 300) > numbers[-1]
    return numbers


def _pairs(broker: Broker, after: int = -1) -> set[tuple[int, Any]]:
    return {
        pair
        for each in broker.matching.notifications(after)
        for pair in zip(each.numbers.tolist(), each.ids.to_pylist(), strict=True)
    }


def test_a_pack_an_operator_and_a_module_are_enabled_by_name() -> None:
    assert [*EnabledOperators.named(["text"])] == [
        "hasKeyword", "hasPhrase", "matchesPattern", "patternGroups", "wordCount",
    ]  # fmt: skip
    assert [*EnabledOperators.named(["wordCount", MODULE])] == [
        "wordCount", "titleWords", "hangsOn", "fromElsewhere", "slowly", "shapeOf",
    ]  # fmt: skip
    with pytest.raises(OperatorError, match=r"'txet' is not a pack.*did you mean 'text'"):
        EnabledOperators.named(["txet"])
    with pytest.raises(OperatorError, match=r"'tests.unit.broker' declares no operators"):
        EnabledOperators.named(["tests.unit.broker"])


def test_an_operator_that_is_not_enabled_is_refused(tmp_path: Path) -> None:
    with Broker(tmp_path, SCHEMA, operators=["wordCount", f"{MODULE}"]) as broker:
        for condition in ("hasKeyword(oak)", "price < 5 or hasKeyword(oak)"):
            with pytest.raises(OperatorError, match="'hasKeyword' is not enabled here"):
                broker.subscribe(condition)
            with pytest.raises(OperatorError, match="'hasKeyword' is not enabled here"):
                broker.check(condition)
        lease = broker.subscribe("titleWords(?n) and ?n > 1").result()
        with pytest.raises(OperatorError, match="'hasKeyword' is not enabled here"):
            broker.update(lease.id, ticket=lease.ticket, condition="hasKeyword(oak)").result()
        assert broker.explain("titleWords(?n) and ?n > 1", {"title": "an oak"}).holds
        (number,) = _publish(broker, {"title": "an oak"})
        assert _pairs(broker) == {(number, lease.id)}
        assert broker.matching.report()["titleWords"].calls == 1


def test_conditions_with_an_operator_that_is_gone_stop_nothing(tmp_path: Path) -> None:
    """They are left out, also from a version, and match again when the operator is back."""
    with Broker(tmp_path, SCHEMA, operators=[MODULE]) as broker:
        called = [broker.subscribe("titleWords(?n) and ?n > 1").result() for _ in range(70)]
        plain = broker.subscribe("price < 5").result()
        (number,) = _publish(broker, {"price": 1})
        keeper = VersionKeeper(
            broker.log, tmp_path / "index", lambda: broker.matching.files.matched, 1, (MODULE,)
        )
        until(lambda: broker.matching.files.matched > number)
        assert keeper.look()
        keeper.stop()
    assert Versions(tmp_path / "index").latest() is not None
    ids = {each.id for each in called}
    with Broker(tmp_path) as broker:
        assert set(broker.matching.left_out) == ids
        assert {*broker.matching.left_out.values()} == {
            "operator 'titleWords' is not enabled here; whoever runs the service may enable it"
        }
        (number,) = _publish(broker, {"price": 1, "title": "an oak"})
        assert _pairs(broker, number - 1) == {(number, plain.id)}
        broker.cancel(called[0].id, ticket=called[0].ticket).result()
        broker.update(called[1].id, ticket=called[1].ticket, condition="price < 5").result()
        (number,) = _publish(broker, {"price": 1, "title": "an oak"})
        assert _pairs(broker, number - 1) == {(number, plain.id), (number, called[1].id)}
        assert set(broker.matching.left_out) == ids - {called[0].id, called[1].id}
        until(lambda: broker.matching.files.matched > number)
        keeper = VersionKeeper(
            broker.log, tmp_path / "index", lambda: broker.matching.files.matched, 1
        )
        assert keeper.look()
        keeper.stop()
    with Broker(tmp_path) as broker:  # from a version that lacks them
        assert set(broker.matching.left_out) == ids - {called[0].id, called[1].id}
    with Broker(tmp_path, operators=[MODULE]) as broker:
        assert not broker.matching.left_out
        (number,) = _publish(broker, {"price": 9, "title": "an oak"})
        assert _pairs(broker, number - 1) == {(number, each.id) for each in called[2:]}


def test_operators_get_opaque_values_as_they_were_published(tmp_path: Path) -> None:
    """In memory, and read from the log, also after the schema has got what it ignored before."""
    schema = {"attributes": {"thing": "opaque"}, "unknown": "ignore"}
    things = ({"lat": 1}, [1, 2], "text", "123", 5, True, '{"lat": 1}')
    kinds = [type(each).__name__ for each in things]
    with Broker(tmp_path, schema, operators=[MODULE]) as broker:
        by_kind = {kind: broker.subscribe(f"shapeOf({kind})").result().id for kind in set(kinds)}
        numbers = _publish(broker, *({"thing": each, "later": {"n": 1}} for each in things))
        expected = {(n, by_kind[kind]) for n, kind in zip(numbers, kinds, strict=True)}
        assert _pairs(broker) == expected
        broker.extend(lambda now: now.create_attribute("later.n", "integer")).result()
        broker.subscribe("later.n = 1").result()
        log, end = broker.log, broker.log.end
        live = LiveSubscriptions(log.schema_at(0), log.ids)
        engines = EnabledOperators.named([MODULE])
        for engine in live.engines:
            engine.calls.operators = engines
        found = set()
        for events, pairs in match_log(live, log, 0, end, BatchPace()):
            rows = events.numbers[pairs.rows].tolist()
            found |= set(zip(rows, pairs.ids.to_pylist(), strict=True))
        assert found == expected


def test_an_operator_that_hangs_or_crashes_stops_no_other(tmp_path: Path) -> None:
    with Broker(tmp_path, SCHEMA, operators=[MODULE]) as broker:
        hangs = broker.subscribe("hangsOn(slow)").result().id
        works = broker.subscribe("hangsOn(never)").result().id
        apart = broker.subscribe("fromElsewhere()").result().id
        plain = broker.subscribe("title exists").result().id
        events = _publish(broker, {"title": "quick"}, {"title": "slow"}, {"title": "crash"})
        found = _pairs(broker)
        assert found >= {(number, plain) for number in events}
        assert {(events[0], each) for each in (hangs, works, apart)} <= found
        assert (events[1], hangs) not in found
        assert (events[2], apart) not in found
        report = broker.matching.report()
        assert report["hangsOn"].timeouts >= 1
        assert report["fromElsewhere"].raised == 1
        assert 'hangsOn("slow")' in report["hangsOn"].constants

        limit = time.monotonic() + 60
        while not (worker := _children()):  # after a crash it starts in the background
            assert time.monotonic() < limit, "the operator has no process of its own"
            time.sleep(0.05)
        for each in worker:
            os.kill(each, signal.SIGKILL)
        limit = time.monotonic() + 60
        while time.monotonic() < limit:  # the next worker starts in the background
            (number,) = _publish(broker, {"title": "quick again"})
            found = _pairs(broker, number - 1)
            assert (number, plain) in found
            if (number, apart) in found:
                break
        assert (number, apart) in found
    assert not set(_children()) & set(worker)


def _children() -> list[int]:
    """The worker processes of operators below this one."""
    found = []
    for each in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for child in map(int, each.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"worker_main" in command:
                found.append(child)
    return found


def test_explanations_set_an_operator_aside_too(tmp_path: Path) -> None:
    """Otherwise each question about an operator that hangs would leave a thread behind."""
    with Broker(tmp_path, SCHEMA, operators=[MODULE]) as broker:
        for _ in range(12):
            found = broker.explain("hangsOn(slow)", {"title": "slow"})
            assert not found.holds
        assert broker.explain("price < 5", {"price": 1}).holds
        count = broker._explainer.runner.report()["hangsOn"]
        assert (count.calls, count.timeouts, count.set_aside) == (5, 5, 7)
        assert not broker.matching.report()["hangsOn"].calls


def test_a_slow_operator_makes_batches_short(tmp_path: Path) -> None:
    """An event waits for the calls of those before it, not for a whole batch after it."""
    with Broker(tmp_path, SCHEMA, operators=[MODULE]) as broker:
        slow = broker.subscribe("price > 0 and slowly()").result().id
        plain = broker.subscribe("price >= 0").result().id
        _publish(broker, *({"price": 1} for _ in range(20)))  # it learns how slow they are
        numbers = broker.publish([IncomingEvent('{"price": 1}')] * 60).result().numbers
        broker.matching.wait(numbers[0], 300)
        assert broker.matching.matched < numbers[-1], "the first came before the last was called"
        assert broker.matching.wait(numbers[-1], 300) > numbers[-1]
        assert _pairs(broker, numbers[0] - 1) == {
            (number, id) for number in numbers for id in (slow, plain)
        }


def test_the_pace_follows_the_time() -> None:
    pace = TimedPace(1024)
    pace.note_seconds(1024, 10.24)
    assert pace.step == 10
    pace.note_seconds(10, 1000.0)
    assert pace.step == 1
    steps = []
    for _ in range(6):
        pace.note_seconds(pace.step, AIM / 1e6)
        steps.append(pace.step)
    assert steps == [4, 16, 64, 256, 1024, 1024]
