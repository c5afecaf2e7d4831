"""Pictures of result files. Plotting reads what was measured and never measures anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tamis.errors import TamisError
from tamis.lab import results
from tamis.lab.matching import YARDSTICK
from tamis.lab.results import Contest, Refusal

_ALONE, _BATCH = "#9ecae1", "#08519c"  # light and dark of one colour
_YARDSTICK_ALONE, _YARDSTICK_BATCH = "#fdae6b", "#d94801"
_ROW = 0.34  # inches of a matcher
_BAR = 0.4  # of a row; each has two


def plot(file: Path, out: Path | None = None) -> Path:
    """Draw the contests in a result file; gives the picture's path, beside the file if not told."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TamisError("no picture without matplotlib: pip install 'tamis[lab]'") from None
    found = [each for each in results.read(file) if isinstance(each, Contest | Refusal)]
    titles = list(dict.fromkeys(each.workload for each in found if isinstance(each, Contest)))
    if not titles:
        raise TamisError(f"{file} has no matchers to plot: measure some with tamis bench match")
    out = file.with_suffix(".png") if out is None else out
    rows = max(sum(each.workload == title for each in found) for title in titles)
    figure = Figure(figsize=(1 + 5 * len(titles), 1.7 + _ROW * rows), layout="constrained")
    for panel, title in zip(figure.subplots(1, len(titles), squeeze=False)[0], titles, strict=True):
        _draw(panel, title, [each for each in found if each.workload == title])
    _legend(figure, any(each.matcher == YARDSTICK for each in found))
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(out, dpi=110)
    except ValueError as why:  # an ending that is no format of pictures
        raise TamisError(f"{out} cannot be drawn: {why}") from None
    return out


def _draw(panel: Any, title: str, found: Sequence[Contest | Refusal]) -> None:
    """One workload: the fastest in batches at the top, those that refused it at the bottom."""
    measured = sorted(
        (each for each in found if isinstance(each, Contest)), key=lambda each: each.batch_ms
    )
    refused = [each for each in found if isinstance(each, Refusal)]
    for place, each in enumerate(measured):
        mine = each.matcher == YARDSTICK
        alone, batch = each.alone_ms * 1e3, each.batch_ms * 1e3
        panel.barh(place - 0.2, alone, _BAR, color=_YARDSTICK_ALONE if mine else _ALONE)
        panel.barh(place + 0.2, batch, _BAR, color=_YARDSTICK_BATCH if mine else _BATCH)
        for offset, value in ((-0.2, alone), (0.2, batch)):
            panel.annotate(
                _short(value),
                (value, place + offset),
                xytext=(3, 0),
                textcoords="offset points",
                verticalalignment="center",
                fontsize=6.5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},  # over the line
            )
        if mine:
            panel.axvline(batch, color=_YARDSTICK_BATCH, linewidth=0.9, linestyle="--", zorder=0)
    times = [value for each in measured for value in (each.alone_ms * 1e3, each.batch_ms * 1e3)]
    low, high = min(times) / 2, max(times) * 3  # room for the numbers behind the bars
    for place, _ in enumerate(refused, len(measured)):
        panel.text(low * 1.1, place, "refused", verticalalignment="center", color="gray")
    names = [each.matcher for each in measured] + [each.matcher for each in refused]
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xscale("log")
    panel.set_xlim(low, high)
    panel.set_xlabel("µs an event")
    panel.grid(axis="x", alpha=0.3)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(f"{title}, {measured[0].subscriptions:,} subscriptions", fontsize=11)


def _legend(figure: Any, yardstick: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=_ALONE, label="one event at a time"),
        Patch(color=_BATCH, label="in batches"),
    ]
    if yardstick:
        handles.append(
            Line2D([], [], color=_YARDSTICK_BATCH, linestyle="--", label="brute force in NumPy")
        )
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)


def _short(value: float) -> str:
    """Three digits are enough to compare by."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
