"""Where the notifications of Kafka sinks may go: the brokers and topics that a site allows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tamis.broker.setting import setting
from tamis.errors import BrokerError, SettingError


@dataclass(frozen=True)
class KafkaSettings:
    """A Kafka cluster. Subscribers choose among its topics, and never name brokers."""

    brokers: str | None = setting(None, "Kafka brokers for sinks: HOST:PORT, separated by commas.")
    topics: tuple[str, ...] = setting((), "Kafka topics that sinks may name; may be repeated.")
    properties: Path | None = setting(
        None, "File of librdkafka properties, for encryption and passwords."
    )

    def check(self) -> None:
        """Raise `SettingError` for topics without brokers, or brokers without topics."""
        if (self.brokers is None) == bool(self.topics):
            raise SettingError("kafka-brokers and kafka-topics go together: give both or neither")

    @property
    def names(self) -> frozenset[str]:
        """The topics; a text may hold several, with commas between them."""
        parts = (name.strip() for each in self.topics for name in each.split(","))
        return frozenset(filter(None, parts))

    def accept(self, topic: str) -> None:
        """Refuse a topic that is not allowed."""
        if topic not in self.names:
            raise BrokerError(f"the topic {topic!r} is not among those that this service allows")
