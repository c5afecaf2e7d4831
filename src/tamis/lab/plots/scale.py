"""Time by number of subscriptions, on two logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import Any

from tamis.lab.plots.style import COLOURS, Strip, legend, line_key, panels, tidy
from tamis.lab.results.records import Result, ScaleResult


def strip(results: Sequence[Result]) -> Strip | None:
    """A panel for each workload; the gray line is linear growth."""
    points = [each for each in results if isinstance(each, ScaleResult)]
    titles = list(dict.fromkeys(each.workload for each in points))
    return Strip(1 + 5 * len(titles), 4.6, partial(_draw, titles, points)) if points else None


def _draw(titles: Sequence[str], points: Sequence[ScaleResult], part: Any) -> None:
    matchers = list(dict.fromkeys(each.matcher for each in points))
    colours = dict(zip(matchers, cycle(COLOURS), strict=False))
    for panel, title in panels(part, titles):
        for name in matchers:
            curve = [each for each in points if (each.workload, each.matcher) == (title, name)]
            if curve:
                _curve(panel, curve, colours[name])
        panel.set_xscale("log")
        panel.set_yscale("log")
        sizes = sorted({each.subscriptions for each in points if each.workload == title})
        panel.set_xticks(sizes, [_size_label(size) for size in sizes])
        panel.set_xticks([], minor=True)
        panel.set_xlabel("subscriptions")
        panel.set_ylabel("µs an event")
        tidy(panel, "both")
        panel.set_title(title, fontsize=11)
    keys = [
        line_key(f"{name}, {how}", colours[name], line, "o")
        for name in matchers
        for how, line in (("alone", ":"), ("in batches", "-"))
    ]
    legend(part, [*keys, line_key("linear", "gray", "--")])


def _curve(panel: Any, curve: Sequence[ScaleResult], colour: str) -> None:
    sizes = [each.subscriptions for each in curve]
    batch = [each.batch_us for each in curve]
    panel.plot(sizes, [each.alone_us for each in curve], "o:", color=colour)
    panel.plot(sizes, batch, "o-", color=colour)
    guide = [batch[0] * size / sizes[0] for size in sizes]
    panel.plot(sizes, guide, "--", color="gray", linewidth=0.9, zorder=0)


def _size_label(size: int) -> str:
    return f"{size / 1e6:g} M" if size >= 1e6 else f"{size:,}"
