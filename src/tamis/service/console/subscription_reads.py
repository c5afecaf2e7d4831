"""Reads for the pages of subscriptions and of the matcher."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.requests import Request

from tamis.broker.access.caller import ADMIN
from tamis.broker.subscription_query import Order, SubscriptionQuery
from tamis.broker.subscription_search import search_part
from tamis.errors import BrokerError
from tamis.service.console.session_routes import PREFIX, signed_in_caller
from tamis.service.routes.subscription_routes import (
    SubscriptionAnswer,
    shown_subscription,
    subscription_id,
)
from tamis.store.subscription_snapshot import Id

router = APIRouter(prefix=PREFIX, include_in_schema=False)
_PATIENCE = 0.05  # seconds of a search, after which it is answered with what was found
Cursor = Annotated[str | None, Query(max_length=200)]


class FoundSubscriptions(BaseModel):
    """A page of subscriptions, as the console lists them."""

    subscriptions: list[SubscriptionAnswer]
    cursor: str | None = Field(description="where to go on; null at the end")
    looked: int = Field(description="rows that a search has looked through")
    live: int = Field(description="live subscriptions that the caller may see")


@router.get("/subscriptions")
def search(
    request: Request,
    q: str | None = None,
    order: Order = "newest",
    cursor: Cursor = None,
    most: Annotated[int, Query(ge=1, le=200)] = 50,
) -> FoundSubscriptions:
    """Some of the caller's live subscriptions, in an order; those of all owners for an admin.

    A search that takes long is answered in parts: fewer than `most`, with a cursor.
    """
    caller, server = signed_in_caller(request), request.app.state.server
    owner = None if caller.is_admin else caller.name
    until, after = _place(server, cursor)
    asked = SubscriptionQuery(owner, q or None, order, after, until)
    state = server.broker.state
    part = search_part(state, asked, most, _PATIENCE)
    return FoundSubscriptions(
        subscriptions=[shown_subscription(each) for each in part.found],
        cursor=None if part.rest is None else f"{part.rest.until or 0}~{part.rest.after}",
        looked=part.looked,
        live=state.count() if caller.is_admin else state.count_of(owner),
    )


@router.get("/position")
def position(request: Request) -> dict[str, int]:
    """Where the log begins and ends, and up to where it is matched."""
    signed_in_caller(request)
    broker = request.app.state.server.broker
    log, matching = broker.log, broker.matching
    return {"begin": log.begin, "end": log.end, "matched": matching.matched}


@router.get("/subscriptions/{id}/plan")
def plan_of(request: Request, id: str) -> dict[str, Any]:
    """Where the matcher keeps a subscription, and what other places would cost."""
    caller, server = signed_in_caller(request), request.app.state.server
    place = subscription_id(server, id)
    server.broker.subscription(place, caller=caller)
    left_out = server.broker.matching.left_out.get(place)
    if left_out is not None:
        return {"left_out": left_out, "choices": []}
    return {"choices": server.broker.matching.plan(place).to_dict()["choices"]}


@router.get("/matcher")
def matcher(request: Request) -> dict[str, Any]:
    """The plan of the matcher, for admins."""
    signed_in_caller(request).require(ADMIN)
    found: dict[str, Any] = request.app.state.server.broker.matching.plan().to_dict()
    return found


def _place(server: Any, cursor: str | None) -> tuple[int | None, Id | None]:
    """Where a page begins: when a lease ends, and the id."""
    if cursor is None:
        return None, None
    until, mark, id = cursor.partition("~")
    if not mark or not until.isdecimal() or len(until) > 18:
        raise BrokerError(f"the cursor must be one that a page had, not {cursor!r}")
    return int(until), subscription_id(server, id)
