"""Pictures of result files. Plotting reads result files and measures nothing.

Each file of this package draws one kind of result. A result file with several kinds becomes one
picture, with a strip for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tamis.errors import TamisError
from tamis.lab.plots import churn, doors, matchers, memory, peers, scale
from tamis.lab.plots.style import Strip, new_figure
from tamis.lab.results import files
from tamis.lab.results.records import Result

_STRIPS: tuple[Callable[[Sequence[Result]], Strip | None], ...] = (
    matchers.strip,
    peers.strip,
    doors.strip,
    scale.strip,
    churn.strip,
    memory.strip,
)


def plottable(found: Sequence[Result]) -> bool:
    """Whether the results have something to draw."""
    return any(strip(found) for strip in _STRIPS)


def plot(file: Path, out: Path | None = None) -> Path:
    """Draw a result file; gives the path of the picture, by default in the folder of the file."""
    found = files.read(file)
    strips = [strip for strip in (make(found) for make in _STRIPS) if strip is not None]
    if not strips:
        raise TamisError(f"{file} has nothing to plot: measure matchers with tamis bench match")
    out = file.with_suffix(".png") if out is None else out
    size = max(strip.width for strip in strips), sum(strip.height for strip in strips)
    figure = new_figure(size)
    heights = [strip.height for strip in strips]
    parts = figure.subfigures(len(strips), 1, squeeze=False, height_ratios=heights)[:, 0]
    for strip, part in zip(strips, parts, strict=True):
        strip.draw(part)
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(out, dpi=110)
    except ValueError as why:  # an unknown format
        raise TamisError(f"{out} cannot be drawn: {why}") from None
    return out
