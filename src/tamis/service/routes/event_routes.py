"""Routes of events that are in the log."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker.access.caller import PUBLISHER
from tamis.broker.cloud_events.write_cloud_event import CLOUD_EVENT, cloud_event, stored_event
from tamis.service.bodies import JSON

EVENT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the event",
        "content": {
            JSON: {"schema": {"type": "object"}},
            CLOUD_EVENT: {"schema": {"$ref": "#/components/schemas/CloudEvent"}},
        },
    },
    410: {"description": "not kept any longer; `first` is the first sequence number that is"},
}
router = APIRouter(prefix="/v1/events", tags=["events"])


@router.get("/{number}", response_class=Response, responses=EVENT_ANSWERS)
async def show_event(request: Request, number: Annotated[int, Path(ge=0, lt=2**63)]) -> Response:
    """An event by its sequence number: the JSON object that conditions see.

    With `Accept: application/cloudevents+json`, the answer is a CloudEvent.
    """
    server = request.app.state.server
    server.caller(request).require(PUBLISHER)
    event = await run_in_threadpool(stored_event, server.broker.log, number)
    if CLOUD_EVENT in request.headers.get("accept", ""):
        return Response(msgspec.json.encode(cloud_event(event)), media_type=CLOUD_EVENT)
    return Response(event.text, media_type=JSON)
