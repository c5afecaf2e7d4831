"""Sinks: where the notifications of a subscription go, and what is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tamis.broker.delivery.sink_address import SinkError, check_url
from tamis.broker.preparation import checked_text

EVENT, NOTHING = "event", "none"
_MOST = 100  # attributes in a body


class Sink(NamedTuple):
    """A webhook."""

    url: str
    body: str | tuple[str, ...] = EVENT  # the whole event, nothing of it, or some attributes

    def to_text(self) -> str:
        """As the log keeps it."""
        body = self.body if isinstance(self.body, str) else list(self.body)
        return json.dumps({"url": self.url, "body": body}, ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> Sink:
        """From the text in the log."""
        try:
            return cls.of(json.loads(text))
        except ValueError as why:
            raise SinkError(f"the sink in the log cannot be read: {why}") from None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Sink:
        """From what a subscriber sends; raises `SinkError` for anything else."""
        url, body = given.get("url"), given.get("body", EVENT)
        unknown = given.keys() - {"url", "body"}
        if not isinstance(url, str) or unknown:
            raise SinkError("a sink has a url, and a body: event, none, or a list of attributes")
        check_url(url)
        if isinstance(body, list):
            if len(body) > _MOST or not all(isinstance(each, str) for each in body):
                raise SinkError(f"the body of a sink lists at most {_MOST} attributes")
            for each in body:
                checked_text(each, "the body of the sink")
            return cls(url, tuple(body))
        if body not in (EVENT, NOTHING):
            raise SinkError(f"the body of a sink is {EVENT}, {NOTHING} or a list of attributes")
        return cls(url, body)


def message_body(
    sink: Sink, subscription: int | str, sequence: int, moment: str, event: str | None
) -> bytes:
    """The JSON that is sent."""
    data: dict[str, Any] = {"sequence": sequence, "subscription": subscription}
    if event is not None and sink.body == EVENT:
        data["event"] = msgspec.Raw(event.encode())
    elif event is not None and isinstance(sink.body, tuple):
        data["event"] = _some(json.loads(event), sink.body)
    return msgspec.json.encode({"type": "tamis.notification", "timestamp": moment, "data": data})


def _some(event: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Some attributes of an event; `a.b` is b in a nested object."""
    found: dict[str, Any] = {}
    for name in names:
        value: Any = event
        if name in event:
            value = event[name]
        else:
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            found[name] = value
    return found
