"""Run a server until it is asked to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import structlog
import uvicorn

from tamis.broker.broker import Broker
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.maintenance.retention import KeepRules, Retention
from tamis.errors import BrokerError, SettingError, counted
from tamis.model.schema import Schema
from tamis.replay.matching_shifts import SPARK
from tamis.service.app import make_app
from tamis.service.context import ServiceContext
from tamis.service.guarded_protocol import GuardedProtocol
from tamis.service.listen_address import shown_address
from tamis.service.observation.compile_log import CompileLog
from tamis.service.observation.failure_log import FailureLog
from tamis.service.observation.logs import set_up_logs
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting

if TYPE_CHECKING:
    from tamis.service.rpc.server import GrpcServer

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE = 5  # seconds for requests that are under way when the server stops
_log = structlog.stdlib.get_logger("tamis.serve")


class _Server(uvicorn.Server):
    """Ends open streams first: uvicorn waits for them. A second signal ends it at once."""

    def __init__(
        self,
        config: uvicorn.Config,
        waiting: Waiting,
        others: Sequence[GrpcServer],
        code: str | None,
    ) -> None:
        """`code` opens the console where callers need no key."""
        super().__init__(config)
        self._waiting, self._others, self._code = waiting, others, code

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, once: uvicorn would raise them again afterwards."""
        wanted = dict.fromkeys(_SIGNALS, self.handle_exit) | {signal.SIGHUP: self._reload}
        before = {each: signal.signal(each, handler) for each, handler in wanted.items()}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:  # what was acknowledged is on disk
            os._exit(128 + sig)
        self.should_exit = True

    def _reload(self, sig: int, frame: FrameType | None) -> None:
        """Use the certificate files as they are now, for new connections."""
        certificate, key = self.config.ssl_certfile, self.config.ssl_keyfile
        if self.config.ssl is None or certificate is None or key is None:
            return
        try:
            check_certificate(Path(certificate), Path(key))
        except SettingError as why:
            _log.warning("the certificate was not reloaded", why=str(why))
            return
        self.config.ssl.load_cert_chain(certificate, key)
        _log.info("the certificate was reloaded")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for each in self._others:
                _log.info(f"serving gRPC on {await each.start()}")
            tls = self.config.ssl is not None
            places = [shown_address(each, tls=tls) for each in sockets or []]
            page = next((each for each in places if each.startswith("http")), None)
            if page is not None:
                # After the mark, a browser sends nothing of it to anyone.
                code = f"#code={self._code}" if self._code else ""
                _log.info(f"console: {page}/console{code}")
            _log.info(f"serving on {' and '.join(places)}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.info("stopping")
        self._waiting.close()
        for each in self.server_state.connections:
            if isinstance(each, GuardedProtocol):
                each.hurry(_GRACE / 2)
        await asyncio.gather(super().shutdown(sockets), *(each.stop() for each in self._others))


def serve(settings: Settings) -> None:
    """Serve a data folder until SIGINT or SIGTERM."""
    set_up_logs(settings.log_format, settings.log_level)
    waiting = Waiting()
    servers: list[uvicorn.Server] = []
    failed = threading.Event()

    def fail() -> None:
        """End the process: it must not go on after a failed write. Called by the sequencer."""
        failed.set()
        for each in servers:
            each.should_exit = True

    schema = Schema.open() if settings.schema is None else Schema.load(settings.schema)
    if settings.tls_certificate is not None and settings.tls_key is not None:
        check_certificate(settings.tls_certificate, settings.tls_key)
    with (
        ExitStack() as bound,
        CompileLog(),
        Broker(
            settings.folder,
            schema,
            limits=settings.limits,
            found=waiting.found,
            failed=fail,
            matching=settings.matching or True,
            rebuild=settings.rebuild,
            database=settings.database,
            sinks=SinkRules.of(settings.allow_sink, settings.kafka),
            operators=settings.operators,
            at_once=settings.quick_start,
        ) as broker,
    ):
        _tell_recovered(broker)
        shift = broker.matching.shift
        if shift is not None and shift.matching == SPARK:
            run = f"tamis spark run --data {settings.folder}"
            _log.info(f"Spark matches from {shift.start:,} on: `{run}`")
        if not settings.anonymous and not broker.keys.list():
            create = f"tamis keys create {settings.folder} --name NAME --role admin"
            _log.warning(f"nobody can call yet; make a key: {create}")
        app = make_app(broker, settings, waiting)
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http=GuardedProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nobody may say that they call from elsewhere
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
        sockets = [bound.enter_context(each.bind()) for each in settings.addresses]
        others = _grpc_servers(app.state.server, settings)
        server = _Server(config, waiting, others, app.state.server.console_code)
        servers.append(server)
        kept = KeepRules(
            settings.keep_events, settings.keep_event_bytes, settings.keep_notifications
        )
        # What is there by now stays: without it, looking for garbage takes a tenth of the time.
        gc.collect()
        gc.freeze()
        if not failed.is_set():
            with FailureLog(broker), Retention(broker, kept):
                server.run(sockets)
        if broker.failure is not None:
            raise BrokerError(f"the broker has stopped: {broker.failure}")
    _log.info("stopped")


def _tell_recovered(broker: Broker) -> None:
    done, matching = broker.recovered, broker.matching
    _log.info(
        f"{broker.folder.folder}: {counted(done.end, 'row')} in the log, "
        f"{counted(broker.state.count(), 'live subscription')}; "
        f"{counted(done.applied, 'change')} and {counted(done.keys, 'key')} recovered",
        begin=broker.log.begin,
        end=done.end,
        notified=matching.files.matched,
        to_match=max(0, done.end - matching.files.matched),
        retries=broker.webhooks.outbox.count(),
        dead_letters=broker.webhooks.outbox.dead_count(),
    )


def check_certificate(certificate: Path, key: Path) -> None:
    """Raise `SettingError` unless these files can be used for TLS."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as why:
        raise SettingError(
            f"tls-certificate, tls-key: {certificate} and {key} cannot be used: {why}"
        ) from None


def _grpc_servers(server: ServiceContext, settings: Settings) -> list[GrpcServer]:
    """The library of gRPC is loaded where it is used."""
    if not settings.grpc_addresses:
        return []
    from tamis.service.rpc.server import GrpcServer

    return [GrpcServer(server, each) for each in settings.grpc_addresses]
