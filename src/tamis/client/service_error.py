"""Errors of a client: what the service refused, and a service that cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tamis.errors import TamisError

_PREFIX = "urn:tamis:problem:"


class ServiceError(TamisError):
    """A request that the service refused, with the fields of its problem (RFC 9457).

    Args:
        status: the status of HTTP.
        kind: the kind of problem, such as `condition`, `not-found` or `too-many`.
        detail: what was wrong, where, and what would be right.
        fields: more for programs, such as `line`, `column`, `row`, `attribute` or `first`.
        after: seconds after which to try again, if the service said so.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        fields: Mapping[str, Any] | None = None,
        after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.fields, self.after = dict(fields or {}), after


class UnreachableError(TamisError):
    """The service did not answer. `sent` says whether it may have done what was asked."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


def read_problem(status: int, headers: Mapping[str, str], content: bytes) -> ServiceError:
    """The error in an answer."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    after = headers.get("retry-after", "")
    seconds = float(after) if after.isdecimal() else None
    if not isinstance(found, dict) or "detail" not in found:  # not an answer of tamis
        text = content[:200].decode(errors="replace").strip() or "without a word"
        return ServiceError(
            status, "unknown", f"the service answered {status}: {text}", {}, seconds
        )
    kind = str(found.pop("type", "")).removeprefix(_PREFIX)
    found.pop("status", None)
    found.pop("title", None)
    return ServiceError(status, kind, str(found.pop("detail")), found, seconds)
