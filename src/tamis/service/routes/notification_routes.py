"""Routes of notifications: long poll, and a stream of server-sent events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tamis.broker import metrics
from tamis.broker.access.caller import ANONYMOUS
from tamis.broker.delivery.lease_warnings import EndingLease
from tamis.broker.matching.notification_reader import Notification, Page
from tamis.broker.notification_body import parse_body
from tamis.broker.sequence.clock import iso
from tamis.errors import TamisError
from tamis.service.problems import HttpError
from tamis.service.routes.subscription_routes import subscription_id
from tamis.service.shared_reading import SharedStream
from tamis.store.subscription_snapshot import Id

MOST = 10_000  # notifications in an answer
_NO_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_SILENCE = 15.0  # seconds after which a comment keeps a stream open
_STILL_HERE = b": still here\n\n"


async def notifications(request: Request) -> Response:
    """Notifications after a cursor: all that the caller may read, or those of one subscription.

    `after` is the cursor; the default is the end. `wait` says how many seconds to wait for the
    first one. `body` says how much of the event is shown: event, none, or names of attributes with
    commas between; the default is what the subscription asks for. With `Accept: text/event-stream`,
    the answer is a stream that goes on.
    """
    server = request.app.state.server
    given = request.path_params.get("id")
    ticket = request.headers.get("tamis-ticket")
    id = None if given is None else subscription_id(server, given)
    # In a thread: the database is asked.
    reader = await run_in_threadpool(_Reader, server, request, id, ticket)
    after = _number(request, "after", default=server.broker.matching.matched - 1)
    if "text/event-stream" in request.headers.get("accept", ""):
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isdecimal() and len(last) <= 18 else after
        await reader.page(after, 1)  # a cursor that was trimmed is refused here
        return StreamingResponse(
            _counted(_stream(reader, after)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    most = min(_number(request, "most", default=1000), MOST)
    if most < 1:
        raise HttpError(400, "'most' must be at least 1")
    until = time.monotonic() + min(
        float(_number(request, "wait", default=0)), server.settings.longest_wait.total_seconds()
    )
    while True:
        wake = server.waiting.next_wake()
        page = await reader.page(after, most)
        left = until - time.monotonic()
        if page.notifications or left <= 0 or server.waiting.closing:
            return _answer(page)
        after = page.cursor
        await server.waiting.wait(wake, left)


class _Reader:
    """Who reads, and which subscriptions: those of an owner may become more meanwhile."""

    def __init__(self, server: Any, request: Request, id: Id | None, ticket: str | None) -> None:
        self.server, self._request, self.id, self._ticket = server, request, id, ticket
        written = request.query_params.get("body")
        self.body = None if written is None else parse_body(written)
        self._caller = ANONYMOUS
        self._warned = 0  # how many warnings there were when it last asked
        self.ids()  # refuses who may not read

    def ids(self) -> list[Id] | None:
        """Asked for each page: a key may be revoked meanwhile."""
        self._caller = self.server.present_caller(self._request)
        found: list[Id] | None = self.server.broker.readable(self._caller, self.id, self._ticket)
        return found

    async def page(self, after: int, most: int) -> Page:
        page: Page = await run_in_threadpool(self._read, after, most)
        return page

    def _read(self, after: int, most: int) -> Page:
        page: Page = self.server.broker.notifications(after, self.ids(), most, body=self.body)
        return page

    def warnings(self) -> list[EndingLease]:
        """The warnings of the reader since it last asked."""
        found: list[EndingLease]
        self._warned, found = self.server.broker.webhooks.warnings.since(self._warned)
        if self.id is not None:
            return [each for each in found if each.id == self.id]
        return [each for each in found if self._caller.owns(each.owner)]


async def _stream(reader: _Reader, after: int) -> AsyncIterator[bytes]:
    """Server-sent events; the id of each is the cursor after it."""
    yield b": tamis\n\n"
    waiting = reader.server.waiting
    while not waiting.closing:
        wake = waiting.next_wake()
        try:
            page = await reader.page(after, 1000)
            warnings = reader.warnings()
        except TamisError:  # the answer has begun; coming back tells what it was
            return
        if warnings:
            yield _endings(warnings)
        after, message = page.cursor, b"".join(_events(page))
        del page  # a slow reader holds the message alone
        if message:
            yield message
        elif reader.id is not None:
            try:
                async with reader.server.readings.joined(
                    reader.id, after, reader.body, _message
                ) as stream:
                    async for each in _shared(reader, stream):
                        yield each
            except TamisError:
                return
            after = stream.cursor  # it goes on alone, until it has caught up again
        else:
            before = time.monotonic()
            await waiting.wait(wake, _SILENCE)
            if time.monotonic() - before >= _SILENCE:
                yield _STILL_HERE


async def _shared(reader: _Reader, stream: SharedStream) -> AsyncIterator[bytes]:
    """A stream of one subscription that has caught up: it reads together with the others."""
    looked, ended = time.monotonic(), False
    while not ended:
        ended = stream.ended  # then what waits is the last
        message = await stream.take(_SILENCE) + _endings(reader.warnings())
        if time.monotonic() - looked >= _SILENCE:
            await run_in_threadpool(reader.ids)  # the reader may have lost the right
            message = message or _STILL_HERE
            looked = time.monotonic()
        if message:
            yield message


async def _counted(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with metrics.OPEN_STREAMS.track_inprogress():
        async for each in stream:
            yield each


def _endings(warnings: list[EndingLease]) -> bytes:
    return b"".join(
        b"event: lease-ending\ndata: "
        + msgspec.json.encode({"subscription": each.id, "until": iso(each.until)})
        + b"\n\n"
        for each in warnings
    )


def _events(page: Page) -> list[bytes]:
    """All notifications of an event come before its number is the cursor."""
    found = []
    for at, each in enumerate(page.notifications):
        last = at + 1 == len(page.notifications) or (
            page.notifications[at + 1].sequence != each.sequence
        )
        found.append(_message(each, last=last))
    return found


def _message(each: Notification, *, last: bool = True) -> bytes:
    """A server-sent event. The last one of an event has its number: the cursor after it."""
    cursor = f"id: {each.sequence}\n" if last else ""
    return f"{cursor}event: notification\ndata: ".encode() + _shown(each) + b"\n\n"


def _shown(each: Notification) -> bytes:
    body = {
        "sequence": each.sequence,
        "subscription": each.subscription,
        "time": None if each.time is None else iso(each.time),
        "event": None if each.event is None else msgspec.Raw(each.event.encode()),
    }
    # A line break would end the data. Within JSON strings they are escaped.
    return msgspec.json.encode(body).translate(_NO_BREAKS)


def _answer(page: Page) -> Response:
    rows = b",".join(_shown(each) for each in page.notifications)
    body = b'{"notifications":[' + rows + b'],"cursor":' + str(page.cursor).encode() + b"}"
    return Response(body, media_type="application/json")


def _number(request: Request, name: str, default: int) -> int:
    written = request.query_params.get(name)
    if written is None:
        return default
    if written == "-1":
        return -1
    if not written.isdecimal() or len(written) > 18:
        raise HttpError(400, f"{name!r} must be a whole number, not {written!r}")
    return int(written)


routes = [
    Route("/v1/notifications", notifications, methods=["GET"]),
    Route("/v1/subscriptions/{id}/notifications", notifications, methods=["GET"]),
]
