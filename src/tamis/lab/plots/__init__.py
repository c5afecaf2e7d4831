"""Pictures of result files. Plotting reads what was measured and never measures anything.

A file of this package draws one kind of figure; a result file that has several kinds becomes one
picture, with a strip for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tamis.errors import TamisError
from tamis.lab import results
from tamis.lab.plots import churns, contests, duels, points, schedules
from tamis.lab.plots.strip import Strip
from tamis.lab.records import Result

_STRIPS: tuple[Callable[[Sequence[Result]], Strip | None], ...] = (
    contests.strip,
    duels.strip,
    points.strip,
    churns.strip,
    schedules.strip,
)


def plottable(found: Sequence[Result]) -> bool:
    """Whether there is anything to draw in the results."""
    return any(strip(found) for strip in _STRIPS)


def plot(file: Path, out: Path | None = None) -> Path:
    """Draw the matchers in a result file; gives the picture's path, beside the file if not told."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TamisError("no picture without matplotlib: pip install 'tamis[lab]'") from None
    found = results.read(file)
    strips = [strip for strip in (make(found) for make in _STRIPS) if strip is not None]
    if not strips:
        raise TamisError(f"{file} has no matchers to plot: measure some with tamis bench match")
    out = file.with_suffix(".png") if out is None else out
    size = max(strip.width for strip in strips), sum(strip.height for strip in strips)
    figure = Figure(figsize=size, layout="constrained")
    heights = [strip.height for strip in strips]
    parts = figure.subfigures(len(strips), 1, squeeze=False, height_ratios=heights)[:, 0]
    for strip, part in zip(strips, parts, strict=True):
        strip.draw(part)
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(out, dpi=110)
    except ValueError as why:  # an ending that is no format of pictures
        raise TamisError(f"{out} cannot be drawn: {why}") from None
    return out
