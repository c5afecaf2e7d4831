"""Run a server until it is asked to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from tamis.broker.broker import Broker
from tamis.broker.delivery.sink_address import SinkRules
from tamis.errors import BrokerError
from tamis.model.schema import Schema
from tamis.service.app import ServiceContext, make_app
from tamis.service.listen_address import shown_address
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

if TYPE_CHECKING:
    from tamis.service.rpc.server import GrpcServer

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """Ends open streams first: uvicorn waits for them."""

    def __init__(
        self,
        config: uvicorn.Config,
        waiting: Waiting,
        ready: Callable[[str], None],
        others: Sequence[GrpcServer],
    ) -> None:
        super().__init__(config)
        self._waiting, self._ready, self._others = waiting, ready, others

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, once: uvicorn would raise them again afterwards."""
        before = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for each in self._others:
                self._ready(f"serving gRPC on {await each.start()}")
            places = " and ".join(map(shown_address, sockets or []))
            self._ready(f"serving on {places}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._waiting.close()
        await asyncio.gather(super().shutdown(sockets), *(each.stop() for each in self._others))


def serve(settings: Settings, tell: Callable[[str], None]) -> None:
    """Serve a data folder until SIGINT or SIGTERM. `tell` shows what happens."""
    waiting = Waiting()
    servers: list[uvicorn.Server] = []
    failed = threading.Event()

    def fail() -> None:
        """End the process: it must not go on after a failed write. Called by the sequencer."""
        failed.set()
        for each in servers:
            each.should_exit = True

    schema = None if settings.schema is None else Schema.load(settings.schema)
    with (
        ExitStack() as bound,
        Broker(
            settings.folder,
            schema,
            limits=settings.limits,
            found=waiting.found,
            failed=fail,
            rebuild=settings.rebuild,
            sinks=SinkRules.of(settings.allow_sink),
            operators=settings.operators,
        ) as broker,
    ):
        done = broker.recovered
        tell(
            f"{settings.folder}: {done.end:,} rows in the log, {broker.state.count():,} live "
            f"subscriptions; {done.applied:,} changes and {done.keys:,} keys recovered"
        )
        if not settings.anonymous and not broker.keys.list():
            create = f"tamis keys create {settings.folder} --name NAME --role admin"
            tell(f"nobody can call yet; make a key: {create}")
        app = make_app(broker, settings, waiting)
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=10,
        )
        sockets = [bound.enter_context(each.bind()) for each in settings.addresses]
        server = _Server(config, waiting, tell, _grpc_servers(app.state.server, settings))
        servers.append(server)
        if not failed.is_set():
            server.run(sockets)
        if broker.failure is not None:
            raise BrokerError(f"the broker has stopped: {broker.failure}")
    tell("stopped")


def _grpc_servers(server: ServiceContext, settings: Settings) -> list[GrpcServer]:
    """The library of gRPC is loaded where it is used."""
    if not settings.grpc_addresses:
        return []
    from tamis.service.rpc.server import GrpcServer

    return [GrpcServer(server, each) for each in settings.grpc_addresses]
