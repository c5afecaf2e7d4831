"""Webhooks as a receiver verifies them, compared with the library of the specification."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tamis.broker.delivery.signature import sign
from tamis.client.webhooks import WebhookError, verify

SECRET = "whsec_" + b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + b64encode(bytes(32)).decode()
BODY = b'{"type":"tamis.notification","data":{"sequence":1,"title":"\xc3\xa9"}}'


def _headers(secret: str = SECRET, moment: datetime | None = None) -> dict[str, str]:
    moment = moment or datetime.now(UTC)
    return sign([secret], "msg.1", int(moment.timestamp()), BODY)


def test_both_libraries_accept_what_the_service_signs() -> None:
    headers = _headers()
    message = verify(headers, BODY, SECRET)
    assert message.id == "msg.1"
    assert message.body == json.loads(BODY) == Webhook(SECRET).verify(BODY, headers)


def test_what_the_library_signs_is_accepted() -> None:
    now = datetime.now(UTC)
    signature = Webhook(SECRET).sign("m", now, BODY.decode())
    headers = {
        "Webhook-Id": "m",
        "Webhook-Timestamp": str(int(now.timestamp())),
        "Webhook-Signature": f"v1a,abc {signature}",
    }
    assert verify(headers, BODY.decode(), [OTHER, SECRET]).id == "m"


@pytest.mark.parametrize(
    ("change", "secret", "words"),
    [
        ({"webhook-id": "msg.2"}, SECRET, "no signature"),
        ({"webhook-id": ""}, SECRET, "needed"),
        ({"webhook-timestamp": "x"}, SECRET, "number"),
        ({"webhook-timestamp": "²"}, SECRET, "number"),
        ({"webhook-timestamp": "1"}, SECRET, "replay"),
        ({"webhook-timestamp": "99999999999"}, SECRET, "ahead"),
        ({"webhook-signature": "v1,AAAA"}, SECRET, "no signature"),
        ({"webhook-signature": "v2,AAAA"}, SECRET, "no signature"),
        ({"webhook-signature": "v1,é"}, SECRET, "no signature"),
        ({}, OTHER, "no signature"),
        ({}, "whsec_é", "base64"),
    ],
)
def test_both_libraries_refuse_the_rest(change: dict[str, str], secret: str, words: str) -> None:
    headers = _headers() | change
    with pytest.raises(WebhookError, match=words):
        verify(headers, BODY, secret)
    with pytest.raises((WebhookVerificationError, ValueError, IndexError)):
        Webhook(secret).verify(BODY, headers)


def test_a_replay_is_refused_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    headers: dict[str, Any] = _headers(moment=datetime.fromtimestamp(1_000_000, UTC))
    verify(headers, BODY, SECRET, now=1_000_300)
    verify(headers, BODY, SECRET, now=999_700)
    for now in (1_000_301, 999_699):
        with pytest.raises(WebhookError):
            verify(headers, BODY, SECRET, now=now)
