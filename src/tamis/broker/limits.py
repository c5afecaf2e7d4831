"""Limits of the broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tamis.broker.setting import Bytes, setting


@dataclass(frozen=True)
class Limits:
    """Limits of one owner, and of one event. Each is a setting of the service."""

    subscriptions: int = setting(1_000_000, "Most live subscriptions per owner.", least=0)
    event_bytes: Bytes = setting(Bytes(64 << 10), "Largest event.", least=1)
    attributes: int = setting(1000, "Most attributes in an event.", least=1)
    events: int = setting(100_000, "Most events in a publish.", least=1)
    metadata_bytes: Bytes = setting(
        Bytes(16 << 10), "Largest metadata of a subscription, as JSON.", least=0
    )
    bulk_subscriptions: int = setting(50_000, "Most subscriptions in a bulk request.", least=1)
    pending_deliveries: int = setting(
        100_000, "Most webhooks per owner that wait for a retry.", least=0
    )
    dead_letters: int = setting(
        100_000, "Most dead letters per owner; further ones are not kept.", least=0
    )
    lease_warning: timedelta = setting(
        timedelta(hours=1), "How long before the end of a lease its subscriber is warned."
    )
    redundancy: int = setting(
        1_000_000, "Most live subscriptions of which a redundancy report is made.", least=0
    )
    requests: int | None = setting(
        None,
        "Most requests per second from a caller; by default, 1,000 from another machine.",
        least=1,
    )
    bytes: Bytes | None = setting(
        None,
        "Most bytes per second from a caller; by default, 64 MiB from another machine.",
        least=1,
    )
