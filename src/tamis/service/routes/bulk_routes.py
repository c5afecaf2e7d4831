"""Many subscriptions: a line of JSON for each, in the form of files of subscriptions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tamis.broker.bulk_subscribe import BulkAnswer, BulkSubscription
from tamis.broker.delivery.sinks import Sink
from tamis.broker.sequence.clock import iso
from tamis.broker.state import StoredSubscription
from tamis.broker.subscription_query import SubscriptionQuery
from tamis.broker.subscription_search import find_subscriptions
from tamis.errors import BrokerError
from tamis.language.dialects import NATIVE
from tamis.service.bodies import NDJSON
from tamis.service.problems import HttpError
from tamis.store.pack import microseconds

PAGE = 5000  # subscriptions of an export that are read at once


class SubscriptionLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A subscription in a line. An export has the same lines as files of subscriptions have."""

    condition: str
    id: int | str | None = None
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None  # when its lease ends
    lease: float | None = None  # or how many seconds it lasts; neither: it does not end
    owner: str | None = None
    name: str | None = None
    language: str | None = None
    metadata: dict[str, Any] | str | None = None
    sink: dict[str, Any] | str | None = None


_lines = msgspec.json.Decoder(SubscriptionLine)


async def subscribe_many(request: Request) -> Response:
    """Subscribe to the condition of each line; the answer has a line for each, in order.

    A wrong line is answered with its error, and the others are subscribed to. With `together`,
    one wrong line refuses all.
    """
    server = request.app.state.server
    caller = server.caller(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != NDJSON:
        raise HttpError(415, f"send many subscriptions as {NDJSON}, one JSON object on each line")
    together = request.query_params.get("together", "false").lower() in ("true", "1", "yes")
    key = request.headers.get("idempotency-key")
    body = await request.body()
    broker = server.broker
    lines, wrong = await run_in_threadpool(_read, body, broker.now())
    if wrong and together:
        at, why = next(iter(wrong.items()))
        raise BrokerError(f"line {at + 1}: {why}; none was added")
    asked = await server.ask(
        broker.subscribe_many, list(lines.values()), caller, together=together, request_key=key
    )
    answer = await asyncio.wrap_future(asked)
    text = await run_in_threadpool(_answer, answer, list(lines), wrong)
    return Response(text, media_type=NDJSON)


def _read(body: bytes, now: int) -> tuple[dict[int, BulkSubscription], dict[int, str]]:
    """The subscriptions of a body by their lines, and why other lines are refused."""
    found: dict[int, BulkSubscription] = {}
    wrong: dict[int, str] = {}
    for at, line in enumerate(body.splitlines()):
        if not line.strip():
            continue
        try:
            found[at] = _new(_lines.decode(line), now)
        except (msgspec.DecodeError, BrokerError, ValueError, RecursionError) as why:
            wrong[at] = str(why)
    return found, wrong


def _new(line: SubscriptionLine, now: int) -> BulkSubscription:
    sink, metadata = _object(line.sink, "sink"), _object(line.metadata, "metadata")
    until = None if line.until is None else microseconds(line.until)
    if line.lease is not None:
        if until is not None or not 0 < line.lease < 1e9:
            raise BrokerError(
                "a line has until or lease, not both, and a lease is longer than 0 seconds"
            )
        until = now + int(line.lease * 1e6)
    return BulkSubscription(
        line.condition,
        line.id,
        until,
        line.owner,
        line.name,
        line.language or NATIVE,
        None if sink is None else Sink.of(sink),
        metadata,
    )


def _object(given: dict[str, Any] | str | None, what: str) -> dict[str, Any] | None:
    """An object; files of subscriptions have it as JSON in text."""
    found = json.loads(given) if isinstance(given, str) else given
    if not isinstance(found, dict | None):
        raise BrokerError(f"the {what} is not a JSON object")
    return found


def _answer(answer: BulkAnswer, places: list[int], wrong: dict[int, str]) -> bytes:
    """A line for each subscription, in the order in which they were sent."""
    lines: dict[int, dict[str, Any]] = {
        at: {"line": at + 1, "error": why} for at, why in wrong.items()
    }
    for row, reason in answer.refused:
        lines[places[row]] = {"line": places[row] + 1, "error": reason}
    for lease in answer.leases:
        found: dict[str, Any] = {
            "line": places[lease.row] + 1,
            "id": lease.id,
            "ticket": lease.ticket,
        }
        found["until"] = None if lease.until is None else iso(lease.until)
        if lease.secret is not None:
            found["secret"] = lease.secret
        lines[places[lease.row]] = found
    return b"".join(msgspec.json.encode(lines[at]) + b"\n" for at in sorted(lines))


def export(server: Any, query: SubscriptionQuery, most: int | None) -> Response:
    """Live subscriptions, a line for each.

    Who was cut off goes on after the id of the last line.
    """

    async def lines() -> AsyncIterator[bytes]:
        asked, left = query, most
        while not server.waiting.closing:
            size = PAGE if left is None else min(left, PAGE)
            page = await run_in_threadpool(find_subscriptions, server.broker.state, asked, size)
            if page:
                yield await run_in_threadpool(_lines_of, page)
                asked = asked._replace(after=page[-1].id)
            left = None if left is None else left - size
            if len(page) < size or left == 0:
                return

    return StreamingResponse(lines(), media_type=NDJSON)


def _lines_of(page: list[StoredSubscription]) -> bytes:
    return b"".join(
        msgspec.json.encode(
            {
                name: value
                for name, value in (
                    ("id", each.id),
                    ("condition", each.condition),
                    ("until", None if each.until is None else iso(each.until)),
                    ("owner", each.owner),
                    ("name", each.name),
                    ("language", each.language),
                    ("metadata", each.metadata),
                    ("sink", each.sink),
                )
                if value is not None
            }
        )
        + b"\n"
        for each in page
    )


routes = [Route("/v1/subscriptions/bulk", subscribe_many, methods=["POST"])]
