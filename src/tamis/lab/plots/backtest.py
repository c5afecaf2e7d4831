"""A back-test over time: a line for each condition, or totals and a histogram of many."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import counted
from tamis.lab.plots.style import BATCH, COLOURS, YARDSTICK_BATCH, new_figure, tidy
from tamis.spark.events.time_axis import TIME

if TYPE_CHECKING:
    from tamis.spark.backtest.backtest_job import Backtest

LINES = 8  # most conditions with a line of their own
_COLOURS = (*COLOURS, "#fe9929", "#1d91c0", "#ae017e")
_GRAY, _DEAD = "#bdbdbd", "#cb181d"
_LABEL = 52  # letters of a condition
_EARLIEST, _LATEST = np.datetime64("0001-01-02"), np.datetime64("9999-12-30")


def plot(found: Backtest, out: Path) -> Path:
    """Draw a back-test; gives the path of the picture."""
    few = found.counts.num_rows <= LINES
    figure = new_figure((11, 6.2))
    if few:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        _lines(above, found)
        _events(below, found)
        below.set_xlabel(_axis_label(found))
        _times(below, found)
        _legend(figure, above, 1 if found.counts.num_rows < 3 else 2)
    else:
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        _all(left, found)
        left.set_xlabel(_axis_label(found))
        _times(left, found)
        _spread(right, found)
        _legend(figure, left, 3)
    counts = (found.events, found.counts.num_rows, found.pairs)
    nouns = ("event", "condition", "pair")
    figure.suptitle(", ".join(map(counted, counts, nouns)), fontsize=12)
    figure.savefig(out, dpi=110)
    return out


def _lines(panel: Any, found: Backtest) -> None:
    """Matched events of each condition."""
    middle = _middle(found)
    rows = found.counts.select(["subscription", "condition"]).to_pylist()
    for at, row in enumerate(rows):
        panel.plot(
            middle,
            found.grid[at, : found.axis.buckets],
            color=_COLOURS[at % len(_COLOURS)],
            marker="o",
            markersize=2.5,
            linewidth=1.3,
            label=_shortened(f"{row['subscription']}: {row['condition']}"),
        )
    panel.set_ylabel("matched events")
    panel.set_ylim(bottom=0)
    _thousands(panel.yaxis)
    tidy(panel, "both")


def _events(panel: Any, found: Backtest) -> None:
    """All events, and the dead ones."""
    edges, shown = _edges(found), slice(found.axis.buckets)
    events, dead = (np.asarray(found.totals[name])[shown] for name in ("events", "dead"))
    panel.stairs(events, edges, color=_GRAY, fill=True, label="all events")
    if dead.any():
        panel.stairs(dead, edges, color=_DEAD, fill=True, label="dead")
        panel.legend(framealpha=1, fontsize=8, loc="lower right")
    panel.set_ylabel("all events")
    _thousands(panel.yaxis)
    tidy(panel, "both")


def _all(panel: Any, found: Backtest) -> None:
    """Pairs of all conditions, and events with at least one."""
    edges, shown = _edges(found), slice(found.axis.buckets)
    some = True
    for name, colour, words in (
        ("events", _GRAY, "events"),
        ("matched", _COLOURS[1], "events with a match"),
        ("pairs", BATCH, "pairs of an event and a condition"),
    ):
        values = np.asarray(found.totals[name])[shown]
        some = some and bool(values.all())
        panel.stairs(values, edges, color=colour, linewidth=1.6, label=words, baseline=None)
    if some:
        panel.set_yscale("log")
    else:
        panel.set_yscale("symlog", linthresh=1)
        panel.set_ylim(bottom=0)
    panel.set_title("over time", fontsize=11)
    tidy(panel, "both")


def _spread(panel: Any, found: Backtest) -> None:
    """How many conditions matched how many events."""
    matched = np.asarray(found.counts["matched"])
    most = int(matched.max(initial=1))
    # Half-decades, and a bar for conditions that never matched.
    steps = np.unique(np.rint(10 ** np.arange(0, np.log10(most) + 0.5, 0.5)).astype(np.int64))
    bins = np.append(steps, max(most + 1, steps[-1] + 1)) if steps[-1] <= most else steps
    counts, _ = np.histogram(matched[matched > 0], bins)
    names = ["none", *(f"{low:,}–{high - 1:,}" for low, high in pairwise(bins.tolist()))]
    bars = [int(np.count_nonzero(matched == 0)), *counts.tolist()]
    colours = [YARDSTICK_BATCH, *[BATCH] * len(counts)]
    panel.barh(range(len(bars)), bars, color=colours)
    for place, value in enumerate(bars):
        panel.annotate(f"{value:,}", (value, place), xytext=(3, 0), textcoords="offset points",
                       verticalalignment="center", fontsize=8)  # fmt: skip
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_ylabel("matched events")
    panel.set_xlabel("conditions")
    panel.margins(x=0.12)
    _thousands(panel.xaxis)
    panel.set_title("over conditions", fontsize=11)
    tidy(panel, "x")


def _edges(found: Backtest) -> NDArray[Any]:
    """The edges of the buckets, in the unit of matplotlib."""
    axis = found.axis
    if axis.kind != TIME:
        return axis.edges
    days: NDArray[Any] = axis.edges / 86_400e6  # since 1970, the unit of matplotlib's dates
    return days if _dated(found) else 1970 + days / 365.2425


def _dated(found: Backtest) -> bool:
    """Whether matplotlib can write the dates of the axis."""
    if found.axis.kind != TIME:
        return False
    first, last = found.axis.edges[[0, -1]].astype("M8[us]")
    return bool(first >= _EARLIEST and last <= _LATEST)


def _middle(found: Backtest) -> NDArray[Any]:
    edges = _edges(found)
    middle: NDArray[Any] = edges[:-1] + (edges[1:] - edges[:-1]) / 2
    return middle


def _times(panel: Any, found: Backtest) -> None:
    """Write concise dates."""
    from matplotlib import dates

    made: Any = dates  # matplotlib.dates has no types
    if _dated(found):
        locator = made.AutoDateLocator()
        panel.xaxis.set_major_locator(locator)
        panel.xaxis.set_major_formatter(made.ConciseDateFormatter(locator))
    elif found.axis.kind != TIME:
        _thousands(panel.xaxis)


def _thousands(axis: Any) -> None:
    """Write few numbers, with separators."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(6))
    axis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))


def _axis_label(found: Backtest) -> str:
    axis = found.axis
    name = "number of the event" if found.time is None else found.time
    zone = ", UTC" if axis.kind == TIME and axis.zone else ""
    step = f", by {axis.step}" if axis.step else ""
    without = int(np.asarray(found.totals["events"])[axis.buckets :].sum())
    hidden = counted(without, "event without it is", "events without it are")
    rest = f" ({hidden} not shown)" if without else ""
    return f"{name}{zone}{step}{rest}"


def _legend(figure: Any, panel: Any, columns: int) -> None:
    """Draw a legend below all panels, where long conditions fit."""
    handles, labels = panel.get_legend_handles_labels()
    where = "outside lower center"
    figure.legend(handles, labels, loc=where, ncols=columns, frameon=False, fontsize=9)


def _shortened(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"
