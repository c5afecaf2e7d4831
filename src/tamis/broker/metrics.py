"""What the service counts and times, for Prometheus.

Each metric is one line here, and `docs/operations.md` has the same table. Parts of the broker count
where things happen, once for a group or a batch and not for each event. What can be asked when
Prometheus comes is not here but in `tamis.service.observation.readings`. No metric has a label for
a subscription or an owner: their number has no bound.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()
_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536)
_SLOW = (1, 2.5, 5, 10, 30, 60, 120, 300, 600)


def _counter(name: str, help: str, *labels: str) -> Counter:
    return Counter(f"tamis_{name}", help, labels, registry=REGISTRY)


def _gauge(name: str, help: str) -> Gauge:
    return Gauge(f"tamis_{name}", help, registry=REGISTRY)


def _histogram(
    name: str, help: str, buckets: tuple[float, ...] = _FAST, labels: tuple[str, ...] = ()
) -> Histogram:
    return Histogram(f"tamis_{name}", help, labels, buckets=buckets, registry=REGISTRY)


PUBLISHES = _counter("publishes", "Publishes that are on disk")
EVENTS = _counter("events", "Events that are on disk")
EVENT_BYTES = _counter("event_bytes", "Bytes of the events that are on disk, as JSON")
CHANGES = _counter("changes", "Changes of subscriptions that are on disk")
LEASES_ENDED = _counter("leases_ended", "Subscriptions whose lease ended")
COMMIT_QUEUE = _gauge("commit_queue", "Requests that wait for the sequencer")
GROUP_ROWS = _histogram("group_rows", "Rows that were committed together", _ROWS)
COMMIT_SECONDS = _histogram("commit_seconds", "Time to write and sync a group")
MATCHES = _counter("matches", "Pairs of an event and a subscription that were found")
MATCHING_SECONDS = _histogram("matching_seconds", "Time to match a batch of events")
NOTIFICATIONS_WRITTEN = _counter("notifications_written", "Notifications that are on disk")
VERSION_SECONDS = _histogram("version_compile_seconds", "Time to compile a version", _SLOW)
WEBHOOK_ATTEMPTS = _counter("webhook_attempts", "Attempts to send a webhook, by outcome", "outcome")
WEBHOOKS_DROPPED = _counter(
    "webhooks_dropped", "Webhooks that were given up when their owner had too many dead letters"
)
OPEN_STREAMS = _gauge("open_streams", "Streams of notifications that are open")
REFUSED = _counter("refused_requests", "Requests that were refused, by reason", "reason")
HTTP_REQUESTS = _counter(
    "http_requests", "HTTP requests, by route, method and status", "route", "method", "status"
)
HTTP_SECONDS = _histogram(
    "http_seconds", "Time until an HTTP answer begins, by route", labels=("route",)
)
GRPC_CALLS = _counter(
    "grpc_calls", "gRPC calls that have ended, by method and code", "method", "code"
)
