"""The times of single changes and matches while subscriptions are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tamis.lab.plots.style import BATCH, Strip, label, legend, tidy
from tamis.lab.results.records import ChurnResult, Result

_MARKS = (("p50", "o"), ("p99", "D"), ("most", "|"))
_ROW = 0.3  # inches


def strip(results: Sequence[Result]) -> Strip | None:
    """A panel for each result: the median, the 99th percentile and the longest time."""
    churns = [each for each in results if isinstance(each, ChurnResult)]
    return Strip(1 + 5 * len(churns), 1.9 + 4 * _ROW, partial(_draw, churns)) if churns else None


def _draw(churns: Sequence[ChurnResult], part: Any) -> None:
    from matplotlib.lines import Line2D

    for panel, each in zip(part.subplots(1, len(churns), squeeze=False)[0], churns, strict=True):
        kinds = each.spreads()
        for place, spread in enumerate(kinds.values()):
            panel.plot([spread.p50, spread.most], [place, place], color=BATCH, linewidth=0.8)
            for name, mark in _MARKS:
                panel.plot(getattr(spread, name), place, mark, color=BATCH, markersize=5)
            label(panel, spread.most, place)
        panel.set_yticks(range(len(kinds)), list(kinds))
        panel.set_ylim(len(kinds) - 0.4, -0.6)
        panel.set_xscale("log")
        panel.set_xlabel("µs")
        tidy(panel, "x")
        panel.set_title(
            f"{each.workload}, {each.matcher}, through the {each.through}\n"
            f"{each.replaced:,} of {each.subscriptions:,} subscriptions replaced",
            fontsize=10,
        )
    named = {"p50": "median", "p99": "99th percentile", "most": "longest"}
    legend(
        part,
        [Line2D([], [], color=BATCH, marker=m, linestyle="", label=named[n]) for n, m in _MARKS],
    )
