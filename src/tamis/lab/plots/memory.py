"""The memory of a process over time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tamis.lab.plots.style import BATCH, Strip, panels, tidy
from tamis.lab.results.records import MemoryCourse, Result


def strip(results: Sequence[Result]) -> Strip | None:
    """A panel for each process."""
    found = [each for each in results if isinstance(each, MemoryCourse)]
    return Strip(1 + 6 * len(found), 3.4, partial(_draw, found)) if found else None


def _draw(courses: Sequence[MemoryCourse], part: Any) -> None:
    for panel, each in panels(part, courses):
        panel.plot(each.at, [bytes / 1e9 for bytes in each.bytes], color=BATCH)
        panel.set_ylim(0, 1.15 * max(each.bytes) / 1e9)
        panel.set_xlabel("seconds")
        panel.set_ylabel("GB")
        panel.set_title(each.what, fontsize=11)
        tidy(panel, "both")
