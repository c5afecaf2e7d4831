"""Routes of events: publish, and read one."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamis.broker.access.caller import PUBLISHER
from tamis.broker.cloud_events.write_cloud_event import CLOUD_EVENT, cloud_event, stored_event
from tamis.service.bodies import events_in

router = APIRouter(prefix="/v1/events", tags=["events"])


async def publish(request: Request) -> Response:
    """Publish events; 202 when they are on disk."""
    server = request.app.state.server
    events = events_in(await request.body(), request.scope["headers"])
    receipt = await asyncio.wrap_future(server.broker.publish(events, server.caller(request)))
    answer = {
        "first": receipt.numbers[0] if receipt.numbers else None,
        "count": len(receipt.numbers),
        "duplicates": receipt.duplicates,
    }
    return Response(msgspec.json.encode(answer), 202, media_type="application/json")


@router.get("/{number}", response_class=Response)
async def show_event(request: Request, number: Annotated[int, Path(ge=0, lt=2**63)]) -> Response:
    """An event by its sequence number: the JSON object that conditions see.

    With `Accept: application/cloudevents+json`, the answer is a CloudEvent.
    """
    server = request.app.state.server
    server.caller(request).require(PUBLISHER)
    event = await run_in_threadpool(stored_event, server.broker.log, number)
    if CLOUD_EVENT in request.headers.get("accept", ""):
        return Response(msgspec.json.encode(cloud_event(event)), media_type=CLOUD_EVENT)
    return Response(event.text, media_type="application/json")


routes = [Route("/v1/events", publish, methods=["POST"])]
