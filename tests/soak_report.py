"""What a campaign of random trials came to: a line of JSON in the file TAMIS_SOAK_REPORT names."""

from __future__ import annotations

import json
import os
from pathlib import Path


def record(campaign: str, tried: int, failed: int, seconds: float) -> None:
    """Note a campaign; without the variable, nothing is noted."""
    path = os.environ.get("TAMIS_SOAK_REPORT")
    if path:
        line = {"campaign": campaign, "tried": tried, "failed": failed, "seconds": seconds}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
