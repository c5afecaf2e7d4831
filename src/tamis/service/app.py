"""The HTTP interface of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from tamis import __version__
from tamis.broker.broker import Broker
from tamis.errors import TamisError
from tamis.service import publish_door
from tamis.service.body_limit import BodyLimit
from tamis.service.console import (
    delivery_reads,
    health_reads,
    live_routes,
    map_reads,
    page_routes,
    redundancy_routes,
    session_routes,
    subscription_reads,
)
from tamis.service.context import ServiceContext
from tamis.service.identification import Identification
from tamis.service.observation import health
from tamis.service.observation.request_log import RequestLog
from tamis.service.openapi_document.documented_app import DocumentedApp
from tamis.service.problems import (
    answer_http,
    answer_incomplete,
    answer_invalid,
    answer_problem,
    answer_unicode,
)
from tamis.service.publish_door import PublishDoor, Publishing
from tamis.service.rate_limit import RateLimit
from tamis.service.routes import (
    backtest_routes,
    bulk_routes,
    consumer_routes,
    dead_letter_routes,
    event_routes,
    key_routes,
    notification_routes,
    operator_routes,
    question_routes,
    schema_routes,
    subscription_routes,
)
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting


def make_app(broker: Broker, settings: Settings, waiting: Waiting) -> FastAPI:
    """The application. The hot routes are plain: they cost less than half of checked ones."""
    server = ServiceContext(broker, settings, waiting)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        waiting.attach(loop)

        def warned() -> None:
            waiting.notice()
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(server.readings.wake)

        broker.webhooks.warnings.listener = warned
        yield
        waiting.close()
        server.close()

    # No pages of documentation: those of the framework load scripts from other hosts.
    app = DocumentedApp(
        title="tamis", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.server = server
    publishing = Publishing(server, settings.body_bytes)
    app.add_middleware(BodyLimit, most=settings.body_bytes)
    app.add_middleware(PublishDoor, publishing=publishing)
    app.add_middleware(RateLimit, rates=server.rates)
    app.add_middleware(Identification, server=server)
    app.add_middleware(RequestLog)
    app.add_exception_handler(TamisError, answer_problem)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(HTTPException, answer_http)
    app.add_exception_handler(UnicodeEncodeError, answer_unicode)
    app.add_exception_handler(ClientDisconnect, answer_incomplete)
    app.router.routes.append(Route(publish_door.PATH, publishing, methods=["POST"]))
    app.include_router(event_routes.router)
    app.router.routes += bulk_routes.routes
    app.include_router(subscription_routes.router)
    app.include_router(dead_letter_routes.router)
    app.include_router(key_routes.router)
    app.include_router(consumer_routes.router)
    app.include_router(question_routes.router)
    app.include_router(backtest_routes.router)
    app.include_router(operator_routes.router)
    app.router.routes += notification_routes.routes
    app.include_router(schema_routes.router)
    app.router.routes += health.routes
    for pages in (
        *(session_routes, subscription_reads, redundancy_routes),
        *(delivery_reads, health_reads, map_reads),
    ):
        app.include_router(pages.router)
    app.router.routes += live_routes.routes
    app.router.routes += page_routes.routes  # last: what is no other path of the console is a page
    return app
