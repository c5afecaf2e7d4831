"""A campaign of random trials: its seed, how much was tried, and its report."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.soak_report import record, seed

SEED = seed()


class Campaign:
    """Counts what was tried."""

    def __init__(self, kind: str) -> None:
        self.draw = random.Random(f"{kind} {SEED}")
        self.tried = 0


@contextmanager
def campaign(name: str, kind: str = "") -> Iterator[Campaign]:
    """Reports at the end. A failed trial raises, and ends the campaign."""
    running, began, failed = Campaign(kind or name), time.monotonic(), 1
    try:
        yield running
        failed = 0
    finally:
        record(name, running.tried, failed, time.monotonic() - began)
