"""Matchers on workloads: a panel for each workload, time an event on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tamis.lab.plots.style import (
    ALONE,
    BATCH,
    YARDSTICK_ALONE,
    YARDSTICK_BATCH,
    Strip,
    colour_key,
    label,
    legend,
    line_key,
    name_rows,
    panels,
)
from tamis.lab.results.records import YARDSTICK, MatcherResult, RefusedResult, Result

_ROW = 0.34  # inches
_BAR = 0.4  # share of a row; a row has two bars


def strip(results: Sequence[Result]) -> Strip | None:
    """Light bars are events one at a time, dark bars events in batches."""
    titles = list(
        dict.fromkeys(each.workload for each in results if isinstance(each, MatcherResult))
    )
    if not titles:
        return None
    found = [
        each
        for each in results
        if isinstance(each, MatcherResult)
        or (isinstance(each, RefusedResult) and each.measurement == "match")
    ]
    rows = max(sum(each.workload == title for each in found) for title in titles)
    return Strip(1 + 5 * len(titles), 1.7 + _ROW * rows, partial(_draw, titles, found))


def _draw(titles: Sequence[str], found: Sequence[MatcherResult | RefusedResult], part: Any) -> None:
    for panel, title in panels(part, titles):
        _panel(panel, title, [each for each in found if each.workload == title])
    keys = [colour_key("one event at a time", ALONE), colour_key("in batches", BATCH)]
    if any(each.matcher == YARDSTICK for each in found):
        keys.append(line_key("brute force in NumPy", YARDSTICK_BATCH, "--"))
    legend(part, keys)


def _panel(panel: Any, title: str, found: Sequence[MatcherResult | RefusedResult]) -> None:
    """Draw a workload: the fastest in batches at the top, refusals at the bottom."""
    measured = sorted(
        (each for each in found if isinstance(each, MatcherResult)), key=lambda each: each.batch_ms
    )
    refused = [each for each in found if isinstance(each, RefusedResult)]
    for place, each in enumerate(measured):
        mine = each.matcher == YARDSTICK
        alone, batch = each.alone_ms * 1e3, each.batch_ms * 1e3
        panel.barh(place - 0.2, alone, _BAR, color=YARDSTICK_ALONE if mine else ALONE)
        panel.barh(place + 0.2, batch, _BAR, color=YARDSTICK_BATCH if mine else BATCH)
        label(panel, alone, place - 0.2)
        label(panel, batch, place + 0.2)
        if mine:
            panel.axvline(batch, color=YARDSTICK_BATCH, linewidth=0.9, linestyle="--", zorder=0)
    times = [value for each in measured for value in (each.alone_ms * 1e3, each.batch_ms * 1e3)]
    low, high = min(times) / 2, max(times) * 3  # the numbers need space behind the bars
    for place, _ in enumerate(refused, len(measured)):
        panel.text(low * 1.1, place, "refused", verticalalignment="center", color="gray")
    names = [each.matcher for each in measured] + [each.matcher for each in refused]
    name_rows(panel, names, "µs an event")
    panel.set_xlim(low, high)
    panel.set_title(f"{title}, {measured[0].subscriptions:,} subscriptions", fontsize=11)
