"""The common look of all pictures: strips, colours, labels, axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from tamis.errors import TamisError

_Content = TypeVar("_Content")

ALONE, BATCH = "#9ecae1", "#08519c"  # light and dark of one colour
YARDSTICK_ALONE, YARDSTICK_BATCH = "#fdae6b", "#d94801"
COLOURS = ("#08519c", "#238b45", "#6a51a3", "#cb181d", "#525252")


class Strip(NamedTuple):
    """A part of a picture: its size in inches, and the function that draws it on a subfigure."""

    width: float
    height: float
    draw: Callable[[Any], None]


def new_figure(size: tuple[float, float]) -> Any:
    """An empty picture of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TamisError("a picture needs matplotlib: pip install 'tamis[lab]'") from None
    return Figure(figsize=size, layout="constrained")


def panels(part: Any, contents: Sequence[_Content]) -> Iterator[tuple[Any, _Content]]:
    """Panels side by side, each with its content."""
    return zip(part.subplots(1, len(contents), squeeze=False)[0], contents, strict=True)


def name_rows(panel: Any, names: Sequence[str], unit: str) -> None:
    """Name the rows from the top, over a logarithmic axis."""
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xscale("log")
    panel.set_xlabel(unit)
    tidy(panel, "x")


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


def colour_key(text: str, colour: str) -> Any:
    """An entry of a legend: a colour."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=text)


def line_key(text: str, colour: str, line: Any = "", marker: str | None = None) -> Any:
    """An entry of a legend: a line, a marker, or both."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linestyle=line, marker=marker, label=text)


def legend(part: Any, handles: Sequence[Any]) -> None:
    """Draw a legend above all panels."""
    part.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)


def short(value: float) -> str:
    """Three significant digits, and all digits of a large number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
