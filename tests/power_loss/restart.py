"""After a power cut: how many are tried, and a machine that has started again."""

from __future__ import annotations

import os

from tamis.store import Log
from tamis.store import head as head_file

CAMPAIGN = "power-losses"


def cuts(usual: int) -> int:
    """How many power cuts a test simulates: TAMIS_POWER_LOSSES, or as many as usual."""
    return int(os.environ.get("TAMIS_POWER_LOSSES", usual))


def start_machine_again(log: Log) -> None:
    """Make the head of a log one of an earlier start of the machine, as it is after a power cut."""
    with (log.folder / "head").open("r+b") as file:
        slots = head_file._slots(file.fileno(), bytes.fromhex(str(log.identity)))
        for at, slot in enumerate(slots):
            if slot is not None:
                head_file._write(file.fileno(), slot._replace(boot=bytes(16)), at)
