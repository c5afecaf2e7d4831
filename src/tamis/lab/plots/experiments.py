"""Pictures of experiments: a plot for each quantity, side by side, and a row for each panel.

Numbers on the x axis give lines. Names on it, or a single value, give bars with their figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any

from tamis.errors import TamisError
from tamis.lab.experiments.experiment import Axes, Experiment, Mode, Observation
from tamis.lab.experiments.result_files import LabResult, picture_path
from tamis.lab.plots.algorithms import MODES, AlgorithmLook, looks
from tamis.lab.plots.style import label, line_key, new_figure, tidy

FORMATS = ("png", "svg")
_WIDTH, _HEIGHT = 4.5, 3.6  # inches of a plot
_BAR = 0.26  # inches of a bar
_ACROSS = 3  # plots side by side, at most
_LEGEND = 0.24  # inches of a line of the legend
_KEYS = 4.5 / 2.2  # entries of a legend in the width of a plot
_REFUSED = "x"
_GREY = "#6b6b6b"
_LABEL = 40  # letters of a line of an axis label
_TITLE = 9.5  # letters of a title in an inch
_APART = 0.08  # of the length of an axis, between ticks at measured values


def has_figures(experiment: Experiment, result: LabResult) -> bool:
    """Whether an observation has a quantity that is plotted."""
    return any(seen.has(axes.quantity) for seen in result.observations for axes in experiment.plots)


class ExperimentPicture:
    """The picture of one result file."""

    def __init__(self, experiment: Experiment, result: LabResult) -> None:
        self.experiment, self.result = experiment, result
        names = [curve["name"] for step in result.steps for curve in step["curves"]]
        self._looks = looks(names)
        panels = list(dict.fromkeys(step["panel"] for step in result.steps))
        found = [(panel, axes) for panel in panels for axes in experiment.plots]
        self._cells = [cell for cell in found if self._shown(*cell)]
        if not self._cells:
            raise TamisError(f"{experiment.id} has no results to plot yet")

    def save(self, path: Path) -> list[Path]:
        """Write the picture beside a result file, in each format."""
        drawn = self._drawn()
        made = [picture_path(path, kind) for kind in FORMATS]
        for each in made:
            _save(drawn, each, each.suffix[1:])
        return made

    def svg(self) -> bytes:
        """The picture, for a page."""
        out = BytesIO()
        _save(self._drawn(), out, "svg")
        return out.getvalue()

    # -- layout ------------------------------------------------------------------------------------

    def _shown(self, panel: str, axes: Axes) -> list[Observation]:
        """The observations of a plot; a deviation needs two numbers."""
        return [
            each
            for each in self.result.observations
            if each.panel == panel
            and each.has(axes.quantity)
            and (not axes.deviation or len(each.measured.get(axes.quantity, ())) > 1)
        ]

    def _drawn(self) -> Any:
        panels = len({panel for panel, _ in self._cells})
        across = min(_ACROSS, len(self._cells) // panels if panels > 1 else len(self._cells))
        rows = -(-len(self._cells) // across)
        refused = sum(1 for each in self.result.observations if each.refusal)
        bars = max(
            (len(self._shown(*cell)) + refused for cell in self._cells if self._as_bars(*cell)),
            default=0,
        )
        height = max(_HEIGHT, 1.2 + _BAR * bars)
        keys = [] if self._all_bars() else self._keys()
        columns = max(2, int(_KEYS * across))
        lines = -(-len(keys) // columns)
        figure = new_figure((_WIDTH * across, height * rows + _LEGEND * (lines + 2)))
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.05)
        grid = figure.subplots(rows, across, squeeze=False)
        for place, cell in zip(grid.flat, self._cells, strict=False):
            self._plot(place, *cell)
        for place in list(grid.flat)[len(self._cells) :]:
            place.set_axis_off()
        title = f"{self.experiment.id}: {self.experiment.title}"
        title = "\n".join(wrap(title, int(_TITLE * _WIDTH * across)))
        figure.suptitle(title, fontsize=12, fontweight="bold")
        if keys:
            figure.legend(
                handles=keys,
                loc="outside lower center",
                ncols=min(columns, len(keys)),
                frameon=False,
                fontsize=9,
            )
        return figure

    def _as_bars(self, panel: str, axes: Axes) -> bool:
        xs = {each.x for each in self._shown(panel, axes)}
        return len(xs) == 1 or any(isinstance(x, str) for x in xs)

    def _all_bars(self) -> bool:
        return all(self._as_bars(*cell) for cell in self._cells)

    def _keys(self) -> list[Any]:
        """The legend: algorithms by colour and marker, then modes by line."""
        seen = list(dict.fromkeys(each.curve for each in self.result.observations))
        keys = [
            line_key(name, self._looks[name].colour, "-", self._looks[name].marker) for name in seen
        ]
        modes = {each.mode for each in self.result.observations}
        for mode, look in MODES.items():
            if mode in modes and len(modes) > 1:
                key = line_key(look.title, _GREY, look.line)
                key.set_linewidth(look.width)
                keys.append(key)
        reasons = {_reason(each) for each in self.result.observations if each.refusal}
        if reasons:
            keys.append(line_key(" or ".join(sorted(reasons)), _GREY, "", _REFUSED))
        return keys

    # -- plots -------------------------------------------------------------------------------------

    def _plot(self, place: Any, panel: str, axes: Axes) -> None:
        shown = self._shown(panel, axes)
        if self._as_bars(panel, axes):
            refused = [
                each for each in self.result.observations if each.refusal and each.panel == panel
            ]
            self._bars(place, axes, [*shown, *refused])
        else:
            self._lines(place, panel, axes, shown)
        title = panel if len({each for each, _ in self._cells}) > 1 else ""
        place.set_title(title, fontsize=10)

    def _lines(self, place: Any, panel: str, axes: Axes, shown: Sequence[Observation]) -> None:
        for curve, mode in dict.fromkeys((each.curve, each.mode) for each in shown):
            mine = [each for each in shown if (each.curve, each.mode) == (curve, mode)]
            points = sorted((float(each.x), _value(each, axes)) for each in mine)
            self._line(place, self._looks[curve], mode, points)
        place.set_xlabel(_wrapped(axes.x))
        place.set_ylabel(_wrapped(axes.y))
        _scale(place, axes, [_value(each, axes) for each in shown])
        xs = sorted({float(each.x) for each in shown})
        if axes.log_x:
            _log_ticks(place, xs)
        elif min(after - before for before, after in pairwise(xs)) >= _APART * (xs[-1] - xs[0]):
            place.set_xticks(xs, [_x_text(x) for x in xs])
        else:
            _few_ticks(place, "x")
        tidy(place, "both")
        self._mark_refusals(place, panel)

    def _line(
        self, place: Any, look: AlgorithmLook, mode: Mode, points: Sequence[tuple[float, float]]
    ) -> None:
        place.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=look.colour,
            marker=look.marker,
            markersize=9 if look.marker == "*" else 6,
            markerfacecolor="white" if mode is Mode.TUNED else look.colour,
            linestyle=MODES[mode].line,
            linewidth=MODES[mode].width,
            zorder=3 if mode is Mode.OURS else 2,
        )

    def _mark_refusals(self, place: Any, panel: str) -> None:
        """Crosses above the plot, one above the other where several refuse the same x."""
        stacked: dict[float, int] = {}
        for each in self.result.observations:
            if each.refusal and each.panel == panel and not isinstance(each.x, str):
                x = float(each.x)
                stacked[x] = stacked.get(x, 0) + 1
                place.plot(
                    x,
                    1.0 + 0.045 * (stacked[x] - 0.5),
                    _REFUSED,
                    color=self._looks[each.curve].colour,
                    transform=place.get_xaxis_transform(),
                    markersize=7,
                    markeredgewidth=1.8,
                    clip_on=False,
                )

    def _bars(self, place: Any, axes: Axes, shown: Sequence[Observation]) -> None:
        xs = list(dict.fromkeys(each.x for each in shown))
        tuned_too = any(each.mode is Mode.TUNED for each in shown)
        names, row = [], 0.0
        ticks = []
        values = [_value(each, axes) for each in shown if not each.refusal]
        low = min(values) / 2 if axes.log_y and min(values) > 0 else 0.0
        for x in xs:
            for each in (one for one in shown if one.x == x):
                colour = self._looks[each.curve].colour
                if each.refusal:
                    said = f" {_reason(each)}"
                    place.text(low, row, said, color=_GREY, fontsize=8, va="center")
                else:
                    value, tuned = _value(each, axes), each.mode is Mode.TUNED
                    place.barh(
                        row, value, 0.74, color="white" if tuned else colour, edgecolor=colour,
                        hatch="////" if tuned else None, linewidth=1.2,
                    )  # fmt: skip
                    label(place, value, row)
                where = f"{_x_text(x)}: " if len(xs) > 1 else ""
                how = f" ({each.mode})" if tuned_too and each.mode is not Mode.OURS else ""
                names.append(f"{where}{each.curve}{how}")
                ticks.append(row)
                row += 1
            row += 0.5
        place.set_yticks(ticks, names, fontsize=8)
        place.set_ylim(row - 0.9, -0.6)
        place.set_xlabel(_wrapped(axes.y))
        if low:
            place.set_xscale("log")
            place.set_xlim(low, max(values) * (max(values) / low) ** 0.2)  # room for the figures
            _log_numbers(place.xaxis, low, max(values))
        else:
            place.set_xlim(0, max(values) * 1.18 or 1)
            _few_ticks(place, "x")
        tidy(place, "x")


def _reason(observation: Observation) -> str:
    return "over the limit" if observation.left_out else "refused"


def _value(observation: Observation, axes: Axes) -> float:
    if axes.deviation:
        return observation.deviation(axes.quantity)
    return observation.value(axes.quantity)


def _scale(place: Any, axes: Axes, values: Sequence[float]) -> None:
    if axes.log_x:
        place.set_xscale("log")
    if not axes.log_y:
        if min(values) >= 0:
            place.set_ylim(0, max(values) * 1.08 or 1)
        _few_ticks(place, "y")
    elif min(values) > 0:
        place.set_yscale("log")
        room = max(1.3, (max(values) / min(values)) ** 0.05)
        place.set_ylim(min(values) / room, max(values) * room)
        _log_numbers(place.yaxis, min(values), max(values))
    else:  # 0 has a place below the smallest other value
        least, most = min((each for each in values if each > 0), default=1.0), max([*values, 1.0])
        place.set_yscale("symlog", linthresh=least, linscale=0.6)
        place.set_ylim(-0.3 * least, most * 2)
        powers = range(math.ceil(math.log10(least)), math.floor(math.log10(most)) + 1)
        ticks = [0.0, *([10.0**power for power in powers[:: 1 + len(powers) // 8]] or [most])]
        place.set_yticks(ticks, [_x_text(tick) for tick in ticks])
        place.set_yticks([], minor=True)


def _log_numbers(line: Any, low: float, high: float) -> None:
    """Powers of ten as ticks; also twice and five times that, if there would be few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    line.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high < 50 * low else (1,), numticks=8))
    line.set_major_formatter(_numbers())
    line.set_minor_formatter(NullFormatter())


