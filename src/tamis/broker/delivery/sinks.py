"""Sinks: where the notifications of a subscription go, and what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tamis.broker.cloud_events.context_attributes import DATA, SPECVERSION
from tamis.broker.delivery.sink_address import SinkError, check_url
from tamis.broker.notification_body import EVENT, Body, read_body, shape_event
from tamis.broker.sequence.clock import iso
from tamis.errors import BrokerError

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
PLAIN, CLOUD_EVENTS = FORMATS = ("tamis", "cloudevents")
NOTIFICATION, LEASE_ENDING = "tamis.notification", "tamis.lease-ending"


class Sink(NamedTuple):
    """A webhook, or a topic of Kafka. Without both, it says what readers of notifications get."""

    url: str | None
    body: Body = EVENT
    topic: str | None = None
    format: str = PLAIN

    def to_text(self) -> str:
        """As the log keeps it."""
        body = self.body if isinstance(self.body, str) else list(self.body)
        given: dict[str, Any] = {} if self.url is None else {"url": self.url}
        if self.topic is not None:
            given["kafka"] = {"topic": self.topic}
        if self.format != PLAIN:
            given["format"] = self.format
        return json.dumps({**given, "body": body}, ensure_ascii=False)

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
        url, kafka, body = given.get("url"), given.get("kafka"), given.get("body", EVENT)
        if given.keys() - {"url", "kafka", "body", "format"} or not isinstance(url, str | None):
            raise SinkError(
                "a sink has a url or a topic of Kafka, a body (event, none, or a list of "
                "attributes), and a format"
            )
        if kafka is not None and url is not None:
            raise SinkError("a sink is a webhook or a topic of Kafka, not both")
        if url is not None:
            check_url(url)
        form = given.get("format", PLAIN)
        if form not in FORMATS or (form != PLAIN and url is None):
            raise SinkError(
                f"the format of a webhook is {' or '.join(FORMATS)}; other sinks have no format"
            )
        return cls(url, read_body(body), None if kafka is None else _topic(kafka), form)

    def replaces(self, earlier: str | None) -> None:
        """Refuse to replace a webhook by a topic, or a topic by a webhook.

        Each kind of sink has a cursor of its own. What is between them would be lost.
        """
        before = None if earlier is None else Sink.read(earlier)
        if before is not None and (
            (before.url is not None and self.topic is not None)
            or (before.topic is not None and self.url is not None)
        ):
            raise SinkError(
                "a subscription keeps the kind of its sink, a webhook or a topic; subscribe anew "
                "for another"
            )


def is_topic(text: str) -> bool:
    """Whether a sink in the log is a topic of Kafka."""
    try:
        return Sink.read(text).topic is not None
    except BrokerError:
        return False


def _topic(given: Any) -> str:
    """A topic as a subscriber names it. Brokers are not for subscribers to name."""
    if not isinstance(given, Mapping) or given.keys() != {"topic"}:
        raise SinkError('a Kafka sink is {"topic": NAME}')
    topic = given["topic"]
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise SinkError(
            "the name of a topic has 1 to 249 letters, digits, dots, underscores and hyphens"
        )
    return topic


def message_body(
    sink: Sink, subscription: int | str, sequence: int, moment: str, event: str | None
) -> bytes:
    """The JSON that is sent: a notification, or the warning that a lease ends.

    In the format of CloudEvents, `event` is the event as a CloudEvent.
    """
    if sink.format == CLOUD_EVENTS:
        return _cloud_event(sink, subscription, sequence, moment, event)
    if sequence < 0:
        data = _lease_end(subscription, sequence)
        return msgspec.json.encode({"type": LEASE_ENDING, "timestamp": moment, "data": data})
    data = {"sequence": sequence, "subscription": subscription}
    shown = shape_event(event, sink.body)
    if shown is not None:
        data["event"] = msgspec.Raw(shown.encode())
    return msgspec.json.encode({"type": NOTIFICATION, "timestamp": moment, "data": data})


def _cloud_event(
    sink: Sink, subscription: int | str, sequence: int, moment: str, event: str | None
) -> bytes:
    """The event as it was published, with the subscription and the sequence as extensions."""
    found: dict[str, Any] = {
        "specversion": SPECVERSION,
        "id": str(sequence),
        "source": "urn:tamis",
        "type": NOTIFICATION,
        "time": moment,
    }
    if event is not None:
        found = msgspec.json.decode(event.encode(), type=dict[str, msgspec.Raw])
        data = found.pop(DATA, None)
        shown = None if data is None else shape_event(bytes(data).decode(), sink.body)
        if shown is not None:
            found[DATA] = msgspec.Raw(shown.encode())
    found["tamissubscription"] = str(subscription)
    if sequence < 0:
        found |= {"id": f"lease{sequence}.{subscription}", "type": LEASE_ENDING}
        found[DATA] = _lease_end(subscription, sequence)
    else:
        found["tamissequence"] = str(sequence)
    return msgspec.json.encode(found)


def _lease_end(subscription: int | str, sequence: int) -> dict[str, Any]:
    return {"subscription": subscription, "until": iso(-sequence)}
