"""The times of single changes and matches while subscriptions are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tamis.lab.plots.style import BATCH, Strip, label, legend, line_key, name_rows, panels
from tamis.lab.results.records import ChurnResult, Result

_MARKS = (("p50", "o", "median"), ("p99", "D", "99th percentile"), ("most", "|", "longest"))
_ROW = 0.3  # inches


def strip(results: Sequence[Result]) -> Strip | None:
    """A panel for each result: the median, the 99th percentile and the longest time."""
    churns = [each for each in results if isinstance(each, ChurnResult)]
    return Strip(1 + 5 * len(churns), 1.9 + 4 * _ROW, partial(_draw, churns)) if churns else None


def _draw(churns: Sequence[ChurnResult], part: Any) -> None:
    for panel, each in panels(part, churns):
        kinds = each.spreads()
        for place, spread in enumerate(kinds.values()):
            panel.plot([spread.p50, spread.most], [place, place], color=BATCH, linewidth=0.8)
            for name, mark, _ in _MARKS:
                panel.plot(getattr(spread, name), place, mark, color=BATCH, markersize=5)
            label(panel, spread.most, place)
        name_rows(panel, list(kinds), "µs")
        panel.set_title(
            f"{each.workload}, {each.matcher}, through the {each.through}\n"
            f"{each.replaced:,} of {each.subscriptions:,} subscriptions replaced",
            fontsize=10,
        )
    legend(part, [line_key(text, BATCH, marker=mark) for _, mark, text in _MARKS])
