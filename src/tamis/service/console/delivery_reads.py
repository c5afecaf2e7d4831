"""Reads for the page of deliveries: sinks, what waits for a retry, dead letters."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.requests import Request

from tamis.broker.broker import Broker
from tamis.broker.subscription_query import SubscriptionQuery
from tamis.service.console.session_routes import PREFIX, signed_in_caller
from tamis.service.routes.subscription_routes import (
    SubscriptionAnswer,
    shown_subscription,
    subscription_id,
)

router = APIRouter(prefix=PREFIX, include_in_schema=False)
_RETRIES = 100  # that are listed
_LOOKED_AT = 1000  # of those that come first, of all owners
_FAR = 2**62  # microseconds: every retry is due before


class ListedSink(BaseModel):
    """A subscription that sends its notifications somewhere."""

    subscription: SubscriptionAnswer
    waiting: int
    dead: int


class WaitingRetry(BaseModel):
    subscription: int | str
    sequence: int | None
    attempts: int
    due: datetime
    error: str


class DeliveryAnswer(BaseModel):
    """What is sent, what failed and is tried again, and how much was given up."""

    sinks: list[ListedSink]
    cursor: int | str | None
    retries: list[WaitingRetry]
    waiting: int
    dead: int


@router.get("/delivery")
def delivery(
    request: Request,
    after: str | None = None,
    most: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeliveryAnswer:
    """The sinks of the caller, and the deliveries that wait; those of all owners for an admin."""
    caller, server = signed_in_caller(request), request.app.state.server
    broker: Broker = server.broker
    owner = None if caller.is_admin else caller.name
    place = None if after is None else subscription_id(server, after)
    outbox = broker.webhooks.outbox
    waiting, dead = dict(outbox.counts()), dict(outbox.dead_counts())
    found = broker.state.search(SubscriptionQuery(owner, after=place, with_sink=True), most)
    retries = outbox.due(_FAR, _LOOKED_AT)
    if not caller.is_admin:
        owners = broker.state.owners_among(list({*waiting, *dead}))
        waiting = {id: many for id, many in waiting.items() if owners.get(id) == owner}
        dead = {id: many for id, many in dead.items() if owners.get(id) == owner}
        retries = [each for each in retries if each.subscription in waiting]
    return DeliveryAnswer(
        sinks=[
            ListedSink(
                subscription=shown_subscription(each),
                waiting=waiting.get(each.id, 0),
                dead=dead.get(each.id, 0),
            )
            for each in found
            if _goes_somewhere(each.sink)
        ],
        cursor=found[-1].id if len(found) == most else None,
        retries=[_retry(each) for each in retries[:_RETRIES]],
        waiting=sum(waiting.values()),
        dead=sum(dead.values()),
    )


def _goes_somewhere(sink: str | None) -> bool:
    """Whether a sink is a webhook or a topic, and not only the form of what readers get."""
    return sink is not None and not {"url", "kafka"}.isdisjoint(json.loads(sink))


def _retry(each: Any) -> WaitingRetry:
    return WaitingRetry(
        subscription=each.subscription,
        sequence=each.sequence if each.sequence >= 0 else None,
        attempts=each.attempts,
        due=datetime.fromtimestamp(each.due / 1e6, UTC),
        error=each.error,
    )
