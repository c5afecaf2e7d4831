"""Ways into an engine: the factor to what a user would write without it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tamis.lab.plots.style import (
    BATCH,
    YARDSTICK_BATCH,
    Strip,
    colour_key,
    label,
    legend,
    line_key,
    name_rows,
    short,
)
from tamis.lab.results.records import DoorResult, Result

_ROW = 0.45  # inches
_BAR = 0.55  # share of a row


def strip(results: Sequence[Result]) -> Strip | None:
    """A bar for each row; a mark where the goal would be."""
    found = [each for each in results if isinstance(each, DoorResult)]
    return Strip(9, 1.4 + _ROW * len(found), partial(_draw, found)) if found else None


def _draw(found: Sequence[DoorResult], part: Any) -> None:
    panel = part.subplots()
    several = len({each.matcher for each in found}) > 1
    names = []
    for place, each in enumerate(found):
        panel.barh(place, each.times - 1, _BAR, left=1, color=BATCH)  # to the left: slower
        spread = [[each.times - each.times_low], [each.times_high - each.times]]
        panel.errorbar(each.times, place, xerr=spread, color="gray", linewidth=0.8, capsize=2)
        label(panel, each.times, place, each.times_high)
        if each.goal is not None:
            panel.plot(_at_goal(each), place, "|", color="black", markersize=11)
        who = f"{each.title}, {each.matcher}" if several else each.title
        names.append(
            f"{who}: {_written(each.value, each.unit)}\n"
            f"{each.subscriptions:,} subscriptions; {each.baseline}: "
            f"{_written(each.baseline_value, each.unit)}"
        )
    name_rows(panel, names, "times faster than the baseline, in the same run")
    low, high = panel.get_xlim()
    panel.set_xlim(min(low, 0.2), high * 1.5)
    panel.axvline(1, color=YARDSTICK_BATCH, linewidth=0.9, linestyle="--", zorder=0)
    keys = [
        colour_key("through the engine", BATCH),
        line_key("the baseline", YARDSTICK_BATCH, "--"),
    ]
    if any(each.goal for each in found):
        keys.append(line_key("goal, for this baseline", "black", marker="|"))
    legend(part, keys)


def _at_goal(each: DoorResult) -> float:
    """How many times faster than the baseline an engine is that just meets the goal."""
    assert each.goal is not None
    limit = each.goal.limit
    return each.baseline_value / limit if each.goal.at_most else limit / each.baseline_value


def _written(value: float, unit: str) -> str:
    return f"{short(value)}{unit}" if unit.startswith("/") else f"{short(value)} {unit}"
