"""Metrics that are read when Prometheus comes: lengths, lags, counts and space."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from tamis.broker.broker import Broker
from tamis.broker.metrics import REGISTRY
from tamis.errors import TamisError
from tamis.service.observation.operator_readings import OperatorReadings
from tamis.store.log import Log

ProcessCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)


class Reading(NamedTuple):
    """A metric and how to read it."""

    name: str
    help: str
    read: Callable[[Broker], float]


def _matching_lag(broker: Broker) -> float:
    """Seconds since the first row that is not matched was appended."""
    return lag_seconds(broker.log, broker.matching.matched)


def lag_seconds(log: Log, matched: int) -> float:
    """How long the row with a number is in the log; 0 if there is no such row yet."""
    matched = max(matched, log.begin)
    if matched >= log.end:
        return 0.0
    (first, *_) = log.boundaries(matched, matched + 1)
    return max(0.0, time.time() - int(getattr(first, "appended", 0)) / 1e6)


READINGS = (
    Reading("log_end", "The next sequence number", lambda b: b.log.end),
    Reading("log_begin", "The first sequence number that is kept", lambda b: b.log.begin),
    Reading("live_subscriptions", "Live subscriptions", lambda b: b.state.count()),
    Reading(
        "matching_lag_events",
        "Rows of the log that are not matched yet",
        lambda b: max(0, b.log.end - b.matching.matched),
    ),
    Reading("matching_lag_seconds", "Age of the first row that is not matched yet", _matching_lag),
    Reading(
        "retries_waiting", "Webhooks that wait for a retry", lambda b: b.webhooks.outbox.count()
    ),
    Reading(
        "dead_letters", "Webhooks that were given up", lambda b: b.webhooks.outbox.dead_count()
    ),
    Reading(
        "disk_free_bytes",
        "Free space on the disk of the data folder",
        lambda b: shutil.disk_usage(b.folder.folder).free,
    ),
)


class BrokerReadings(Collector):
    """The readings of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self) -> Iterable[Metric]:
        return []  # so that registering reads nothing

    def collect(self) -> Iterable[Metric]:
        for each in READINGS:
            try:
                value = float(each.read(self._broker))
            except (TamisError, OSError):  # the others are still worth a scrape
                continue
            yield GaugeMetricFamily(f"tamis_{each.name}", each.help, value=value)


def exposition(broker: Broker) -> bytes:
    """All metrics in the text form of Prometheus."""
    own = CollectorRegistry()
    own.register(BrokerReadings(broker))
    own.register(OperatorReadings(broker))
    return generate_latest(REGISTRY) + generate_latest(own)
