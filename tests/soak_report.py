"""What a campaign of `make soak` asks of its test, and what the test reports back.

    TAMIS_SOAK_SEED      differs from round to round
    TAMIS_SOAK_REPORT    the file to which `record` appends one line of JSON

Without them, a campaign is an ordinary test: a short one, the same on every run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path


def seed() -> int:
    """The seed of this round."""
    return int(os.environ.get("TAMIS_SOAK_SEED", "0"))


def record(campaign: str, tried: int, failed: int, seconds: float) -> None:
    """Say how much of a campaign was tried, and how much of that failed."""
    report = os.environ.get("TAMIS_SOAK_REPORT")
    if report is None:
        return
    line = {"campaign": campaign, "tried": tried, "failed": failed, "seconds": seconds}
    with Path(report).open("a") as file:
        file.write(json.dumps(line) + "\n")
