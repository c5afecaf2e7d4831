"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from tamis.broker.limits import Limits


@dataclass(frozen=True)
class Settings:
    """How a server is run."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8080
    schema: Path | None = None
    anonymous: bool = True  # whether callers without a key may publish and subscribe
    rebuild: bool = False  # whether to build the state database anew
    allow_sinks: tuple[str, ...] = ()  # addresses, networks and hosts beyond public ones
    body_bytes: int = 16 << 20
    longest_wait: float = 60.0  # seconds that a reader may wait for notifications
    limits: Limits = field(default_factory=Limits)


def is_loopback(host: str) -> bool:
    """Whether only this machine can call a server that listens on a host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
