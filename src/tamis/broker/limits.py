"""Limits of the broker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one owner, and of one event."""

    subscriptions: int = 1_000_000
    event_bytes: int = 64 << 10
    attributes: int = 1000
    events: int = 100_000  # in one publish
    metadata_bytes: int = 16 << 10
