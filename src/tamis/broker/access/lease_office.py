"""Leases: what their owners get, and who may act on a subscription."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tamis.broker.access.caller import AccessError, Caller
from tamis.broker.access.tickets import TicketOffice
from tamis.broker.state import KnownRequest, KnownSubscription, State, StoredSubscription
from tamis.errors import NotFoundError
from tamis.store.subscription_snapshot import Id

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Lease(NamedTuple):
    """A subscription as its owner gets it."""

    id: Id
    ticket: str
    until: datetime | None  # None: it does not end
    secret: str | None = None  # that signs its webhooks


class LeaseOffice:
    """Makes leases, and says who may act on a subscription and read its notifications."""

    def __init__(
        self,
        state: State,
        tickets: TicketOffice,
        secrets: Callable[[KnownSubscription], list[str]],
    ) -> None:
        self._state, self.tickets, self._secrets = state, tickets, secrets

    def lease(self, known: KnownRequest, *, with_secret: bool) -> Lease:
        """What a subscriber is answered with."""
        assert known.nonce is not None
        ticket = self.tickets.issue(known.id, known.nonce, known.key_generation)
        until = None if known.until is None else _EPOCH + timedelta(microseconds=known.until)
        return Lease(known.id, ticket, until, self.secret(known) if with_secret else None)

    def secret(self, known: KnownRequest) -> str:
        """The secret that signs the webhooks of a subscription."""
        owned = KnownSubscription(known.id, None, known.nonce, known.key_generation)
        return self._secrets(owned)[0]

    def authorised(
        self, live: StoredSubscription | None, id: Id, ticket: str | None, caller: Caller
    ) -> StoredSubscription:
        """The subscription; the same error if it is not live, and if the ticket is wrong."""
        if live is not None:
            if caller.owns(live.owner):
                return live
            if ticket is not None and self.tickets.verify(
                ticket, id, live.nonce, live.key_generation
            ):
                return live
        raise NotFoundError(f"there is no live subscription {id!r} {_with(ticket)}")

    def readable(self, caller: Caller, id: Id | None, ticket: str | None) -> list[Id] | None:
        """The subscriptions whose notifications a caller may read; None: all."""
        if id is not None:
            known = self._state.known(id)
            if known is not None and (
                caller.owns(known.owner)
                or (ticket and self.tickets.verify(ticket, id, known.nonce, known.key_generation))
            ):
                return [id]
            raise NotFoundError(f"there is no subscription {id!r} {_with(ticket)}")
        if caller.is_admin:
            return None
        if caller.name is None:
            raise AccessError(
                "without a key, a caller can read only one subscription, with its ticket"
            )
        return self._state.ids_of(caller.name)


def _with(ticket: str | None) -> str:
    """How a caller has asked. It does not say whether the subscription is there."""
    if ticket is not None:
        return "with this ticket"
    return "for a caller without its ticket (the header Tamis-Ticket) or the key of its owner"
