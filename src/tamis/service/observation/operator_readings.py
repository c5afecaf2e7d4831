"""Metrics of operators and of Kafka, read when Prometheus comes.

Operators have a label each: whoever runs the service enables them, so they are few. Their constants
have none, since subscribers choose those.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tamis.broker.broker import Broker
from tamis.errors import TamisError

FAULTS = ("raised", "refused", "timeouts", "nonsense", "set_aside")
_COUNTS = {
    "calls": "Calls of an operator's function",
    "seconds": "Time that these calls took",
    "events": "Events for which an operator was asked",
    "hits": "Events that were answered by a remembered result",
}


class OperatorReadings(Collector):
    """The operators of one broker, and what it sends to Kafka."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self) -> Iterable[Metric]:
        return []  # so that registering reads nothing

    def collect(self) -> Iterable[Metric]:
        with suppress(TamisError):  # another process matches
            yield from self._operators()
        yield from self._kafka()

    def _operators(self) -> Iterable[Metric]:
        matching, enabled = self._broker.matching, sorted(self._broker.operators)
        left_out = len(matching.left_out)
        yield GaugeMetricFamily(
            "tamis_subscriptions_left_out", "Live subscriptions that are not matched", left_out
        )
        report = matching.report()
        for name, help in _COUNTS.items():
            family = CounterMetricFamily(f"tamis_operator_{name}", help, labels=["operator"])
            for each in enabled:
                family.add_metric([each], getattr(report[each], name))
            yield family
        faults = CounterMetricFamily(
            "tamis_operator_faults", "Events without an answer", labels=["operator", "kind"]
        )
        aside = GaugeMetricFamily(
            "tamis_operator_set_aside", "1 while an operator is not called", labels=["operator"]
        )
        for each in enabled:
            for kind in FAULTS:
                faults.add_metric([each, kind], getattr(report[each], kind))
            aside.add_metric([each], float(report[each].set_aside_for is not None))
        yield faults
        yield aside

    def _kafka(self) -> Iterable[Metric]:
        topics = self._broker.webhooks.topics
        if not topics.enabled:
            return
        yield CounterMetricFamily(
            "tamis_kafka_messages", "Messages that Kafka has acknowledged", topics.sent
        )
        yield GaugeMetricFamily(
            "tamis_kafka_unreachable",
            "1 while no broker of Kafka answers",
            float(topics.unreachable is not None),
        )
