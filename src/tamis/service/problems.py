"""Errors as HTTP answers, in the form of RFC 9457."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker.access.caller import AccessError
from tamis.broker.matching.notification_reader import TrimmedError
from tamis.errors import (
    BrokerError,
    BrokerStoppedError,
    ConditionError,
    EventError,
    FullError,
    NotFoundError,
    QuotaError,
    TamisError,
)

# The first that fits; the others are mistakes of the caller.
_STATUS: tuple[tuple[type[TamisError], int], ...] = (
    (AccessError, 403),
    (NotFoundError, 404),
    (TrimmedError, 410),
    (QuotaError, 429),
    (BrokerStoppedError, 503),
    (FullError, 507),
)
_NAMES: dict[type[TamisError], str] = {
    AccessError: "forbidden",
    NotFoundError: "not-found",
    TrimmedError: "trimmed",
    QuotaError: "too-many",
    BrokerStoppedError: "stopped",
    FullError: "full",
    EventError: "event",
    ConditionError: "condition",
    BrokerError: "request",
}


class HttpError(TamisError):
    """A request that HTTP itself refuses, with the status to answer with."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def problem(error: TamisError) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, HttpError):
        status = error.status
    else:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 400)
    name = next((name for kind, name in _NAMES.items() if isinstance(error, kind)), "request")
    body: dict[str, Any] = {
        "type": f"urn:tamis:problem:{name}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": str(error),
        **_details(error),
    }
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, QuotaError) and error.after is not None:
        headers["Retry-After"] = str(math.ceil(error.after))
    return Response(msgspec.json.encode(body), status, headers, "application/problem+json")


def _details(error: TamisError) -> dict[str, Any]:
    """What a program can use: the place of the mistake."""
    found: dict[str, Any] = {}
    if isinstance(error, EventError):
        found = {"row": error.row, "attribute": error.attribute, "rule": error.rule}
    elif isinstance(error, ConditionError):
        found = {"line": error.line, "column": error.column, "hint": error.hint}
    elif isinstance(error, TrimmedError):
        found = {"first": error.first}
    return {name: value for name, value in found.items() if value is not None}


async def answer_problem(request: Request, error: Exception) -> Response:
    """The handler of all errors that tamis raises."""
    assert isinstance(error, TamisError)
    return problem(error)