def _numbers() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: _x_text(value))


def _few_ticks(place: Any, axis: str) -> None:
    """Round numbers that do not touch, such as 20 K."""
    from matplotlib.ticker import MaxNLocator

    line = place.xaxis if axis == "x" else place.yaxis
    line.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    line.set_major_formatter(_numbers())


def _log_ticks(place: Any, xs: Sequence[float]) -> None:
    """The measured values as ticks, as long as they do not touch."""
    kept = [xs[0]]
    for x in xs[1:]:
        if x / kept[-1] >= (xs[-1] / xs[0]) ** 0.09:
            kept.append(x)
    place.set_xticks(kept, [_x_text(x) for x in kept])
    place.set_xticks([], minor=True)


def _wrapped(label: str) -> str:
    return "\n".join(wrap(label, _LABEL))


def _x_text(x: float | str) -> str:
    if isinstance(x, str):
        return x
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " K")):
        if abs(x) >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:g}"


def _save(drawn: Any, out: Path | BytesIO, kind: str) -> None:
    from matplotlib import rc_context

    # The same results give the same file.
    with rc_context({"svg.hashsalt": "tamis"}):
        stamp = {"Date": None} if kind == "svg" else None
        drawn.savefig(out, format=kind, dpi=130, metadata=stamp)
