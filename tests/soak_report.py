"""Where campaigns of trials report how many were tried and how many failed."""

from __future__ import annotations

import json
import os
from pathlib import Path


def record(campaign: str, tried: int, failed: int, seconds: float) -> None:
    """Append a line to the file that TAMIS_SOAK_REPORT names; nothing without it."""
    path = os.environ.get("TAMIS_SOAK_REPORT")
    if path:
        said = {"campaign": campaign, "tried": tried, "failed": failed, "seconds": seconds}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
