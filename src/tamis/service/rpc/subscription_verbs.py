"""The verbs of gRPC about subscriptions and their notifications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from tamis.broker import metrics
from tamis.broker.access.caller import AccessError, Caller
from tamis.broker.matching.notification_reader import Page
from tamis.broker.notification_body import parse_body
from tamis.broker.subscription_query import SubscriptionQuery
from tamis.broker.subscription_search import find_subscriptions
from tamis.errors import BrokerError
from tamis.language.dialects import NATIVE
from tamis.service.rpc import messages
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.status import Context
from tamis.service.rpc.verb_group import VerbGroup, authorization, given
from tamis.store.subscription_snapshot import Id

_MOST = 1000  # notifications that are read at once, and subscriptions in a page
_SILENCE = 15.0  # seconds after which a stream looks whether its caller still may read


class SubscriptionVerbs(VerbGroup):
    """Subscribe, show, list, change, renew, cancel; be notified."""

    async def subscribe(
        self, request: pb.SubscribeRequest, context: Context
    ) -> pb.SubscribeResponse:
        caller = await self._caller(context)
        sink = messages.sink_of(request)
        # The host of a sink is resolved.
        in_thread: Any = asyncio.to_thread if sink is None else self._server.ask
        asked = await in_thread(
            self._broker.subscribe,
            request.condition,
            caller=caller,
            id=given(request, "id"),
            lease=messages.lease_of(request),
            language=given(request, "language") or NATIVE,
            name=given(request, "name"),
            sink=sink,
            metadata=messages.metadata_of(request),
            request_key=given(request, "request_key"),
        )
        lease = await asyncio.wrap_future(asked)
        return pb.SubscribeResponse(
            id=str(lease.id), ticket=lease.ticket, until=lease.until, secret=lease.secret
        )

    async def subscribe_many(
        self, request: pb.SubscribeManyRequest, context: Context
    ) -> pb.SubscribeManyResponse:
        caller = await self._caller(context)
        read = await self._server.aside(messages.bulk_of, request, self._broker.now())
        if read.wrong and request.together:
            at, why = next(iter(read.wrong.items()))
            raise BrokerError(f"subscription {at}: {why}; none was added")
        asked = await self._server.ask(
            self._broker.subscribe_many,
            list(read.right.values()),
            caller,
            together=request.together,
            request_key=given(request, "request_key"),
        )
        answer = await asyncio.wrap_future(asked)
        return await self._server.aside(messages.outcomes_of, answer, read)

    async def show(self, request: pb.ShowRequest, context: Context) -> pb.Subscription:
        found = await asyncio.to_thread(
            partial(
                self._broker.subscription,
                self._id(request.id),
                ticket=given(request, "ticket"),
                caller=await self._caller(context),
            )
        )
        return messages.subscription_of(found)

    async def list(self, request: pb.ListRequest, context: Context) -> pb.ListResponse:
        caller = await self._caller(context)
        most = request.most or 100
        if not 1 <= most <= _MOST:
            raise BrokerError(f"most: is from 1 to {_MOST:,}, not {most:,}")
        if caller.name is None and not caller.is_admin:
            return pb.ListResponse()
        owner = given(request, "owner")
        if owner is not None and not caller.owns(owner):
            raise AccessError("only an admin may list the subscriptions of another owner")
        query = SubscriptionQuery(
            owner if caller.is_admin else caller.name,
            given(request, "q") or None,
            after=self._id(request.cursor) if request.HasField("cursor") else None,
        )
        found = await asyncio.to_thread(find_subscriptions, self._broker.state, query, most)
        return pb.ListResponse(
            subscriptions=map(messages.subscription_of, found),
            cursor=str(found[-1].id) if len(found) == most else None,
        )

    async def update(self, request: pb.UpdateRequest, context: Context) -> pb.Subscription:
        sink = messages.sink_of(request)
        in_thread: Any = asyncio.to_thread if sink is None else self._server.ask
        asked = await in_thread(
            self._broker.update,
            self._id(request.id),
            ticket=given(request, "ticket"),
            caller=await self._caller(context),
            condition=given(request, "condition"),
            name=given(request, "name"),
            sink=sink,
            metadata=messages.metadata_of(request),
            remove=request.remove,
        )
        return messages.subscription_of(await asyncio.wrap_future(asked))

    async def renew(self, request: pb.RenewRequest, context: Context) -> pb.Subscription:
        asked = self._broker.renew(
            self._id(request.id),
            messages.lease_of(request),
            ticket=given(request, "ticket"),
            caller=await self._caller(context),
        )
        return messages.subscription_of(await asyncio.wrap_future(asked))

    async def cancel(self, request: pb.CancelRequest, context: Context) -> pb.CancelResponse:
        asked = self._broker.cancel(
            self._id(request.id),
            ticket=given(request, "ticket"),
            caller=await self._caller(context),
        )
        await asyncio.wrap_future(asked)
        return pb.CancelResponse()

    async def notifications(
        self, request: pb.NotificationsRequest, context: Context
    ) -> AsyncIterator[pb.NotificationGroup]:
        """gRPC takes the next message when the reader has taken those before: nothing piles up."""
        id = self._id(request.subscription) if request.HasField("subscription") else None
        ticket, key = given(request, "ticket"), authorization(context)
        body = parse_body(request.body) if request.HasField("body") else None
        warned = 0  # warnings that the reader has got, of all since the start

        def read(after: int) -> tuple[Page, Caller]:
            """Who may read is asked for each page: a key may be revoked meanwhile."""
            caller = self._server.holder(key)
            ids = self._broker.readable(caller, id, ticket)
            return self._broker.notifications(after, ids, _MOST, body=body), caller

        waiting = self._server.waiting
        after = request.after if request.HasField("after") else self._broker.matching.matched - 1
        # The reader knows now that it is heard, and from where on.
        yield pb.NotificationGroup(cursor=after)
        with metrics.OPEN_STREAMS.track_inprogress():
            while not waiting.closing:
                wake = waiting.next_wake()
                page, caller = await asyncio.to_thread(read, after)
                for group in messages.groups_of(page):
                    yield group
                after = page.cursor
                warned, endings = self._endings(warned, caller, id)
                if endings:
                    yield pb.NotificationGroup(cursor=after, endings=endings)
                if not page.notifications:
                    await waiting.wait(wake, _SILENCE)

    def _endings(
        self, warned: int, caller: Caller, id: Id | None
    ) -> tuple[int, Sequence[pb.EndingLease]]:
        """How many warnings there were, and those of a reader since it last asked."""
        warned, found = self._broker.webhooks.warnings.since(warned)
        mine = [
            each for each in found if (caller.owns(each.owner) if id is None else each.id == id)
        ]
        return warned, [messages.ending_of(each) for each in mine]
