"""Redundancy reports on live subscriptions, made by a process beside the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.broker.access.caller import ADMIN, SUBSCRIBER, AccessError, Caller
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.limits import Limits
from tamis.broker.questions import redundancy_reports
from tamis.broker.questions.redundancy_reports import RedundancyCancelledError
from tamis.errors import BrokerError, NotFoundError

pytestmark = pytest.mark.slow
SCHEMA = {
    "attributes": {"price": "decimal", "title": "text"},
    "event_types": {"lot": {"price": "mandatory", "title": "optional"}},
}
OPERATOR = Caller(None, frozenset({ADMIN}))
CONDITIONS = {
    "price < 5": "tamis",
    "not price >= 5": "tamis",
    '{"price": [{"numeric": ["<", 5]}]}': "eventbridge",
    "price < 3 and title = oak": "tamis",
    "price exists": "tamis",
    'title has substring "oak"': "tamis",
    "price > 70": "tamis",
}


def test_the_live_subscriptions_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redundancy_reports, "_PAGE", 2)  # several pages
    with Broker(tmp_path, SCHEMA, operators=["text"]) as broker:
        leases = [
            broker.subscribe(text, language=language).result()
            for text, language in CONDITIONS.items()
        ]
        gone = broker.subscribe("price > 70").result()
        broker.cancel(gone.id, ticket=gone.ticket).result()
        ids = [each.id for each in leases]
        assert broker.redundancy.job(OPERATOR) is None
        job = broker.redundancy.start(OPERATOR)
        # The broker goes on meanwhile, and nobody starts a second one.
        assert broker.redundancy.start(OPERATOR) is job
        broker.publish([IncomingEvent('{"price": 1}')]).result(60)
        found = job.result.result(120)
        assert broker.redundancy.job(OPERATOR) is job
        listed = {
            kind: [each["id"] for each in found[kind]["entries"]]
            for kind in ("always_true", "never_true")
        }
    assert (found["subscriptions"], found["redundant"], found["copies"]) == (7, 4, 2)
    (group,) = found["duplicates"]["entries"]
    assert [each["id"] for each in group["entries"]] == ids[:3]
    assert [each["condition"] for each in group["entries"]] == list(CONDITIONS)[:3]
    ((covered, by),) = found["covered"]["entries"]
    assert (covered["id"], by["id"]) == (ids[3], ids[0])
    assert listed == {"always_true": [ids[4]], "never_true": []}
    (undecided,) = found["undecided"]
    assert "patterns" in undecided["reason"]
    assert [each["id"] for each in undecided["entries"]] == [ids[5]]


def test_a_report_has_a_bounded_length(tmp_path: Path) -> None:
    shown = redundancy_reports.SHOWN
    with Broker(tmp_path, SCHEMA) as broker:
        for _ in range(20):
            broker.subscribe("price < 5").result()
        for price in range(shown + 5):
            broker.subscribe(f"price < 5 and title = t{price}").result()
        found = broker.redundancy.start(OPERATOR).result.result(120)
    (group,) = found["duplicates"]["entries"]
    assert group["many"] == 20
    assert len(group["entries"]) < 20
    assert found["covered"]["many"] == shown + 5
    assert len(found["covered"]["entries"]) == shown


def test_an_admin_starts_it_for_so_many_and_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path, SCHEMA, limits=Limits(redundancy=2)) as broker:
        for _ in range(2):
            broker.subscribe("price < 5").result()
        bob = Caller("bob", frozenset({SUBSCRIBER}))
        for ask in (broker.redundancy.start, broker.redundancy.job, broker.redundancy.cancel):
            with pytest.raises(AccessError):
                ask(bob)
        with pytest.raises(NotFoundError, match="no redundancy report is being made"):
            broker.redundancy.cancel(OPERATOR)
        monkeypatch.setattr(redundancy_reports, "_REST", 2.0)
        job = broker.redundancy.start(OPERATOR)
        broker.redundancy.cancel(OPERATOR)
        with pytest.raises(RedundancyCancelledError):
            job.result.result(60)
        monkeypatch.undo()
        again = broker.redundancy.start(OPERATOR)
        assert again.result.result(120)["copies"] == 1
        broker.subscribe("price < 5").result()
        with pytest.raises(BrokerError, match="are 3 live subscriptions"):
            broker.redundancy.start(OPERATOR)


def test_a_broker_that_closes_ends_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redundancy_reports, "_REST", 0.2)
    with Broker(tmp_path, SCHEMA) as broker:
        broker.subscribe("price < 5").result()
        job = broker.redundancy.start(OPERATOR)
    assert isinstance(job.result.exception(0), RedundancyCancelledError)
