"""Observations that are made up, to try checks on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tamis.lab.experiments.experiment import Mode, Observation, Observations

Curves = Mapping[str, Mapping[float, float]]


def observations(
    curves: Curves,
    quantity: str = "match_ms",
    *,
    panel: str = "",
    mode: Mode = Mode.PAPER,
    refused: Mapping[str, Sequence[float]] | None = None,
) -> Observations:
    """One number for each x of each curve."""
    measured = [
        Observation(x, name, mode, {quantity: [value]}, panel=panel)
        for name, points in curves.items()
        for x, value in points.items()
    ]
    refusals = [
        Observation(x, name, mode, panel=panel, refusal="too large")
        for name, xs in (refused or {}).items()
        for x in xs
    ]
    return Observations([*measured, *refusals])


def deviating(curves: Curves) -> Observations:
    """Two events for each x, whose standard deviation is the given number."""
    return Observations(
        [
            Observation(x, name, Mode.PAPER, {"match_ms": [10 - value, 10 + value]})
            for name, points in curves.items()
            for x, value in points.items()
        ]
    )


def together(*parts: Observations) -> Observations:
    return Observations([each for part in parts for each in part.all])


def level(xs: Sequence[float], **values: float) -> dict[str, dict[float, float]]:
    """Flat curves; `h_tree` stands for `h-tree`."""
    return {name.replace("_", "-"): dict.fromkeys(xs, value) for name, value in values.items()}
