"""The rows of peers: the factor to brute force in NumPy, and the goal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tamis.lab.plots.style import (
    ALONE,
    BATCH,
    YARDSTICK_BATCH,
    Strip,
    colour_key,
    label,
    legend,
    line_key,
    name_rows,
)
from tamis.lab.results.records import PeerResult, Result, Speed

_BITS = "#238b45"
_ROW = 0.75  # inches of a row
_BAR = 0.27  # share of a row; a row has up to three bars


def strip(results: Sequence[Result]) -> Strip | None:
    """Bars for single events, batches and bitmaps; a mark at the goal."""
    found = [each for each in results if isinstance(each, PeerResult)]
    return Strip(9, 1.4 + _ROW * len(found), partial(_draw, found)) if found else None


def _draw(found: Sequence[PeerResult], part: Any) -> None:
    panel = part.subplots()
    several = len({each.matcher for each in found}) > 1
    names = []
    for place, each in enumerate(found):
        _bar(panel, place - _BAR, each.alone, ALONE)
        _bar(panel, place, each.batch, BATCH)
        if each.bits is not None:
            _bar(panel, place + _BAR, each.bits, _BITS)
        who = f"{each.title}, {each.matcher}" if several else each.title
        names.append(f"{who}\n{each.subscriptions:,} subscriptions")
    name_rows(panel, names, "times faster than brute force in NumPy, in the same run")
    low, high = panel.get_xlim()
    panel.set_xlim(min(low, 0.8), high * 1.5)
    panel.axvline(1, color=YARDSTICK_BATCH, linewidth=0.9, linestyle="--", zorder=0)
    keys = [colour_key("one event at a time", ALONE), colour_key("in batches", BATCH)]
    if any(each.bits is not None for each in found):
        keys.append(colour_key("in batches, as bitmaps", _BITS))
    if any(speed.goal for each in found for speed in (each.alone, each.batch)):
        keys.append(line_key("goal", "black", marker="|"))
    legend(part, keys)


def _bar(panel: Any, place: float, speed: Speed, colour: str) -> None:
    panel.barh(place, speed.times, _BAR, color=colour)
    spread = [[speed.times - speed.low], [speed.high - speed.times]]
    panel.errorbar(speed.times, place, xerr=spread, color="gray", linewidth=0.8, capsize=2)
    label(panel, speed.times, place, speed.high)
    if speed.goal is not None:
        panel.plot(speed.goal.limit, place, "|", color="black", markersize=11, markeredgewidth=1.6)
