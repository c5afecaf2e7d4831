"""Changes of live subscriptions: update, renew, cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from tamis.broker.access.caller import Caller
from tamis.broker.access.lease_office import LeaseOffice
from tamis.broker.delivery.sinks import Sink
from tamis.broker.limits import Limits
from tamis.broker.preparation import NAME, ConditionChecker, checked_text, metadata_text
from tamis.broker.sequence.answers import converted
from tamis.broker.sequence.requests import Alter, Row
from tamis.broker.state import StoredSubscription
from tamis.errors import BrokerError, NotFoundError
from tamis.language.dialects import NATIVE
from tamis.model.schema import Schema
from tamis.store.changes import CANCEL, RENEW, UPDATE
from tamis.store.subscription_snapshot import Id

REMOVABLE = ("name", "sink", "metadata")


class SubscriptionEdit(NamedTuple):
    """What to change in a subscription; None: it stays."""

    condition: str | None = None
    name: str | None = None
    sink: Sink | None = None
    metadata: Mapping[str, Any] | None = None
    remove: frozenset[str] = frozenset()  # names of members that it has no more

    def check(self) -> None:
        """Raise `BrokerError` if it contradicts itself."""
        for each in sorted(self.remove):
            if each not in REMOVABLE:
                raise BrokerError(f"{each!r} cannot be removed, only {', '.join(REMOVABLE)}")
            if getattr(self, each) is not None:
                raise BrokerError(f"the {each} is given, and is to be removed: choose one")


class SubscriptionEditor:
    """Changes subscriptions through the sequencer, for those who may."""

    def __init__(
        self,
        submit: Callable[[Alter], Future[StoredSubscription | None]],
        leases: LeaseOffice,
        checker: ConditionChecker,
        limits: Limits,
    ) -> None:
        self._submit, self._leases, self._checker, self._limits = submit, leases, checker, limits

    def update(
        self, id: Id, edit: SubscriptionEdit, ticket: str | None, caller: Caller
    ) -> Future[StoredSubscription]:
        """Change a subscription. The sink is one that may be called."""
        edit.check()
        given = {
            "condition": edit.condition,
            "name": checked_text(edit.name, "the name", NAME),
            "sink": None if edit.sink is None else edit.sink.to_text(),
            "metadata": metadata_text(edit.metadata, self._limits.metadata_bytes),
        }
        changed: Row = {
            name: value for name, value in given.items() if value is not None or name in edit.remove
        }

        def judge(live: StoredSubscription | None, schema: Schema) -> Row:
            known = self._leases.authorised(live, id, ticket, caller)
            if edit.condition is not None:
                self._checker.check(edit.condition, known.language or NATIVE, schema)
            if edit.sink is not None:
                edit.sink.replaces(known.sink)
            row: Row = {**known._asdict(), "kind": UPDATE}
            del row["added"]
            return row | changed

        return converted(self._submit(Alter(id, judge)), _present)

    def renew(
        self, id: Id, until: int | None, ticket: str | None, caller: Caller
    ) -> Future[StoredSubscription]:
        """Set the end of a lease; None: it does not end."""

        def judge(live: StoredSubscription | None, schema: Schema) -> Row:
            self._leases.authorised(live, id, ticket, caller)
            return {"kind": RENEW, "id": id, "until": until}

        return converted(self._submit(Alter(id, judge)), _present)

    def cancel(self, id: Id, ticket: str | None, caller: Caller) -> Future[None]:
        """End a subscription."""

        def judge(live: StoredSubscription | None, schema: Schema) -> Row:
            self._leases.authorised(live, id, ticket, caller)
            return {"kind": CANCEL, "id": id}

        return converted(self._submit(Alter(id, judge)), lambda left: None)


def _present(found: StoredSubscription | None) -> StoredSubscription:
    if found is None:
        raise NotFoundError("the subscription ended meanwhile")
    return found
