"""When a client tries again, without a network."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tamis.client import delivery_plans, plans
from tamis.client.call import ServiceCall
from tamis.client.event_batches import EventBatcher, SourcedEvent, publish
from tamis.client.feed import Feed
from tamis.client.retries import Attempts, Pause, Retries
from tamis.client.service_error import ServiceError, UnreachableError
from tamis.errors import EventError, TamisError

RECEIPT = b'{"first":7,"count":1,"duplicates":0}'
KNOWN = SourcedEvent({"price": 4}, "/shop", "a")


def _problem(status: int, **fields: Any) -> bytes:
    return json.dumps(
        {"type": "urn:tamis:problem:busy", "title": "x", "status": status, "detail": "no", **fields}
    ).encode()


@pytest.mark.parametrize(
    ("call", "safe"),
    [
        (publish(KNOWN), True),
        (publish({"price": 4}), False),
        (plans.subscribe("price < 5"), True),
        (plans.renew(7), True),
        (plans.update(7, name="x"), True),
        (plans.show(7), True),
        (plans.poll(), True),
        (plans.cancel(7), False),
        (plans.create_key("ann", ["admin"]), False),
        (delivery_plans.rotate_secret(7), False),
    ],
    ids=lambda each: f"{each.method} {each.path}" if isinstance(each, ServiceCall) else "",
)
def test_only_what_does_no_harm_is_sent_again(call: Any, safe: bool) -> None:
    """A lost answer; a service that is busy is another matter, as it did nothing."""
    attempts = Attempts(call, Retries())
    assert isinstance(attempts.lost(OSError("refused"), sent=False), Pause)
    assert isinstance(attempts.answered(429, {"retry-after": "3"}, _problem(429)), Pause)
    if safe:
        assert isinstance(attempts.lost(OSError("gone"), sent=True), Pause)
        assert isinstance(attempts.answered(503, {}, _problem(503)), Pause)
    else:
        with pytest.raises(UnreachableError, match="may have done") as lost:
            attempts.lost(OSError("gone"), sent=True)
        assert lost.value.sent
        with pytest.raises(ServiceError):
            attempts.answered(503, {}, _problem(503))


def test_attempts_end_and_pauses_grow_with_jitter() -> None:
    policy = Retries(attempts=4, first=1, longest=3)
    for _ in range(50):
        attempts = Attempts(plans.show(1), policy)
        pauses = [attempts.lost(OSError("x"), sent=False).seconds for _ in range(3)]
        for pause, most in zip(pauses, (1, 2, 3), strict=True):
            assert most / 2 <= pause <= most
        with pytest.raises(UnreachableError, match="did not answer"):
            attempts.lost(OSError("x"), sent=False)
    with pytest.raises(ServiceError):  # it asks for more patience than there is
        Attempts(plans.show(1), policy).answered(429, {"retry-after": "4"}, _problem(429))


def test_a_problem_keeps_its_fields() -> None:
    attempts = Attempts(plans.check("x"), Retries())
    with pytest.raises(ServiceError) as refused:
        attempts.answered(400, {}, _problem(400, line=1, column=15))
    error = refused.value
    assert (error.status, error.kind, error.detail) == (400, "busy", "no")
    assert error.fields == {"line": 1, "column": 15}
    with pytest.raises(ServiceError, match="answered 502: <html>"):
        Attempts(publish({}), Retries()).answered(502, {}, b"<html>")


def test_events_become_lines_or_cloud_events() -> None:
    plain = publish([{"price": 4}, {"title": "a\nb"}])
    assert plain.headers["Content-Type"] == "application/x-ndjson"
    assert plain.content == b'{"price":4}\n{"title":"a\\nb"}'
    known = publish([KNOWN, KNOWN])
    assert known.headers["Content-Type"] == "application/cloudevents-batch+json"
    assert known.content is not None
    (first, _) = msgspec.json.decode(known.content)
    assert (first["source"], first["id"], first["data"]) == ("/shop", "a", {"price": 4})
    assert known.read(RECEIPT).first == 7
    with pytest.raises(EventError, match="apart"):
        publish([KNOWN, {"price": 4}])
    with pytest.raises(EventError, match="JSON"):
        publish({"price": object()})


def test_batches_are_full_by_number_or_by_size() -> None:
    batcher = EventBatcher(3)
    calls = [batcher.add({"n": at}) for at in range(7)]
    assert [call is not None for call in calls] == [False, False, True, False, False, True, False]
    rest = batcher.rest()
    assert rest is not None
    assert rest.content == b'{"n":6}'
    assert batcher.rest() is None
    large = EventBatcher(10_000)
    sent = [large.add({"title": "x" * (1 << 20)}) is not None for _ in range(16)]
    assert sum(sent) == 2


def test_a_feed_drops_what_a_reconnect_repeats() -> None:
    """The last notification of an event has a cursor; until it comes, the event comes again."""
    now = [0.0]
    feed = Feed(None, None, 4, None, Retries(first=1, longest=2), 60, lambda: now[0])

    def given(id: str, sequence: int, subscription: int) -> tuple[int, Any, int] | None:
        data = json.dumps({"sequence": sequence, "subscription": subscription, "event": {}})
        found = feed.received("notification", id, data)
        return None if found is None else (found.sequence, found.subscription, found.cursor)

    assert feed.opening() is None
    assert feed.received("lease-ending", "", '{"subscription": 1}') is None
    assert feed.connect().params == {"after": "4"}
    assert given("", 5, 1) == (5, 1, 4)
    assert given("5", 5, 2) == (5, 2, 5)
    assert given("5", 6, 1) == (6, 1, 5)
    assert isinstance(feed.lost(None), Pause)
    assert feed.connect().params == {"after": "5"}
    assert given("", 6, 1) is None
    assert given("6", 6, 2) == (6, 2, 6)
    assert feed.connect().params == {"after": "6"}
    assert isinstance(feed.refused(503, {}, _problem(503)), Pause)
    with pytest.raises(ServiceError) as gone:
        feed.refused(410, {}, _problem(410, first=9))
    assert gone.value.fields == {"first": 9}
    now[0] = 61.0
    with pytest.raises(UnreachableError):
        feed.lost(OSError("gone"))


def test_a_page_says_where_to_read_on() -> None:
    page = plans.poll().read(
        b'{"notifications":[{"sequence":5,"subscription":1,"event":null},'
        b'{"sequence":5,"subscription":2,"event":null},'
        b'{"sequence":9,"subscription":2,"event":{}}],"cursor":12}'
    )
    assert [each.cursor for each in page.notifications] == [4, 5, 9]
    assert page.cursor == 12


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"b": (1, -float("inf"))}])
def test_what_is_no_number_is_not_sent_as_null(value: Any) -> None:
    with pytest.raises(EventError, match="not a number"):
        publish({"a": value})
    with pytest.raises(TamisError, match="not a number"):
        plans.subscribe("a = 1", metadata={"a": value})
    assert publish({"a": None}).content == b'{"a":null}'
