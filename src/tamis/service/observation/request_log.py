"""Requests as those who run a service see them: an id for each, counts, times and logs."""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Any

import structlog
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.broker import metrics
from tamis.service.problems import WHY

_HEADER = b"x-request-id"
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_log = structlog.stdlib.get_logger("tamis.http")
_level = logging.getLogger("tamis.http")  # asks in a fraction of the time


def _route(scope: Scope) -> str:
    """The pattern of the path. FastAPI names the routes that are its own, and not plain ones."""
    if "route" in scope:
        return str(getattr(scope["route"], "path", "other"))
    endpoint, names = scope.get("endpoint"), set(scope.get("path_params", ()))
    if endpoint is None:
        return "other"
    plain = (each for each in scope["app"].routes if isinstance(each, Route))
    found = (each for each in plain if each.endpoint is endpoint)
    return next((each.path for each in found if set(each.param_convertors) == names), "other")


class RequestLog:
    """Gives each request an id, and counts it when its answer begins.

    A caller may choose the id (`X-Request-Id`); the answer has it, and so have the log lines of the
    request. The path is not logged, since it may hold what a caller wants to keep secret: the route
    is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._times: dict[str, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        id = given if _ID.fullmatch(given) else secrets.token_hex(8).encode()
        began = time.perf_counter()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", []).append((_HEADER, id))
                self._count(scope, message["status"], time.perf_counter() - began)
            await send(message)

        with structlog.contextvars.bound_contextvars(request=id.decode()):
            await self._app(scope, receive, answer)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        # Kept here: `labels` is four times as slow as a counter that is known.
        counter = self._counters.get((route, method, status))
        if counter is None:
            counter = metrics.HTTP_REQUESTS.labels(route, method, str(status))
            self._counters[route, method, status] = counter
        timer = self._times.get(route)
        if timer is None:
            timer = self._times[route] = metrics.HTTP_SECONDS.labels(route)
        counter.inc()
        timer.observe(seconds)
        facts = {"route": route, "method": method, "status": status, "seconds": round(seconds, 6)}
        if status >= 500:
            if WHY in scope:
                facts["why"] = scope[WHY]
            _log.error("a request failed", **facts)
        elif _level.isEnabledFor(logging.DEBUG):
            _log.debug("request", **facts)
