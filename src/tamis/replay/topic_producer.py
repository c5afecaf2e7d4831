"""Messages to topics of Kafka: in order for each key, and acknowledged before the next page.

The producer is idempotent: within its life, a retry adds no message twice and changes no order. A
message is retried until the brokers take it or refuse it, however long they are away. After a crash
the caller sends again from its cursor: a message may come twice, with the same id in its header.

The order of a key has one exception. Where a topic takes smaller messages than `message.max.bytes`
of the producer, brokers refuse whole batches, whose other messages then come late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import StoreError, TamisError

ID_HEADER = "tamis-id"
_TURN = 0.1  # seconds between two looks at what to do
_DEFAULTS = {
    "linger.ms": "5",
    "reconnect.backoff.max.ms": "2000",  # brokers that come back are found soon
}
_FORCED = {
    "enable.idempotence": "true",  # also: acknowledged by all replicas, and in order
    "message.timeout.ms": "0",  # a message is not given up: others after it would overtake it
}
# The brokers will not take such a message at the next attempt either.
_REFUSALS = (
    "MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_MSG_SIZE", "RECORD_LIST_TOO_LARGE",
    "INVALID_RECORD", "TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED",
    "POLICY_VIOLATION", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION",
)  # fmt: skip

_OF_A_BATCH = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_MSG")
_LOG = logging.getLogger("tamis.kafka")  # what librdkafka has to say


class TopicMessage(NamedTuple):
    """A notification on its way to a topic."""

    topic: str
    key: str
    value: bytes
    id: str


class TopicsError(StoreError):
    """Messages that may not have arrived: the caller sends them again."""


class TopicProducer:
    """Sends messages to the topics of a cluster. One thread uses it.

    `properties` are those of librdkafka, for encryption and passwords. `stopping` ends a wait.
    """

    def __init__(
        self,
        brokers: str,
        properties: Mapping[str, str] | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        given = dict(properties or {})
        for name in _FORCED.keys() & given.keys():
            raise TamisError(f"the property {name} of Kafka cannot be changed: leave it out")
        self._config = {**_DEFAULTS, **given, "bootstrap.servers": brokers, **_FORCED}
        self._stopping = stopping
        self._producer: Any = None
        self.unreachable: str | None = None  # why no broker answers now
        self._open()

    def _open(self) -> None:
        try:
            from confluent_kafka import KafkaException, Producer
        except ModuleNotFoundError:
            raise TamisError(
                "Kafka needs confluent-kafka: pip install 'tamis[kafka]' brings it"
            ) from None
        try:
            self._producer = Producer({**self._config, "error_cb": self._note}, logger=_LOG)
        except (KafkaException, ValueError, TypeError) as why:
            raise TamisError(f"the settings of Kafka are refused: {why}") from None

    def _note(self, error: Any) -> None:
        self.unreachable = str(error.str())

    def send(self, messages: Sequence[TopicMessage]) -> dict[int, str]:
        """Send messages and wait for their acknowledgement; those refused for good, by place.

        Raises `TopicsError` if some may not have arrived, or the wait was ended.
        """
        outcomes = self._deliver(messages)
        for at, error in outcomes.items():
            # The brokers refuse a batch of messages for the sake of one: which one is it?
            if error is not None and error.name() in _OF_A_BATCH and len(messages) > 1:
                outcomes[at] = self._deliver([messages[at]])[0]
        refused: dict[int, str] = {}
        for at, error in sorted(outcomes.items()):
            if error is None:
                self.unreachable = None
            elif error.name() in _REFUSALS:
                refused[at] = f"Kafka: {error.str()}"
            else:
                self._renew()
                raise TopicsError(f"Kafka: {error.str()}")
        return refused

    def _deliver(self, messages: Sequence[TopicMessage]) -> dict[int, Any]:
        """Send messages, and wait until each is acknowledged (None) or has an error."""
        outcomes: dict[int, Any] = {}
        for at, message in enumerate(messages):
            self._produce(at, message, outcomes)
        while len(outcomes) < len(messages):
            self._producer.poll(_TURN)
            self._check()
        return outcomes

    def _produce(self, at: int, message: TopicMessage, outcomes: dict[int, Any]) -> None:
        from confluent_kafka import KafkaException

        def done(at: int, error: Any, _: Any) -> None:
            outcomes[at] = error

        while True:
            try:
                self._producer.produce(
                    message.topic,
                    message.value,
                    message.key,
                    headers=[(ID_HEADER, message.id.encode())],
                    on_delivery=partial(done, at),
                )
            except BufferError:  # the queue is full: the brokers are slow, or away
                self._producer.poll(_TURN)
                self._check()
            except KafkaException as why:  # refused before it is sent
                outcomes[at] = why.args[0]
                return
            else:
                self._producer.poll(0)
                return

    def _check(self) -> None:
        if self._stopping():
            self._renew()
            raise TopicsError("stopped before Kafka has acknowledged all messages")

    def _renew(self) -> None:
        """Drop what is under way. The next producer does not know it, and the caller repeats it."""
        self._producer.purge()
        self._producer.flush(_TURN)
        self._open()

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(_TURN)


def read_properties(path: Path) -> dict[str, str]:
    """Properties from a file with a line `name=value` for each, as Kafka's own tools read it."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as why:
        raise TamisError(f"{path}: the properties of Kafka cannot be read: {why}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip()[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise TamisError(f"{path}: line {number} is not name=value")
        found[name.strip()] = value.strip()
    return found
