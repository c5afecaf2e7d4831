"""Errors as the status of a call: a code, a message, and the problem as HTTP has it."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc
import grpc.aio

from tamis.errors import TamisError
from tamis.service.problems import ProblemDetails, describe

PROBLEM = "tamis-problem-bin"  # metadata of bytes end in -bin
_CODES = {
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    410: grpc.StatusCode.OUT_OF_RANGE,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
    507: grpc.StatusCode.RESOURCE_EXHAUSTED,
}

Context = grpc.aio.ServicerContext[Any, Any]


def status_code(status: int) -> grpc.StatusCode:
    """The code of gRPC for a status of HTTP; what has none is a mistake of the caller."""
    return _CODES.get(status, grpc.StatusCode.INVALID_ARGUMENT)


def details(error: Exception) -> ProblemDetails:
    """What a caller is told; half of a surrogate pair in a text is a mistake of the caller."""
    if isinstance(error, TamisError):
        return describe(error)
    return ProblemDetails.of(400, "request", "a text has half of a surrogate pair", {})


async def abort(context: Context, found: ProblemDetails) -> NoReturn:
    """End a call with an error."""
    after = found.headers.get("Retry-After")
    metadata: list[tuple[str, str | bytes]] = [(PROBLEM, found.body)]
    if after is not None:
        metadata.append(("retry-after", after))
    await context.abort(status_code(found.status), _header(found.detail), tuple(metadata))


def _header(text: str) -> str:
    """A message that fits into a header: gRPC has 8 KB for all of them."""
    return text if len(text) <= 1000 else text[:1000] + " …"
