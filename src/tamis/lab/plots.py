"""Pictures of results. Plotting reads results and never measures anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tamis.lab.results import Contest

_ALONE, _BATCH, _YARDSTICK = "#c6dbef", "#2171b5", "#d94801"


def plot_contests(contests: Sequence[Contest], path: Path) -> Path | None:
    """Time an event of every matcher, a panel for each workload; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    titles = list(dict.fromkeys(each.workload for each in contests))
    names = list(dict.fromkeys(each.matcher for each in contests))
    figure = Figure(figsize=(5.2 * len(titles), 1.6 + 0.36 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(titles), squeeze=False)[0]
    for panel, title in zip(panels, titles, strict=True):
        mine = sorted((e for e in contests if e.workload == title), key=lambda e: -e.batch_ms)
        for place, each in enumerate(mine):
            colour = _YARDSTICK if each.batch_times == each.alone_times == 1.0 else _BATCH
            panel.barh(place + 0.2, each.alone_ms * 1e3, height=0.38, color=_ALONE)
            panel.barh(place - 0.2, each.batch_ms * 1e3, height=0.38, color=colour)
        panel.set_yticks(range(len(mine)), [each.matcher for each in mine])
        panel.set_xscale("log")
        panel.set_xlabel("µs an event")
        panel.grid(axis="x", which="both", alpha=0.25)
        panel.set_title(f"{title}, {mine[0].subscriptions:,} subscriptions")
        base = next((e for e in mine if e.matcher == "numpy"), None)
        if base is not None:
            panel.axvline(base.batch_ms * 1e3, color=_YARDSTICK, linewidth=0.8, linestyle="--")
    figure.suptitle("dark: in batches, light: one event at a time, orange: NumPy brute force")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
