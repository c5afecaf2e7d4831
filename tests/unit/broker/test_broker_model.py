"""The broker against a model: a dict of what is live, and a list of what was published."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tamis.broker.access.caller import ANONYMOUS, Caller
from tamis.broker.access.lease_office import Lease
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.compile_version import compile_version
from tamis.broker.sequence.dedup import WINDOW
from tamis.errors import NotFoundError, RequestKeyError
from tamis.language import parse
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies
from tamis.store.log import Log
from tamis.store.subscription_snapshot import SubscriptionSnapshot
from tests.running import run_machine
from tests.soak_report import record

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
OWNERS = st.sampled_from(["ann", "bob"])
CONDITIONS = st.sampled_from(["price < 5", "price >= 5 and title = oak", "title exists"])
MINUTE = timedelta(minutes=1)
STEPS = int(os.environ.get("TAMIS_BROKER_STEPS", "1000"))  # of all examples together
_EACH = 25  # steps of an example


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.moment = 4_000_000_000_000_000  # after the clock of this machine

    def __call__(self) -> int:
        return self.moment


class BrokerMachine(RuleBasedStateMachine):
    """Publishes, subscribes, renews, updates, cancels, leases that end, and new starts."""

    @initialize()
    def start(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.live: dict[int, dict[str, Any]] = {}
        self.leases: dict[int, Lease] = {}
        self.asked: dict[int, tuple[str, int | None]] = {}
        self.events: dict[int, str] = {}
        self.requests: dict[tuple[str, str], int] = {}
        self.published: dict[tuple[str, str], int] = {}
        self.times: dict[tuple[str, str], int] = {}
        self.extended = 0
        self.expected: set[tuple[int, int]] = set()
        self.open()

    def open(self) -> None:
        self.broker = Broker(self.place.name, SCHEMA, clock=self.clock)

    def close(self) -> None:
        self.broker.close()

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.close()
            self.place.cleanup()

    def note(self, number: int, text: str) -> None:
        """An event is published: what it is, and whom it notifies."""
        assert number not in self.events
        self.events[number] = text
        schema = self.broker.schema
        event = schema.event(json.loads(text))
        self.expected |= {
            (number, id)
            for id, each in self.live.items()
            if satisfies(parse(each["condition"], schema), event, schema)
        }

    @rule(prices=st.lists(st.integers(0, 9), max_size=5))
    def publish(self, prices: list[int]) -> None:
        texts = [json.dumps({"price": price}) for price in prices]
        numbers = self.broker.publish(map(IncomingEvent, texts)).result().numbers
        assert len(numbers) == len(texts)
        for number, text in zip(numbers, texts, strict=True):
            self.note(number, text)

    @rule(source=OWNERS, ids=st.lists(st.sampled_from("pqr"), min_size=1, max_size=4))
    def publish_with_ids(self, source: str, ids: list[str]) -> None:
        texts = {id: json.dumps({"title": f"{source} {id}"}) for id in ids}
        given = [IncomingEvent(texts[id], source, id) for id in ids]
        now = self.clock.moment
        for id in ids:  # a key is remembered for ten minutes
            if now - self.times.get((source, id), now) >= WINDOW:
                self.published.pop((source, id), None)
        receipt = self.broker.publish(given).result()
        fresh = {id for id in ids if (source, id) not in self.published}
        assert receipt.duplicates == len(ids) - len(fresh)
        for id, number in zip(ids, receipt.numbers, strict=True):
            if (source, id) not in self.published:
                self.times[source, id] = now
                self.note(number, texts[id])
            assert self.published.setdefault((source, id), number) == number

    @rule(
        owner=OWNERS,
        condition=CONDITIONS,
        minutes=st.one_of(st.none(), st.integers(1, 9)),
        key=st.one_of(st.none(), st.sampled_from("xy")),
    )
    def subscribe(self, owner: str, condition: str, minutes: int | None, key: str | None) -> None:
        known = None if key is None else self.requests.get((owner, key))
        asked = self.broker.subscribe(
            condition,
            caller=Caller(owner, ANONYMOUS.roles),
            lease=None if minutes is None else minutes * MINUTE,
            request_key=key,
            metadata={"minutes": minutes},
        )
        if known is not None and self.asked[known] != (condition, minutes):
            with pytest.raises(RequestKeyError):
                asked.result()
            return
        lease = asked.result()
        assert isinstance(lease.id, int)
        if known is not None:
            assert lease == self.leases[known]
            return
        self.asked[lease.id] = (condition, minutes)
        assert lease.id not in self.live
        until = None if minutes is None else self.clock.moment + minutes * 60_000_000
        self.live[lease.id] = {"condition": condition, "owner": owner, "until": until}
        self.leases[lease.id] = lease
        if key is not None:
            self.requests[owner, key] = lease.id

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), minutes=st.integers(1, 9), right=st.booleans())
    def renew(self, data: st.DataObject, minutes: int, right: bool) -> None:
        id = data.draw(st.sampled_from(sorted(self.leases)))
        ticket = self.leases[id].ticket if right else "x" * 43
        asked = self.broker.renew(id, minutes * MINUTE, ticket=ticket)
        if right and id in self.live:
            asked.result()
            self.live[id]["until"] = self.clock.moment + minutes * 60_000_000
        else:
            with pytest.raises(NotFoundError):
                asked.result()

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), condition=CONDITIONS)
    def update(self, data: st.DataObject, condition: str) -> None:
        id = data.draw(st.sampled_from(sorted(self.leases)))
        asked = self.broker.update(id, ticket=self.leases[id].ticket, condition=condition)
        if id in self.live:
            assert asked.result().condition == condition
            self.live[id]["condition"] = condition
        else:
            with pytest.raises(NotFoundError):
                asked.result()

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), by=OWNERS, with_ticket=st.booleans())
    def cancel(self, data: st.DataObject, by: str, with_ticket: bool) -> None:
        id = data.draw(st.sampled_from(sorted(self.leases)))
        ticket = self.leases[id].ticket if with_ticket else None
        asked = self.broker.cancel(id, ticket=ticket, caller=Caller(by))
        if id in self.live and (with_ticket or self.live[id]["owner"] == by):
            asked.result()
            del self.live[id]
        else:
            with pytest.raises(NotFoundError):
                asked.result()

    @rule(minutes=st.integers(1, 5))
    def time_passes(self, minutes: int) -> None:
        self.clock.moment += minutes * 60_000_000
        self.broker.expire_due()
        self.live = {
            id: each
            for id, each in self.live.items()
            if each["until"] is None or each["until"] > self.clock.moment
        }

    @precondition(lambda self: self.extended < 3)
    @rule()
    def extend(self) -> None:
        self.extended += 1
        name = f"extra{self.extended}"

        def build(schema: Schema) -> Schema:
            document = schema.to_dict()
            document["attributes"][name] = "integer"
            return Schema.from_dict(document)

        self.broker.extend(build).result()
        assert name in self.broker.schema.attributes

    @rule(lose_state=st.booleans(), lose_notifications=st.booleans())
    def start_again(self, lose_state: bool, lose_notifications: bool) -> None:
        self.broker.close()
        if lose_notifications:
            shutil.rmtree(self.broker.folder.notifications, ignore_errors=True)
        self.broker = Broker(self.place.name, clock=self.clock, rebuild=lose_state)

    @rule()
    def compile(self) -> None:
        """A version never changes an answer; it is used by the next start."""
        broker = self.broker
        target = broker.matching.files.matched
        if target:
            compile_version(broker.log, broker.folder.index, target)

    @rule(after=st.one_of(st.just(-1), st.integers(0, 50)))
    def notifications_are_the_model(self, after: int) -> None:
        broker = self.broker
        matching = broker.matching
        reached = matching.wait(broker.log.end - 1, 60)
        assert (reached, matching.failure) == (broker.log.end, None)
        found = [
            pair
            for pairs in matching.notifications(after)
            for pair in zip(pairs.numbers.tolist(), pairs.ids.to_pylist(), strict=True)
        ]
        assert sorted(found) == sorted(each for each in self.expected if each[0] > after)
        assert [number for number, _ in found] == sorted(number for number, _ in found)

    @invariant()
    def state_is_the_model(self) -> None:
        if not hasattr(self, "place"):
            return
        found = {each.id: each for each in self.broker.state.subscriptions(most=1000)}
        assert found.keys() == self.live.keys()
        for id, each in self.live.items():
            stored = found[id]._asdict()
            assert {name: stored[name] for name in each} == each

    @invariant()
    def log_is_the_model(self) -> None:
        if not hasattr(self, "place"):
            return
        log = Log.open(self.broker.log.folder)
        found = {
            first + row: text
            for first, table in log.events(0)
            for row, text in enumerate(table["json"].to_pylist())
        }
        assert found == self.events
        snapshot = SubscriptionSnapshot()
        snapshot.fold(log.changes(0), log.end)
        assert {id: each.condition for id, each in snapshot.items()} == {
            id: each["condition"] for id, each in self.live.items()
        }


def test_broker() -> None:
    began = time.monotonic()
    run_machine(BrokerMachine, max(1, STEPS // _EACH), steps=_EACH)
    record("broker-model", STEPS, 0, time.monotonic() - began)
