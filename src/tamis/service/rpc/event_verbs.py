"""The verbs of gRPC that publish events, and show them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

import msgspec

from tamis.broker.access.caller import PUBLISHER
from tamis.broker.cloud_events.write_cloud_event import cloud_event, stored_event
from tamis.broker.sequence.requests import Receipt
from tamis.errors import BrokerError, TamisError
from tamis.service.context import LARGE
from tamis.service.rpc import messages
from tamis.service.rpc import tamis_pb2 as pb
from tamis.service.rpc.status import Context, details
from tamis.service.rpc.verb_group import VerbGroup

_UNDER_WAY = 64  # groups of a stream that wait for their answer
_INSIDE = 500  # from this status on it is not a mistake of the caller


class EventVerbs(VerbGroup):
    """Publish events, alone or as a stream of groups; show one."""

    async def publish(self, request: pb.PublishRequest, context: Context) -> pb.PublishResponse:
        return messages.receipt_of(await asyncio.wrap_future(await self._submit(request, context)))

    async def _submit(self, request: pb.PublishRequest, context: Context) -> Future[Receipt]:
        """Hand events to the sequencer. Many are read in a thread."""
        caller = await self._caller(context)

        def submit() -> Future[Receipt]:
            return self._broker.publish(messages.events_of(request), caller)

        return submit() if request.ByteSize() < LARGE else await self._server.aside(submit)

    async def publish_stream(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> AsyncIterator[pb.PublishResponse]:
        """Groups are handed to the sequencer as they come, in order; so are their answers."""
        answers: asyncio.Queue[asyncio.Future[pb.PublishResponse] | None] = asyncio.Queue(
            _UNDER_WAY
        )

        async def take() -> None:
            async for request in requests:
                handed = asyncio.ensure_future(self._handed(request, context))
                await asyncio.wait([handed])  # before the next one is read
                await answers.put(asyncio.ensure_future(_answer(handed)))
            await answers.put(None)

        taking = asyncio.ensure_future(take())
        try:
            while (answer := await _next_of(answers, taking)) is not None:
                yield await answer
        finally:
            taking.cancel()

    async def _handed(self, request: pb.PublishRequest, context: Context) -> Future[Receipt]:
        await self.admit(request, context)
        return await self._submit(request, context)

    async def show_event(
        self, request: pb.ShowEventRequest, context: Context
    ) -> pb.ShowEventResponse:
        (await self._caller(context)).require(PUBLISHER)
        if request.number < 0:
            raise BrokerError(f"number: is a sequence number, not {request.number}")
        event = await asyncio.to_thread(stored_event, self._broker.log, request.number)
        if request.cloud_event:
            return pb.ShowEventResponse(json=msgspec.json.encode(cloud_event(event)))
        return pb.ShowEventResponse(json=str(event.text).encode())


async def _answer(handed: asyncio.Future[Future[Receipt]]) -> pb.PublishResponse:
    """The answer to a group of a stream; mistakes of the caller do not end the stream."""
    try:
        return messages.receipt_of(await asyncio.wrap_future(handed.result()))
    except (TamisError, UnicodeEncodeError) as why:
        found = details(why)
        if found.status in (401, 403) or found.status >= _INSIDE:
            raise
        return messages.refusal_of(found)


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
