"""Verify webhooks, by the Standard Webhooks specification.

    message = verify(request.headers, request.body, secret)

A signature proves that the service sent a body, and when. Whoever records a message can send it
again: `verify` refuses messages that are older than five minutes. `message.id` is the same at each
attempt, by which a receiver knows the messages that it has.
"""

from __future__ import annotations

import binascii
import hmac
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tamis.errors import TamisError

TOLERANCE = 300.0  # seconds
_PREFIX = "whsec_"
_VERSION = "v1"


class WebhookError(TamisError):
    """A message that cannot be trusted: answer it with 400, and do nothing else."""


class WebhookMessage(NamedTuple):
    """A message of the service."""

    id: str  # the same at each attempt
    timestamp: int  # seconds since 1970, of this attempt
    body: Any  # the JSON: {"type": "tamis.notification", "data": {…}}


def verify(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> WebhookMessage:
    """The message, if one of the secrets signed it; raises `WebhookError` if none did.

    Args:
        headers: of the request; upper and lower case are the same.
        body: of the request, as it came. JSON that was read and written again differs.
        secret: what subscribing gave (`whsec_…`), or several of them during a rotation.
        tolerance: seconds that the message may be old, or ahead of this clock.
        now: seconds since 1970; the default is the clock.
    """
    found = {name.lower(): value for name, value in headers.items()}
    given = [found.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature")]
    if not all(given):
        raise WebhookError(
            "the headers webhook-id, webhook-timestamp and webhook-signature are needed"
        )
    id, written, signatures = given
    if not (written.isascii() and written.isdecimal() and len(written) <= 15):
        raise WebhookError("webhook-timestamp is not a number of seconds")
    timestamp = int(written)
    age = (time.time() if now is None else now) - timestamp
    if abs(age) > tolerance:
        side = "old" if age > 0 else "ahead of this clock"
        raise WebhookError(f"the message is {abs(age):.0f} seconds {side}: it may be a replay")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{id}.{written}.".encode() + content
    secrets = [secret] if isinstance(secret, str) else secret
    right = [hmac.digest(_key(each), signed, "sha256") for each in secrets]
    parts = [each.partition(",") for each in signatures.split()[:20]]
    found_signatures = [_decoded(text) for version, _, text in parts if version == _VERSION]
    # Each is compared in a time that says nothing about it.
    if not any(
        each is not None and hmac.compare_digest(each, wanted)
        for each in found_signatures
        for wanted in right
    ):
        raise WebhookError("no signature of the message is by this secret")
    try:
        return WebhookMessage(id, timestamp, msgspec.json.decode(content))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise WebhookError("the body of the message is not JSON") from None


def _key(secret: str) -> bytes:
    found = _decoded(secret.removeprefix(_PREFIX))
    if not found:
        raise WebhookError(f"the secret of a webhook is {_PREFIX} and base64")
    return found


def _decoded(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
