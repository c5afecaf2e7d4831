"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tamis.broker.broker import Limits


@dataclass(frozen=True)
class Settings:
    """How a server is run."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8080
    schema: Path | None = None
    body_bytes: int = 16 << 20
    longest_wait: float = 60.0  # seconds that a reader may wait for notifications
    limits: Limits = field(default_factory=Limits)
