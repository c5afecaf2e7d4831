"""The verbs of gRPC, each a method of the service in `tamis.proto`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from urllib.parse import unquote

from google.protobuf.message import Message

from tamis.broker import metrics
from tamis.broker.access.caller import PUBLISHER, SUBSCRIBER, AccessError, Caller
from tamis.broker.matching.notification_reader import Page
from tamis.broker.notification_body import parse_body
from tamis.errors import BrokerError, TamisError
from tamis.language.dialects import NATIVE
from tamis.service.context import ServiceContext
from tamis.service.routes.subscription_routes import subscription_id
from tamis.service.rpc import messages
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.status import Context, details
from tamis.store.subscription_snapshot import Id

_MOST = 1000  # notifications that are read at once, and subscriptions in a page
_SILENCE = 15.0  # seconds after which a stream looks whether its caller still may read
_UNDER_WAY = 64  # groups of a stream that wait for their answer
_INSIDE = 500  # from this status on it is not a mistake of the caller


class GrpcVerbs:
    """The verbs, on the broker that the HTTP routes use."""

    def __init__(self, server: ServiceContext) -> None:
        self._server, self._broker = server, server.broker

    def _caller(self, context: Context) -> Caller:
        """Who calls: the holder of the key in the metadata, or nobody known."""
        return self._server.holder(_authorization(context))

    def admit(self, request: Message, context: Context) -> None:
        """Refuse a caller who is too fast: requests over HTTP and gRPC count together."""
        buckets = self._server.rates.of(_host(context.peer()), _authorization(context))
        if buckets is not None:
            buckets.admit(request.ByteSize())

    def _id(self, written: str) -> Id:
        return subscription_id(self._server, written)

    # -- events ----------------------------------------------------------------------------------

    async def publish(self, request: pb.PublishRequest, context: Context) -> pb.PublishResponse:
        caller = self._caller(context)
        asked = self._broker.publish(messages.events_of(request), caller)
        return messages.receipt_of(await asyncio.wrap_future(asked))

    async def publish_stream(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> AsyncIterator[pb.PublishResponse]:
        """Groups are handed to the sequencer as they come; their answers wait in order."""
        answers: asyncio.Queue[asyncio.Future[pb.PublishResponse] | None] = asyncio.Queue(
            _UNDER_WAY
        )

        async def take() -> None:
            async for request in requests:
                await answers.put(asyncio.ensure_future(self._answer(request, context)))
                await asyncio.sleep(0)  # the group is handed over before the next one is read
            await answers.put(None)

        taking = asyncio.ensure_future(take())
        try:
            while (answer := await _next_of(answers, taking)) is not None:
                yield await answer
        finally:
            taking.cancel()

    async def _answer(self, request: pb.PublishRequest, context: Context) -> pb.PublishResponse:
        try:
            self.admit(request, context)
            return await self.publish(request, context)
        except (TamisError, UnicodeEncodeError) as why:
            found = details(why)
            if found.status in (401, 403) or found.status >= _INSIDE:
                raise
            return messages.refusal_of(found)

    # -- subscriptions ---------------------------------------------------------------------------

    async def subscribe(
        self, request: pb.SubscribeRequest, context: Context
    ) -> pb.SubscribeResponse:
        # In a thread: the host of a sink is resolved.
        asked = await asyncio.to_thread(
            partial(
                self._broker.subscribe,
                request.condition,
                caller=self._caller(context),
                id=request.id if request.HasField("id") else None,
                lease=messages.lease_of(request),
                language=request.language if request.HasField("language") else NATIVE,
                name=request.name if request.HasField("name") else None,
                sink=messages.sink_of(request),
                metadata=messages.metadata_of(request),
                request_key=request.request_key if request.HasField("request_key") else None,
            )
        )
        lease = await asyncio.wrap_future(asked)
        return pb.SubscribeResponse(
            id=str(lease.id), ticket=lease.ticket, until=lease.until, secret=lease.secret
        )

    async def show(self, request: pb.ShowRequest, context: Context) -> pb.Subscription:
        found = await asyncio.to_thread(
            partial(
                self._broker.subscription,
                self._id(request.id),
                ticket=_ticket(request),
                caller=self._caller(context),
            )
        )
        return messages.subscription_of(found)

    async def list(self, request: pb.ListRequest, context: Context) -> pb.ListResponse:
        caller = self._caller(context)
        most = request.most or 100
        if not 1 <= most <= _MOST:
            raise BrokerError(f"most: is from 1 to {_MOST:,}, not {most:,}")
        if caller.name is None and not caller.is_admin:
            return pb.ListResponse()
        owner = request.owner if request.HasField("owner") else None
        if owner is not None and not caller.owns(owner):
            raise AccessError("only an admin may list the subscriptions of another owner")
        found = await asyncio.to_thread(
            partial(
                self._broker.state.subscriptions,
                owner if caller.is_admin else caller.name,
                containing=request.q if request.HasField("q") else None,
                after=self._id(request.cursor) if request.HasField("cursor") else None,
                most=most,
            )
        )
        return pb.ListResponse(
            subscriptions=map(messages.subscription_of, found),
            cursor=str(found[-1].id) if len(found) == most else None,
        )

    async def update(self, request: pb.UpdateRequest, context: Context) -> pb.Subscription:
        asked = await asyncio.to_thread(
            partial(
                self._broker.update,
                self._id(request.id),
                ticket=_ticket(request),
                caller=self._caller(context),
                condition=request.condition if request.HasField("condition") else None,
                name=request.name if request.HasField("name") else None,
                sink=messages.sink_of(request),
                metadata=messages.metadata_of(request),
            )
        )
        return messages.subscription_of(await asyncio.wrap_future(asked))

    async def renew(self, request: pb.RenewRequest, context: Context) -> pb.Subscription:
        asked = self._broker.renew(
            self._id(request.id),
            messages.lease_of(request),
            ticket=_ticket(request),
            caller=self._caller(context),
        )
        return messages.subscription_of(await asyncio.wrap_future(asked))

    async def cancel(self, request: pb.CancelRequest, context: Context) -> pb.CancelResponse:
        asked = self._broker.cancel(
            self._id(request.id), ticket=_ticket(request), caller=self._caller(context)
        )
        await asyncio.wrap_future(asked)
        return pb.CancelResponse()

    # -- notifications ---------------------------------------------------------------------------

    async def notifications(
        self, request: pb.NotificationsRequest, context: Context
    ) -> AsyncIterator[pb.NotificationGroup]:
        """gRPC takes the next message when the reader has taken those before: nothing piles up."""
        id = self._id(request.subscription) if request.HasField("subscription") else None
        ticket = _ticket(request)
        body = parse_body(request.body) if request.HasField("body") else None

        def read(after: int) -> Page:
            """Who may read is asked for each page: a key may be revoked meanwhile."""
            ids = self._broker.readable(self._caller(context), id, ticket)
            return self._broker.notifications(after, ids, _MOST, body=body)

        waiting = self._server.waiting
        after = request.after if request.HasField("after") else self._broker.matching.matched - 1
        # The reader knows now that it is heard, and from where on.
        yield pb.NotificationGroup(cursor=after)
        with metrics.OPEN_STREAMS.track_inprogress():
            while not waiting.closing:
                wake = waiting.next_wake()
                page = await asyncio.to_thread(read, after)
                for group in messages.groups_of(page):
                    yield group
                after = page.cursor
                if not page.notifications:
                    await waiting.wait(wake, _SILENCE)

    # -- questions -------------------------------------------------------------------------------

    async def check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        self._caller(context).require(SUBSCRIBER)
        language = request.language if request.HasField("language") else NATIVE
        await asyncio.to_thread(self._broker.check, request.condition, language)
        return pb.CheckResponse()

    async def explain(self, request: pb.ExplainRequest, context: Context) -> pb.ExplainResponse:
        self._caller(context).require(SUBSCRIBER)
        event = messages.json_object(request.event, "event")
        language = request.language if request.HasField("language") else NATIVE
        found = await asyncio.to_thread(self._broker.explain, request.condition, event, language)
        return pb.ExplainResponse(matches=found.holds, explanation=str(found))

    async def match(self, request: pb.MatchRequest, context: Context) -> pb.MatchResponse:
        caller = self._caller(context)
        caller.require(PUBLISHER)
        event = messages.json_object(request.event, "event")
        return messages.ids_of(await asyncio.to_thread(self._broker.dry_run, event, caller))

    async def schema(self, request: pb.SchemaRequest, context: Context) -> pb.SchemaResponse:
        self._caller(context)
        return pb.SchemaResponse(json=json.dumps(self._broker.schema.to_dict()).encode())


def _authorization(context: Context) -> str | None:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            return value
    return None


def _host(peer: str) -> str:
    """The address of a caller; one who came by a Unix socket has none."""
    kind, _, place = unquote(peer).partition(":")
    return place.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else ""


def _ticket(
    request: pb.ShowRequest
    | pb.UpdateRequest
    | pb.RenewRequest
    | pb.CancelRequest
    | pb.NotificationsRequest,
) -> str | None:
    return request.ticket if request.HasField("ticket") else None


async def _next_of(
    answers: asyncio.Queue[asyncio.Future[pb.PublishResponse] | None], taking: asyncio.Future[None]
) -> asyncio.Future[pb.PublishResponse] | None:
    """The next answer; raises what ended the reading of requests."""
    got = asyncio.ensure_future(answers.get())
    both: set[asyncio.Future[Any]] = {got, taking}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not got.done() and taking.exception() is not None:
        got.cancel()
        taking.result()
    return await got
