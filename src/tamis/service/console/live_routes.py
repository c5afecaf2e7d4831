"""The live feed: twice a second what has happened since, and a few of the events themselves.

A stream of all notifications would drown a browser: a thousand events a second with hundreds of
matches each. So the feed counts all and shows some, and its size does not depend on the load.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tamis.broker.access.caller import PUBLISHER, AccessError, Caller
from tamis.broker.broker import Broker
from tamis.broker.matching.notification_reader import NotificationReader, TrimmedError, event_text
from tamis.broker.matching.wanted_ids import WantedIds
from tamis.broker.sequence.clock import iso
from tamis.errors import TamisError
from tamis.service.console.positions import position_of
from tamis.service.console.session_routes import PREFIX, signed_in_caller
from tamis.service.routes.subscription_routes import subscription_id
from tamis.store.log import Log
from tamis.store.pack import appended, microseconds
from tamis.store.subscription_snapshot import Id

PAUSE = 0.5  # seconds between two messages
SHOWN = 20  # events and notifications in a message, at most
TEXT = 2000  # characters of an event that are shown
_SCANNED = 1_000_000  # rows that one message looks at
_OWNED = 5.0  # seconds for which the subscriptions of an owner are remembered


class LiveFeed:
    """What one reader is told. Each look begins where the last one ended.

    The first one counts nothing, and shows what came last before it: a page is not empty until
    something happens.
    """

    def __init__(self, server: Any, request: Request, id: Id | None) -> None:
        self._server, self._request, self._id = server, request, id
        broker: Broker = server.broker
        self._reader = NotificationReader(broker.log, broker.matching)
        self._counted = broker.log.end  # events before it are counted
        self._seen = broker.matching.matched - 1  # notifications up to it are counted
        self._then = time.monotonic()
        self._first = True
        self._ids: WantedIds | None = None
        self._asked = -_OWNED

    def look(self) -> bytes:
        """The next message. In a thread: files are read."""
        server, broker = self._server, self._server.broker
        caller = server.present_caller(self._request)
        log, now = broker.log, time.monotonic()
        end, matched = log.end, broker.matching.matched
        first = max(self._counted, log.begin, end - _SCANNED)
        after = max(self._seen, matched - _SCANNED)
        shown, told = first, after  # before them, nothing is shown
        if self._first:
            shown, told = end - SHOWN, max(self._reader.first, matched - SHOWN) - 1
            self._first = False
        found = {
            "time": time.time(),
            "seconds": now - self._then,
            "end": end,
            "events": log.counts(first, end)[0] if end > first else 0,
            "backlog": max(0, end - matched),
            "matches": self._matches(after, matched),
            "live": broker.state.count(),
            "latency": server.latencies.latencies()._asdict(),
            "sample": self._sample(caller, log, shown, end),
            "notifications": self._notifications(caller, told, matched),
        }
        self._counted, self._seen, self._then = end, matched - 1, now
        return b"data: " + msgspec.json.encode(found) + b"\n\n"

    def _matches(self, after: int, matched: int) -> int:
        if after + 1 >= matched:
            return 0
        try:
            found = self._server.broker.matching.notifications(after)
            return sum(len(each.numbers) for each in found)
        except TamisError:  # not kept any more
            return 0

    def _sample(self, caller: Caller, log: Log, first: int, end: int) -> list[dict[str, Any]]:
        """The last events, for those who may read events."""
        if not caller.is_admin and PUBLISHER not in caller.roles:
            return []
        return latest_events(log, max(first, end - SHOWN), end)

    def _notifications(self, caller: Caller, after: int, matched: int) -> list[dict[str, Any]]:
        if after + 1 >= matched:
            return []
        ids = self._wanted(caller)
        try:
            page = self._reader.page(after, ids, SHOWN)
        except TrimmedError:
            return []
        return [
            {
                "sequence": each.sequence,
                "subscription": each.subscription,
                "time": None if each.time is None else iso(each.time),
                "event": None if each.event is None else each.event[:TEXT],
                "at": None if each.event is None else position_of(each.event),
            }
            for each in page.notifications[:SHOWN]
        ]

    def _wanted(self, caller: Caller) -> WantedIds | None:
        """The subscriptions whose notifications are shown: one, those of an owner, or all."""
        if time.monotonic() - self._asked >= _OWNED:
            try:
                ids = self._server.broker.readable(caller, self._id, None)
            except AccessError:  # an anonymous caller
                ids = []
            self._ids = None if ids is None else WantedIds(ids)
            self._asked = time.monotonic()
        return self._ids


def latest_events(log: Log, first: int, end: int) -> list[dict[str, Any]]:
    """The events of a range, the latest first, as the console shows them."""
    found = []
    for start, table in log.events(max(first, log.begin), end):
        moment = iso(microseconds(appended(table)))
        for row in range(table.num_rows):
            text = event_text(table.slice(row, 1))
            shown = {"sequence": start + row, "time": moment, "event": text[:TEXT]}
            found.append(shown | {"whole": len(text) <= TEXT, "at": position_of(text)})
    return found[::-1]


async def live(request: Request) -> Response:
    """A stream of server-sent events, each with a JSON object."""
    signed_in_caller(request)
    server = request.app.state.server
    given = request.query_params.get("subscription")
    id = None if not given else subscription_id(server, given)
    if id is not None:
        caller = server.caller(request)
        await run_in_threadpool(server.broker.readable, caller, id, None)
    feed = LiveFeed(server, request, id)

    async def stream() -> AsyncIterator[bytes]:
        while not server.waiting.closing:
            try:
                yield await run_in_threadpool(feed.look)
            except TamisError:  # coming back tells what it was
                return
            await asyncio.sleep(PAUSE)

    return StreamingResponse(
        stream(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def events(request: Request) -> Response:
    """The last events, the latest first."""
    signed_in_caller(request).require(PUBLISHER)
    log = request.app.state.server.broker.log

    def read() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        end = log.end
        for section in reversed(log.boundaries(max(log.begin, end - 10_000), end)):
            low = max(section.first, section.end - SHOWN, end - 10_000, log.begin)
            if section.kind == "events" and low < min(section.end, end):
                found += latest_events(log, low, min(section.end, end))
            if len(found) >= SHOWN:
                break
        return found[:SHOWN]

    return Response(
        msgspec.json.encode({"events": await run_in_threadpool(read)}),
        media_type="application/json",
    )


routes = [
    Route(f"{PREFIX}/live", live, methods=["GET"], include_in_schema=False),
    Route(f"{PREFIX}/events", events, methods=["GET"], include_in_schema=False),
]
