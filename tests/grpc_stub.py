"""The methods of gRPC on a real channel, and what is wrong with a call that is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from tamis.service.rpc import tamis_pb2 as pb

METHODS = pb.DESCRIPTOR.services_by_name["Tamis"].methods_by_name


class Stub:
    """The methods of the service on a channel, as a program in any language has them."""

    def __init__(self, channel: grpc.Channel, key: str | None = None) -> None:
        self._channel = channel
        self._metadata = None if key is None else (("authorization", f"Bearer {key}"),)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = METHODS[name]
        kind = {
            (False, False): self._channel.unary_unary,
            (False, True): self._channel.unary_stream,
            (True, True): self._channel.stream_stream,
        }[method.client_streaming, method.server_streaming]
        call: Any = kind(
            f"/tamis.v1.Tamis/{name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return lambda given, **options: call(given, metadata=self._metadata, **options)


def refused(call: Callable[..., Any], *arguments: Any) -> tuple[grpc.StatusCode, dict[str, Any]]:
    """The code of a call that must fail, and its problem."""
    with pytest.raises(grpc.RpcError) as failed:
        call(*arguments)
    error: Any = failed.value
    metadata = dict(error.trailing_metadata())
    return error.code(), json.loads(metadata.get("tamis-problem-bin", b"{}"))
