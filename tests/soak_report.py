"""What a campaign of trials has tried, as a line of JSON in the file TAMIS_SOAK_REPORT."""

from __future__ import annotations

import json
import os
from pathlib import Path


def record(campaign: str, tried: int, failed: int, seconds: float) -> None:
    """Append a line about a campaign; nothing without the variable."""
    file = os.environ.get("TAMIS_SOAK_REPORT")
    if file:
        line = {"campaign": campaign, "tried": tried, "failed": failed, "seconds": seconds}
        with Path(file).open("a") as report:
            report.write(json.dumps(line) + "\n")
