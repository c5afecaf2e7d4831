"""Signatures of webhooks, by the Standard Webhooks specification.

The receiver computes the same HMAC over the id, the time and the body, and knows then who sent the
body and when. During a rotation, a message carries a signature by each secret.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence

from tamis.errors import BrokerError

PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64  # bytes of a secret, as the specification says


def read_secret(text: str) -> bytes:
    """The bytes of a secret."""
    try:
        found = b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise BrokerError(f"the secret of a sink is {PREFIX} and base64") from None
    if not _SHORTEST <= len(found) <= _LONGEST:
        raise BrokerError(f"the secret of a sink has {_SHORTEST} to {_LONGEST} bytes")
    return found


def sign(keys: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a message: its id, the time in seconds, and a signature by each secret."""
    content = f"{message_id}.{timestamp}.".encode() + body
    found = [
        "v1," + b64encode(hmac.digest(read_secret(key), content, "sha256")).decode() for key in keys
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(found),
    }
