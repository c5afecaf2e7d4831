"""Sinks: where the notifications of a subscription go, and what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tamis.broker.delivery.sink_address import SinkError, check_url
from tamis.broker.notification_body import EVENT, Body, read_body, shape_event
from tamis.broker.sequence.clock import iso

NOTIFICATION, LEASE_ENDING = "tamis.notification", "tamis.lease-ending"


class Sink(NamedTuple):
    """A webhook. Without a URL, it only says what those get who read notifications."""

    url: str | None
    body: Body = EVENT

    def to_text(self) -> str:
        """As the log keeps it."""
        body = self.body if isinstance(self.body, str) else list(self.body)
        given = {"body": body} if self.url is None else {"url": self.url, "body": body}
        return json.dumps(given, ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> Sink:
        """From the text in the log."""
        try:
            return cls.of(json.loads(text))
        except ValueError as why:
            raise SinkError(f"the sink in the log cannot be read: {why}") from None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Sink:
        """From what a subscriber sends; raises `BrokerError` for anything else."""
        url, body = given.get("url"), given.get("body", EVENT)
        if given.keys() - {"url", "body"} or not isinstance(url, str | None):
            raise SinkError("a sink has a url, and a body: event, none, or a list of attributes")
        if url is not None:
            check_url(url)
        return cls(url, read_body(body))


def message_body(
    sink: Sink, subscription: int | str, sequence: int, moment: str, event: str | None
) -> bytes:
    """The JSON that is sent: a notification, or the warning that a lease ends."""
    if sequence < 0:
        data: dict[str, Any] = {"subscription": subscription, "until": iso(-sequence)}
        return msgspec.json.encode({"type": LEASE_ENDING, "timestamp": moment, "data": data})
    data = {"sequence": sequence, "subscription": subscription}
    shown = shape_event(event, sink.body)
    if shown is not None:
        data["event"] = msgspec.Raw(shown.encode())
    return msgspec.json.encode({"type": NOTIFICATION, "timestamp": moment, "data": data})
