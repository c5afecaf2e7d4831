"""A campaign of power cuts: how many, with which seed, and its report."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.store import Log
from tamis.store import head as head_file
from tests.soak_report import record

SEED = int(os.environ.get("TAMIS_SOAK_SEED", "0"))


def cuts(usual: int) -> int:
    """How many power cuts a test simulates: TAMIS_POWER_LOSSES, or as many as usual."""
    return int(os.environ.get("TAMIS_POWER_LOSSES", usual))


class Campaign:
    """Counts what was tried."""

    def __init__(self, kind: str) -> None:
        self.draw = random.Random(f"{kind} {SEED}")
        self.tried = 0


@contextmanager
def campaign(kind: str) -> Iterator[Campaign]:
    """Reports at the end. A failed trial raises, and ends the campaign."""
    running, began, failed = Campaign(kind), time.monotonic(), 1
    try:
        yield running
        failed = 0
    finally:
        record("power-losses", running.tried, failed, time.monotonic() - began)


def start_machine_again(log: Log) -> None:
    """Make the head of a log one of an earlier start of the machine, as it is after a power cut."""
    with (log.folder / "head").open("r+b") as file:
        slots = head_file._slots(file.fileno(), bytes.fromhex(str(log.identity)))
        for at, slot in enumerate(slots):
            if slot is not None:
                head_file._write(file.fileno(), slot._replace(boot=bytes(16)), at)
