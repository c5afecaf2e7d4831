"""Routes of dead letters: webhooks that were given up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.requests import Request

from tamis.broker.access.caller import AccessError, Caller
from tamis.broker.broker import Broker
from tamis.broker.delivery.outbox import DeadDelivery
from tamis.errors import NotFoundError
from tamis.service.routes.subscription_routes import ReplayAnswer, Ticket

router = APIRouter(prefix="/v1/dead-letters", tags=["webhooks"])


class DeadLetter(BaseModel):
    """A notification that no attempt could deliver."""

    id: int
    subscription: int | str
    sequence: int | None = Field(
        description="of the event; null for the announcement that a lease ends"
    )
    attempts: int
    error: str
    moment: datetime


class DeadLetterPage(BaseModel):
    dead_letters: list[DeadLetter]
    cursor: int | None = Field(description="for the next page, as `after`; null on the last page")


@router.get("")
def list_dead_letters(
    request: Request,
    after: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    most: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DeadLetterPage:
    """The caller's dead letters, the oldest first; those of all owners for an admin."""
    server = request.app.state.server
    found = letters_of(server.broker, server.caller(request), after, most)
    last = found[-1].id if len(found) == most else None
    return DeadLetterPage(dead_letters=[_shown(each) for each in found], cursor=last)


@router.post("/{id}/retry")
def retry(request: Request, id: str, ticket: Ticket = None) -> ReplayAnswer:
    """Try a dead letter again, from the first attempt on."""
    server = request.app.state.server
    number = int(id) if id.isdecimal() and len(id) <= 18 else -1
    caller = server.caller(request)
    return ReplayAnswer(replayed=retry_letter(server.broker, caller, number, ticket))


def letters_of(broker: Broker, caller: Caller, after: int, most: int) -> list[DeadDelivery]:
    """The dead letters of a caller, the oldest first; those of all owners for an admin."""
    if caller.name is None and not caller.is_admin:
        raise AccessError("only owners can list dead letters: call with a key")
    return broker.webhooks.dead_letters(after, most, None if caller.is_admin else caller.name)


def retry_letter(broker: Broker, caller: Caller, number: int, ticket: str | None) -> int:
    """Try a dead letter again, for those who may read its notification; how many there were."""
    found = broker.webhooks.outbox.dead_letter(number)
    missing = NotFoundError(f"there is no dead letter {number} of the caller")
    if found is None:
        raise missing
    try:
        broker.readable(caller, found.subscription, ticket)
    except NotFoundError:
        raise missing from None
    return broker.webhooks.retry(number)


def _shown(each: DeadDelivery) -> DeadLetter:
    return DeadLetter(
        id=each.id,
        subscription=each.subscription,
        sequence=each.sequence if each.sequence >= 0 else None,
        attempts=each.attempts,
        error=each.error,
        moment=datetime.fromtimestamp(each.moment / 1e6, UTC),
    )
