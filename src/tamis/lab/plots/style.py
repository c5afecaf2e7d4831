"""The common look of all pictures: strips, colours, labels, axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ALONE, BATCH = "#9ecae1", "#08519c"  # light and dark of one colour
YARDSTICK_ALONE, YARDSTICK_BATCH = "#fdae6b", "#d94801"
COLOURS = ("#08519c", "#238b45", "#6a51a3", "#cb181d", "#525252")


class Strip(NamedTuple):
    """A part of a picture: its size in inches, and the function that draws it on a subfigure."""

    width: float
    height: float
    draw: Callable[[Any], None]


def tidy(panel: Any, axis: str) -> None:
    """Draw a light grid along one axis or both, and no box."""
    panel.grid(axis=axis, alpha=0.3)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def label(panel: Any, value: float, place: float, end: float | None = None) -> None:
    """Write a number behind the end of a bar, or behind `end`."""
    panel.annotate(
        short(value),
        (value if end is None else end, place),
        xytext=(3, 0),
        textcoords="offset points",
        verticalalignment="center",
        fontsize=6.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},  # hides grid lines
    )


def legend(part: Any, handles: Sequence[Any]) -> None:
    """Draw a legend above all panels."""
    part.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)


def short(value: float) -> str:
    """Three significant digits, and all digits of a large number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
