"""Errors as HTTP answers, in the form of RFC 9457."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import metrics
from tamis.broker.access.caller import AccessError
from tamis.broker.bulk_subscribe import BulkRefusedError
from tamis.broker.cloud_events.context_attributes import ContentTypeError
from tamis.broker.extension import ExtensionError
from tamis.broker.matching.notification_reader import TrimmedError
from tamis.errors import (
    BrokerError,
    BrokerStoppedError,
    BusyError,
    ConditionError,
    EngineError,
    EventError,
    FullError,
    NotFoundError,
    QuotaError,
    RequestKeyError,
    SavedIndexError,
    SchemaError,
    StoreError,
    TamisError,
)

# The first that fits; the others are mistakes of the caller.
_STATUS: tuple[tuple[type[TamisError], int], ...] = (
    (ContentTypeError, 415),
    (AccessError, 403),
    (NotFoundError, 404),
    (TrimmedError, 410),
    (QuotaError, 429),
    (RequestKeyError, 422),
    (BusyError, 503),
    (BrokerStoppedError, 503),
    (StoreError, 503),
    (SavedIndexError, 503),
    (EngineError, 503),
    (FullError, 507),
)
WHY = "tamis.why"  # in the scope of a request: what callers are not told, for the logs
_INSIDE = "the service cannot do this now: its disk is full, or its data cannot be used; try later"
_NAMES: dict[type[TamisError], str] = {
    AccessError: "forbidden",
    NotFoundError: "not-found",
    TrimmedError: "trimmed",
    QuotaError: "too-many",
    RequestKeyError: "request-key",
    BusyError: "busy",
    BrokerStoppedError: "stopped",
    StoreError: "unavailable",
    SavedIndexError: "unavailable",
    EngineError: "unavailable",
    FullError: "full",
    EventError: "event",
    SchemaError: "schema",
    ConditionError: "condition",
    BrokerError: "request",
}


class HttpError(TamisError):
    """A request that HTTP itself refuses, with the status to answer with."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ProblemDetails(NamedTuple):
    """What callers are told about an error, over HTTP and gRPC."""

    status: int
    body: bytes  # JSON, by RFC 9457
    detail: str
    headers: dict[str, str]

    @classmethod
    def of(cls, status: int, name: str, detail: str, more: dict[str, Any]) -> ProblemDetails:
        metrics.REFUSED.labels(name).inc()
        body = {
            "type": f"urn:tamis:problem:{name}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            **more,
        }
        shown = {key: _shown(value) for key, value in body.items()}
        return cls(status, msgspec.json.encode(shown), str(shown["detail"]), {})

    def answer(self) -> Response:
        """As an answer of HTTP."""
        return Response(self.body, self.status, self.headers, "application/problem+json")


def problem(error: TamisError) -> Response:
    """The answer to a request that failed."""
    return describe(error).answer()


def describe(error: TamisError) -> ProblemDetails:
    """What callers are told about an error."""
    if isinstance(error, HttpError):
        status = error.status
    else:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 400)
    name = next((name for kind, name in _NAMES.items() if isinstance(error, kind)), "request")
    # What fails inside names paths, which are nothing to callers.
    detail = _INSIDE if status in (503, 507) else str(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, QuotaError) and error.after is not None:
        headers["Retry-After"] = str(math.ceil(error.after))
    return ProblemDetails.of(status, name, detail, _details(error))._replace(headers=headers)


def _shown(value: Any) -> Any:
    """A value that JSON can hold: a message may quote half of a surrogate pair."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _details(error: TamisError) -> dict[str, Any]:
    """What a program can use: the place of the mistake."""
    found: dict[str, Any] = {}
    if isinstance(error, EventError):
        found = {"row": error.row, "attribute": error.attribute, "rule": error.rule}
    elif isinstance(error, ConditionError):
        found = {"line": error.line, "column": error.column, "hint": error.hint}
    elif isinstance(error, ExtensionError):
        found = {"rule": error.rule}
    elif isinstance(error, TrimmedError):
        found = {"first": error.first}
    elif isinstance(error, BulkRefusedError):
        found = {"refused": [each._asdict() for each in error.refused[:100]]}
    return {name: value for name, value in found.items() if value is not None}


async def answer_problem(request: Request, error: Exception) -> Response:
    """The handler of all errors that tamis raises."""
    assert isinstance(error, TamisError)
    found = problem(error)
    if found.status_code >= 500:
        request.scope[WHY] = str(error)
    return found


async def answer_invalid(request: Request, error: Exception) -> Response:
    """A body or parameter of the wrong form: where and why, without what was given."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    kind = request.headers.get("content-type", "")
    if "json" not in kind and any(each["loc"] == ("body",) for each in error.errors()):
        given = f", not as {kind!r}" if kind else ""
        found = [f"body: send it as application/json{given}; curl does so with --json"]
    return ProblemDetails.of(422, "request", "; ".join(found[:10]), {}).answer()


async def answer_http(request: Request, error: Exception) -> Response:
    """What the framework refuses: an unknown path, a wrong method."""
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if error.status_code == 404:
        detail = "there is no such path; /openapi.json lists them all"
    found = ProblemDetails.of(error.status_code, "request", detail, {})
    return found._replace(headers=dict(error.headers or {})).answer()


def unicode_problem() -> Response:
    """Texts come from callers: half of a surrogate pair is their mistake."""
    return ProblemDetails.of(400, "request", "a text has half of a surrogate pair", {}).answer()


async def answer_unicode(request: Request, error: Exception) -> Response:
    """The handler of texts that cannot be encoded."""
    return unicode_problem()


async def answer_incomplete(request: Request, error: Exception) -> Response:
    """The handler of bodies that end early: the caller is gone, or was too slow."""
    return ProblemDetails.of(400, "request", "the body arrived incomplete", {}).answer()


def too_long(most: int) -> HttpError:
    """The refusal of a body with more bytes than this."""
    return HttpError(413, f"the body has more than {most:,} bytes; send it in several requests")
