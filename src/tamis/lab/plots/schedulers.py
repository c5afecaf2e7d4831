"""Predicates that schedulers evaluate while one parameter varies, a panel for each figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

from tamis.lab.plots.style import COLOURS, Strip, legend, line_key, panels, tidy
from tamis.lab.results.records import AS_A_SET, AS_DRAWN, Result, SchedulerResult

_VARIED: dict[str, tuple[str, Callable[[SchedulerResult], Any]]] = {
    "LI-4": ("subscriptions, uniform popularity", lambda each: each.subscriptions),
    "LI-5": ("subscriptions, Zipf 1", lambda each: each.subscriptions),
    "LI-6": ("predicates, Zipf 1", lambda each: each.predicates),
    "LI-7": ("predicates of the longest subscription", lambda each: each.parameters["longest"]),
    "LI-8": ("exponent of popularity", lambda each: each.parameters["exponent"]),
}


def strip(results: Sequence[Result]) -> Strip | None:
    """A line for each scheduler; crosses are the counts of an independent simulation."""
    found = [
        each for each in results if isinstance(each, SchedulerResult) and each.figure in _VARIED
    ]
    figures = [name for name in _VARIED if any(each.figure == name for each in found)]
    return Strip(1 + 3.8 * len(figures), 4.2, partial(_draw, figures, found)) if found else None


def _draw(figures: Sequence[str], found: Sequence[SchedulerResult], part: Any) -> None:
    names = list(dict.fromkeys((each.scheduler, each.written) for each in found))
    schedulers = list(dict.fromkeys(scheduler for scheduler, _ in names))
    # The last scheduler has the first colour.
    colours = dict(zip(reversed(schedulers), cycle(COLOURS), strict=False))
    lines = {AS_DRAWN: "-", AS_A_SET: ":"}
    for panel, figure in panels(part, figures):
        axis, varied = _VARIED[figure]
        here = [each for each in found if each.figure == figure]
        marks = list(dict.fromkeys(varied(each) for each in here))
        # Exponents are spaced evenly: one of them is None.
        places = range(len(marks)) if figure == "LI-8" else marks
        for scheduler, written in names:
            curve = [
                each for each in here if (each.scheduler, each.written) == (scheduler, written)
            ]
            at = [places[marks.index(varied(each))] for each in curve]
            _curve(panel, at, curve, colours[scheduler], lines[written])
        panel.set_xticks(places, ["uniform" if each is None else f"{each:,g}" for each in marks])
        panel.set_ylim(bottom=0)
        panel.set_xlabel(axis)
        panel.set_ylabel("predicates evaluated an event")
        panel.tick_params(labelsize=8)
        tidy(panel, "both")
        panel.set_title(figure, fontsize=11)
    keys = [
        line_key(
            f"{scheduler}, {written}" if written == AS_A_SET else scheduler,
            colours[scheduler],
            lines[written],
            "o",
        )
        for scheduler, written in names
    ]
    if any(each.goal for each in found):
        keys.append(line_key("independent simulation", "gray", marker="x"))
    legend(part, keys)


def _curve(
    panel: Any, places: Sequence[float], curve: Sequence[SchedulerResult], colour: str, line: str
) -> None:
    panel.plot(places, [each.evaluated for each in curve], f"o{line}", color=colour, markersize=4)
    for place, each in zip(places, curve, strict=True):
        if each.goal is not None:
            panel.plot(place, each.goal.limit, "x", color=colour, markersize=6)
