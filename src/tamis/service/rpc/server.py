"""A server of gRPC in the event loop of the HTTP server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from tamis.broker import metrics
from tamis.errors import SettingError, TamisError
from tamis.service.context import ServiceContext
from tamis.service.listen_address import ListenAddress
from tamis.service.problems import HttpError
from tamis.service.rpc import tamis_pb2
from tamis.service.rpc.status import Context, abort, details, status_code
from tamis.service.rpc.verbs import GrpcVerbs

_SERVICE = tamis_pb2.DESCRIPTOR.services_by_name["Tamis"]
_GRACE = 2.0  # seconds for the calls under way when it stops; open streams end at once
_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]
Requests = AsyncIterable[Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class GrpcServer:
    """Serves the verbs, health and reflection."""

    def __init__(self, server: ServiceContext, address: ListenAddress) -> None:
        self._context, self._address = server, address
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()

    async def start(self) -> str:
        """Begin to serve; where."""
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", int(self._context.settings.body_bytes)),
                ("grpc.so_reuseport", 0),  # a second server is refused, not given every other call
                ("grpc.keepalive_time_ms", 60_000),  # readers that are gone are noticed
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.max_connection_idle_ms", 600_000),  # without calls; clients come back
            ]
        )
        verbs = GrpcVerbs(self._context)
        patience = self._context.settings.slow_request.total_seconds()
        found = (
            _handlers(_SERVICE, lambda each: _handler(each, _verb(verbs, each, patience))),
            _handlers(_HEALTH, lambda each: _plain_handler(each, self._health)),
        )
        self._server.add_generic_rpc_handlers(found)
        names = (_SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        for name in ("", _SERVICE.full_name):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        place = self._listen(self._server)
        await self._server.start()
        return place

    def _listen(self, server: grpc.aio.Server) -> str:
        host, port, path = self._address
        place = f"unix:{path}" if path is not None else f"{_bracketed(host)}:{port}"
        try:
            bound = self._bind(server, place)
        except RuntimeError:
            bound = 0
        if not bound:
            raise SettingError(f"grpc: cannot listen on {place}; another process may listen there")
        return place if path is not None else f"{_bracketed(host)}:{bound}"

    def _bind(self, server: grpc.aio.Server, place: str) -> int:
        settings = self._context.settings
        if settings.tls_certificate is None or settings.tls_key is None:
            return int(server.add_insecure_port(place))
        pair = settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes()
        return int(server.add_secure_port(place, grpc.ssl_server_credentials([pair])))

    async def stop(self) -> None:
        """End the streams, and finish the calls that are under way."""
        if self._server is not None:
            await self._health.enter_graceful_shutdown()
            await self._server.stop(_GRACE)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _handlers(
    service: ServiceDescriptor, handler: Callable[[MethodDescriptor], Handler]
) -> grpc.GenericRpcHandler:
    """A handler for each method of a definition."""
    found = {each.name: handler(each) for each in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, found)


def _plain_handler(method: MethodDescriptor, servicer: object) -> Handler:
    """A handler that gRPC gives the one request of a call to."""
    kind: Callable[..., Handler] = (
        grpc.unary_stream_rpc_method_handler
        if method.server_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return kind(getattr(servicer, method.name), **_forms(method))


def _handler(method: MethodDescriptor, verb: Callable[..., Any]) -> Handler:
    """A handler of a stream of requests, also where a method takes one.

    It looks the same to callers. gRPC would wait for one request for ever; a stream is read here.
    """
    kind: Callable[..., Handler] = (
        grpc.stream_stream_rpc_method_handler
        if method.server_streaming
        else grpc.stream_unary_rpc_method_handler
    )
    return kind(verb, **_forms(method))


def _forms(method: MethodDescriptor) -> dict[str, Callable[..., Any]]:
    """How messages are read and written."""
    return {
        "request_deserializer": GetMessageClass(method.input_type).FromString,
        "response_serializer": GetMessageClass(method.output_type).SerializeToString,
    }


def _verb(verbs: GrpcVerbs, method: MethodDescriptor, patience: float) -> Callable[..., Any]:
    """What a method does: `PublishStream` is `publish_stream`."""
    verb = getattr(verbs, _WORDS.sub("_", method.name).lower())

    async def only(requests: Requests, context: Context) -> Any:
        request = await _first(requests, patience)
        await verbs.admit(request, context)
        return request

    async def answer(requests: Requests, context: Context) -> Any:
        async with _guard(method.name, context):
            return await verb(await only(requests, context), context)

    async def answers(requests: Requests, context: Context) -> AsyncIterator[Any]:
        async with _guard(method.name, context):
            # Of a stream, each message counts.
            given = requests if method.client_streaming else await only(requests, context)
            async for each in verb(given, context):
                yield each

    return answers if method.server_streaming else answer


async def _first(requests: Requests, patience: float) -> Any:
    """The request of a call that has one, if it arrives in time."""
    try:
        async with asyncio.timeout(patience):
            return await anext(aiter(requests))
    except TimeoutError:
        raise HttpError(408, "the request did not arrive in time; send it again") from None
    except StopAsyncIteration:
        raise HttpError(400, "the call has no request") from None


@asynccontextmanager
async def _guard(method: str, context: Context) -> AsyncIterator[None]:
    """Tells the caller about errors, and counts the call."""
    code = grpc.StatusCode.UNKNOWN
    try:
        yield
        code = grpc.StatusCode.OK
    except (TamisError, UnicodeEncodeError) as why:
        found = details(why)
        code = status_code(found.status)
        await abort(context, found)
    except (asyncio.CancelledError, GeneratorExit):
        code = grpc.StatusCode.CANCELLED
        raise
    finally:
        metrics.GRPC_CALLS.labels(method, code.name).inc()
