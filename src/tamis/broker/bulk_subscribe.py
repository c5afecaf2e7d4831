"""Many subscriptions in one request: checked as a table, and put into the log as one.

A subscribe of its own parses its condition alone and makes its rows one by one. Here a table of
conditions is compiled at once, which is ten times as fast.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.broker.access.caller import ANONYMOUS, SUBSCRIBER, AccessError, Caller
from tamis.broker.access.lease_office import LeaseOffice
from tamis.broker.access.tickets import NONCE
from tamis.broker.delivery.sinks import Sink
from tamis.broker.limits import Limits
from tamis.broker.preparation import KEY, NAME, ConditionChecker, checked_text, metadata_text
from tamis.broker.sequence.answers import converted
from tamis.broker.sequence.requests import Row, SubscribeMany
from tamis.broker.state import KnownRequest
from tamis.errors import BrokerError, TamisError, counted
from tamis.language.dialects import NATIVE
from tamis.model.schema import Schema
from tamis.store.changes import ALL, SUBSCRIBE, change_schema
from tamis.store.subscription_snapshot import Id

LONGEST = 366 * 86_400_000_000  # microseconds of a lease
_HOSTS = 1000  # different sinks in one request: each is resolved


class BulkSubscription(NamedTuple):
    """One of many subscriptions to add."""

    condition: str
    id: Id | None = None  # for logs with text ids; elsewhere the broker chooses it
    until: int | None = None  # microseconds since 1970; None: the lease does not end
    owner: str | None = None  # an admin may subscribe for others; None: the caller
    name: str | None = None
    language: str = NATIVE
    sink: Sink | None = None
    metadata: Any = None  # a mapping


class BulkRefusal(NamedTuple):
    """A subscription that was refused."""

    row: int
    reason: str


class BulkLease(NamedTuple):
    """A subscription of many, as its owner gets it."""

    row: int
    id: Id
    ticket: str
    until: int | None
    secret: str | None


class BulkAnswer(NamedTuple):
    """What became of many subscriptions."""

    leases: list[BulkLease]
    refused: list[BulkRefusal]


class BulkRefusedError(BrokerError):
    """Many subscriptions were refused, since some of them are wrong."""

    def __init__(self, refused: list[BulkRefusal], rows: int) -> None:
        first = refused[0]
        every = counted(rows, "subscription")
        many = counted(len(refused), f"of {every} is wrong", f"of {every} are wrong")
        super().__init__(f"{many}, so none was added; row {first.row}: {first.reason}")
        self.refused = refused


class BulkSubscriber:
    """Adds many subscriptions at once."""

    def __init__(
        self,
        ids: str,
        limits: Limits,
        checker: ConditionChecker,
        leases: LeaseOffice,
        accept: Callable[[Sink], Sink],
        clock: Callable[[], int],
    ) -> None:
        self._ids, self._limits, self._checker, self._leases = ids, limits, checker, leases
        self._accept, self._clock = accept, clock

    def subscribe(
        self,
        given: Sequence[BulkSubscription],
        schema: Schema,
        submit: Callable[[SubscribeMany], Future[list[KnownRequest]]],
        caller: Caller = ANONYMOUS,
        *,
        together: bool = False,
        request_key: str | None = None,
    ) -> Future[BulkAnswer]:
        """Add subscriptions: all that are right, or with `together` all or none.

        A second call with the same `request_key` adds nothing, and gets the same answer.
        """
        caller.require(SUBSCRIBER)
        most = self._limits.bulk_subscriptions
        if len(given) > most:
            raise BrokerError(
                f"{len(given):,} subscriptions are more than the {most:,} that one request may "
                "have; send them in several"
            )
        rows, reasons = self._rows(
            given, caller, checked_text(request_key, "the key of the request", KEY)
        )
        reasons |= self._checker.check_many(
            {at: (row["condition"], row["language"] or NATIVE) for at, row in rows.items()}, schema
        )
        refused = [BulkRefusal(at, reasons[at]) for at in sorted(reasons)]
        if refused and together:
            raise BulkRefusedError(refused, len(given))
        kept = [at for at in rows if at not in reasons]
        table = pa.Table.from_pylist([rows[at] for at in kept], change_schema(self._ids, ALL))
        conditions = [(rows[at]["condition"], rows[at]["language"] or NATIVE) for at in kept]
        request = SubscribeMany(
            table,
            schema,
            lambda later: self._recheck(conditions, later),
            None if caller.is_admin else self._limits.subscriptions,
            keyed=request_key is not None,
        )

        def answer(known: list[KnownRequest]) -> BulkAnswer:
            sinks = [given[at].sink for at in kept]
            with_secret = [sink is not None and sink.url is not None for sink in sinks]
            leases = [
                BulkLease(
                    at,
                    each.id,
                    self._leases.tickets.issue(each.id, each.nonce or b"", each.key_generation),
                    each.until,
                    self._leases.secret(each) if secret else None,
                )
                for at, each, secret in zip(kept, known, with_secret, strict=True)
            ]
            return BulkAnswer(leases, refused)

        return converted(submit(request), answer)

    def _rows(
        self, given: Sequence[BulkSubscription], caller: Caller, key: str | None
    ) -> tuple[dict[int, Row], dict[int, str]]:
        """The rows of the log by their places, and why others are refused."""
        rows: dict[int, Row] = {}
        reasons: dict[int, str] = {}
        accepted: dict[str, Sink] = {}
        nonces = secrets.token_bytes(NONCE * len(given))
        now = self._clock()
        taken: set[Id] = set()
        for at, each in enumerate(given):
            try:
                row = self._row(each, caller, accepted)
                if row["id"] is not None and row["id"] in taken:
                    raise BrokerError(f"the id {row['id']!r} occurs twice")
                if each.until is not None and not now < each.until <= now + LONGEST:
                    raise BrokerError("the lease has ended, or is longer than 366 days")
            except TamisError as why:
                reasons[at] = str(why)
                continue
            taken.add(row["id"])
            row["nonce"] = nonces[NONCE * at : NONCE * (at + 1)]
            row["request_key"] = None if key is None else f"{key}/{at}"
            rows[at] = row
        return rows, reasons

    def _row(self, each: BulkSubscription, caller: Caller, accepted: dict[str, Sink]) -> Row:
        if each.owner is not None and not caller.owns(each.owner):
            raise AccessError("only an admin may subscribe for another owner")
        if self._ids == "text" and not isinstance(each.id, str):
            raise BrokerError("this log has text ids; a subscribe needs an id")
        sink = None
        if each.sink is not None:
            place = each.sink.url or each.sink.topic
            if place is not None and place not in accepted:
                if len(accepted) >= _HOSTS:
                    raise BrokerError(f"there are more than {_HOSTS:,} different sinks")
                accepted[place] = self._accept(each.sink)
            sink = each.sink.to_text()
        return {
            "kind": SUBSCRIBE,
            "id": checked_text(str(each.id), "the id", NAME) if self._ids == "text" else None,
            "condition": checked_text(each.condition, "the condition"),
            "until": each.until,
            "owner": checked_text(each.owner or caller.name, "the owner", NAME),
            "name": checked_text(each.name, "the name", NAME),
            "language": None if each.language == NATIVE else each.language,
            "sink": sink,
            "key_generation": self._leases.tickets.generation,
            "metadata": metadata_text(each.metadata, self._limits.metadata_bytes),
        }

    def _recheck(self, conditions: Sequence[tuple[str, str]], schema: Schema) -> None:
        wrong = self._checker.check_many(dict(enumerate(conditions)), schema)
        for reason in wrong.values():
            raise BrokerError(f"the schema was extended meanwhile: {reason}; try again")
