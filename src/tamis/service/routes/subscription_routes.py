"""Routes of subscriptions: subscribe, look, change, renew, cancel."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker.access.caller import AccessError
from tamis.broker.delivery.sinks import Sink
from tamis.broker.state import StoredSubscription
from tamis.broker.subscription_query import SubscriptionQuery
from tamis.broker.subscription_search import find_subscriptions
from tamis.errors import BrokerError, NotFoundError
from tamis.language.dialects import NATIVE
from tamis.service.bodies import NDJSON
from tamis.service.routes.bulk_routes import export
from tamis.store.subscription_snapshot import Id

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"])
DAY = 86_400.0
PAGE, LARGEST = 100, 1000  # subscriptions in a page
Ticket = Annotated[
    str | None,
    Header(alias="Tamis-Ticket", description="of the subscription; its owner needs no ticket"),
]
RequestKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=255,
        description="a repeated request with the same key gets the first answer",
    ),
]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TopicRequest(BaseModel, extra="forbid"):
    topic: str = Field(max_length=249)


class SinkRequest(BaseModel, extra="forbid"):
    """Where notifications are sent, and how much of the event they show."""

    url: str | None = Field(None, max_length=2048, description="of a webhook")
    kafka: TopicRequest | None = Field(None, description="a Kafka topic, in place of `url`")
    body: Literal["event", "none"] | list[str] = Field(
        "event", description="the whole event, no event, or these attributes"
    )
    format: Literal["tamis", "cloudevents"] = Field(
        "tamis", description="format of webhook messages"
    )


class NewSubscription(BaseModel, extra="forbid"):
    """What to subscribe to."""

    condition: str
    id: str | None = Field(None, description="only for logs with text ids")
    lease: float | None = Field(
        DAY, gt=0, strict=True, allow_inf_nan=False, description="in seconds; null for no end"
    )
    language: str = NATIVE
    name: str | None = Field(None, max_length=1000)
    sink: SinkRequest | None = None
    metadata: dict[str, Any] | None = None


class SubscriptionChanges(BaseModel, extra="forbid"):
    """What to change. Members that are left out stay as they are; null removes a member."""

    condition: str | None = Field(None, description="which cannot be removed")
    name: str | None = Field(None, max_length=1000)
    sink: SinkRequest | None = Field(None, description="null: nothing is sent any more")
    metadata: dict[str, Any] | None = None

    @property
    def removed(self) -> set[str]:
        """The members that are null."""
        return {name for name in self.model_fields_set if getattr(self, name) is None}


class Renewal(BaseModel, extra="forbid"):
    lease: float | None = Field(
        DAY,
        gt=0,
        strict=True,
        allow_inf_nan=False,
        description="in seconds from now; null for no end",
    )


class LeaseAnswer(BaseModel):
    id: int | str
    ticket: str
    until: datetime | None
    secret: str | None = Field(None, description="signs the webhooks")


class SecretAnswer(BaseModel):
    secret: str


class ReplayAnswer(BaseModel):
    replayed: int


class SubscriptionAnswer(BaseModel):
    """A live subscription."""

    id: int | str
    condition: str
    language: str
    owner: str | None
    name: str | None
    until: datetime | None
    sink: SinkRequest | None
    metadata: dict[str, Any] | None


class SubscriptionPage(BaseModel):
    subscriptions: list[SubscriptionAnswer]
    cursor: int | str | None = Field(description="for the next page; null on the last page")


@router.post("", status_code=201)
async def subscribe(
    request: Request, given: NewSubscription, request_key: RequestKey = None
) -> LeaseAnswer:
    """Subscribe. The ticket is needed to renew, change or cancel; it is shown only here."""
    server = request.app.state.server
    sink = _sink(given.sink)
    caller = server.caller(request)
    # The host of a sink is resolved.
    in_thread = run_in_threadpool if sink is None else server.ask
    asked = await in_thread(
        server.broker.subscribe,
        given.condition,
        caller=caller,
        id=given.id,
        lease=_span(given.lease),
        language=given.language,
        name=given.name,
        sink=sink,
        metadata=given.metadata,
        request_key=request_key,
    )
    lease = await asyncio.wrap_future(asked)
    return LeaseAnswer(**lease._asdict())


@router.get("", response_model=SubscriptionPage)
def list_subscriptions(
    request: Request,
    q: Annotated[str | None, Query(description="text that the condition contains")] = None,
    owner: Annotated[str | None, Query(description="for admins: only this owner")] = None,
    cursor: Annotated[str | None, Query(description="id of the last one that was read")] = None,
    most: Annotated[int | None, Query(ge=1, description="subscriptions in the answer")] = None,
) -> SubscriptionPage | Response:
    """List the caller's live subscriptions. An admin sees those of all owners.

    A page has 100 subscriptions, or `most`, at most 1,000. With `Accept: application/x-ndjson`, the
    answer has all of them, one on each line.
    """
    server = request.app.state.server
    caller = server.caller(request)
    lines = NDJSON in request.headers.get("accept", "")
    if caller.name is None and not caller.is_admin:
        if lines:
            raise AccessError("only owners can export subscriptions: call with a key")
        return SubscriptionPage(subscriptions=[], cursor=None)
    if owner is not None and not caller.owns(owner):
        raise AccessError("only an admin may list the subscriptions of another owner")
    owner = owner if caller.is_admin else caller.name
    after = None if cursor is None else _cursor(server, cursor)
    if lines:
        return export(server, SubscriptionQuery(owner, q or None, after=after), most)
    most = min(most or PAGE, LARGEST)
    query = SubscriptionQuery(owner, q or None, after=after)
    found = find_subscriptions(server.broker.state, query, most)
    last = found[-1].id if len(found) == most else None
    return SubscriptionPage(subscriptions=[shown_subscription(each) for each in found], cursor=last)


@router.get("/{id}")
def show(request: Request, id: str, ticket: Ticket = None) -> SubscriptionAnswer:
    """Show a live subscription."""
    server = request.app.state.server
    caller = server.caller(request)
    return shown_subscription(
        server.broker.subscription(subscription_id(server, id), ticket=ticket, caller=caller)
    )


@router.patch("/{id}")
async def update(
    request: Request, id: str, given: SubscriptionChanges, ticket: Ticket = None
) -> SubscriptionAnswer:
    """Change a live subscription. It keeps its id, its lease and its ticket."""
    server = request.app.state.server
    sink = _sink(given.sink)
    in_thread = run_in_threadpool if sink is None else server.ask
    asked = await in_thread(
        server.broker.update,
        subscription_id(server, id),
        ticket=ticket,
        caller=server.caller(request),
        condition=given.condition,
        name=given.name,
        sink=sink,
        metadata=given.metadata,
        remove=given.removed,
    )
    return shown_subscription(await asyncio.wrap_future(asked))


@router.post("/{id}/renew")
async def renew(
    request: Request, id: str, given: Renewal, ticket: Ticket = None
) -> SubscriptionAnswer:
    """Renew the lease, counted from now."""
    server = request.app.state.server
    renewed = await asyncio.wrap_future(
        server.broker.renew(
            subscription_id(server, id),
            _span(given.lease),
            ticket=ticket,
            caller=server.caller(request),
        )
    )
    return shown_subscription(renewed)


@router.delete("/{id}", status_code=204)
async def cancel(request: Request, id: str, ticket: Ticket = None) -> None:
    """Cancel a live subscription."""
    server = request.app.state.server
    await asyncio.wrap_future(
        server.broker.cancel(
            subscription_id(server, id), ticket=ticket, caller=server.caller(request)
        )
    )


@router.post("/{id}/sink/rotate")
def rotate(request: Request, id: str, ticket: Ticket = None) -> SecretAnswer:
    """Make a new secret for the webhooks. For a day, messages are signed with both."""
    server = request.app.state.server
    place = subscription_id(server, id)
    live = server.broker.subscription(place, ticket=ticket, caller=server.caller(request))
    return SecretAnswer(secret=server.broker.webhooks.rotate(live))


@router.post("/{id}/sink/replay")
def replay(request: Request, id: str, ticket: Ticket = None) -> ReplayAnswer:
    """Retry all dead letters of the subscription."""
    server = request.app.state.server
    place = subscription_id(server, id)
    server.broker.subscription(place, ticket=ticket, caller=server.caller(request))
    return ReplayAnswer(replayed=server.broker.webhooks.replay(place))


def _sink(given: SinkRequest | None) -> Sink | None:
    return None if given is None else Sink.of(given.model_dump(exclude_none=True))


def _span(seconds: float | None) -> timedelta | None:
    # Longer than the broker allows, so that its message says what is allowed.
    return None if seconds is None else timedelta(seconds=min(seconds, 1e9))


def subscription_id(server: Any, written: str) -> Id:
    """An id as the log has it; one of the wrong form is not there."""
    if server.broker.log.ids == "text":
        return written
    if not written.isdecimal() or len(written) > 18:
        raise NotFoundError(f"there is no live subscription {written!r} with this ticket")
    return int(written)


def _cursor(server: Any, written: str) -> Id:
    try:
        return subscription_id(server, written)
    except NotFoundError:
        raise BrokerError(f"the cursor must be one that a page had, not {written!r}") from None


def shown_subscription(found: StoredSubscription) -> SubscriptionAnswer:
    """A live subscription as callers see it."""
    return SubscriptionAnswer(
        id=found.id,
        condition=found.condition,
        language=found.language or NATIVE,
        owner=found.owner,
        name=found.name,
        until=None if found.until is None else _EPOCH + timedelta(microseconds=found.until),
        sink=None if found.sink is None else SinkRequest(**json.loads(found.sink)),
        metadata=None if found.metadata is None else json.loads(found.metadata),
    )
