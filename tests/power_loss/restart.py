"""After a power cut: how many are tried, and a machine that has started again."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.store import Log
from tamis.store import head as head_file
from tests.campaign import SEED, Campaign
from tests.power_loss.disk import power_cuts, recorded_run

CAMPAIGN = "power-losses"


def cuts(usual: int) -> int:
    """How many power cuts a test simulates: TAMIS_POWER_LOSSES, or as many as usual."""
    return int(os.environ.get("TAMIS_POWER_LOSSES", usual))


def cut_runs(
    running: Campaign, module: str, turns: int, recorder: Path, folder: Path, most: int, each: int
) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """Run a program with seed after seed, and cut the power of each run at some moments.

    Gives the folder after each cut, and what had been acknowledged.
    """
    seed = 1000 * SEED
    while running.tried < most:
        seed += 1
        place, record = folder / "place", folder / "record"
        place.mkdir()
        program = [sys.executable, "-m", module, str(place), str(seed), str(turns)]
        recorded_run(program, recorder, place, record)
        left = min(each, most - running.tried)
        for acknowledged in power_cuts(record, place, place, running.draw, left):
            running.tried += 1
            yield place, acknowledged
        shutil.rmtree(place)
        record.unlink()


def start_machine_again(log: Log) -> None:
    """Make the head of a log one of an earlier start of the machine, as it is after a power cut."""
    with (log.folder / "head").open("r+b") as file:
        slots = head_file._slots(file.fileno(), bytes.fromhex(str(log.identity)))
        for at, slot in enumerate(slots):
            if slot is not None:
                head_file._write(file.fileno(), slot._replace(boot=bytes(16)), at)
