"""Routes of health and metrics."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tamis.broker.broker import Broker
from tamis.service.observation.failure_log import failing_parts
from tamis.service.observation.readings import exposition

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


async def alive(request: Request) -> Response:
    """The process answers. Whoever restarts processes asks this."""
    return PlainTextResponse("alive\n")


async def ready(request: Request) -> Response:
    """200 if everything works; else 503, with a line for each part that does not."""
    reasons = list(reasons_against(request.app.state.server.broker))
    if request.app.state.server.waiting.closing:
        reasons.append("the service is stopping")
    if reasons:
        return PlainTextResponse("".join(f"{each}\n" for each in reasons), 503)
    return PlainTextResponse("ready\n")


def reasons_against(broker: Broker) -> Iterator[str]:
    """What does not work, without what is nothing to callers: the logs have more."""
    for part, failure in failing_parts(broker).items():
        yield f"{part}: {type(failure).__name__}"
    if broker.matching.full:
        yield "matching: the disk is full; notifications wait in memory"


async def metrics(request: Request) -> Response:
    """All metrics, for Prometheus. Where callers need a key, so does it."""
    server = request.app.state.server
    server.caller(request)
    return Response(await run_in_threadpool(exposition, server.broker), media_type=_PROMETHEUS)


routes = [
    Route("/livez", alive, methods=["GET"]),
    Route("/readyz", ready, methods=["GET"]),
    Route("/metrics", metrics, methods=["GET"]),
]
