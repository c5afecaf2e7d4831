"""Made observations, to feed the checks of claims with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tamis.lab.experiments.experiment import (
    Experiment,
    Judgement,
    Mode,
    Observation,
    Observations,
    Standing,
)

Values = Mapping[str, Any]  # a number or a list of numbers


def observed(
    name: str,
    points: Mapping[Any, Values],
    *,
    panel: str = "",
    mode: Mode = Mode.PAPER,
) -> list[Observation]:
    """A curve: quantities by x. A list holds repetitions, a number is a count."""
    return [
        Observation(
            x,
            name,
            mode,
            {what: each for what, each in values.items() if isinstance(each, list)},
            {what: each for what, each in values.items() if not isinstance(each, list)},
            panel=panel,
        )
        for x, values in points.items()
    ]


def counted(
    name: str,
    quantity: str,
    points: Mapping[Any, float],
    *,
    panel: str = "",
    mode: Mode = Mode.PAPER,
) -> list[Observation]:
    """A curve with one quantity."""
    return observed(name, {x: {quantity: [y]} for x, y in points.items()}, panel=panel, mode=mode)


def judged(of: type[Experiment], claim: str, *curves: Sequence[Observation]) -> Judgement:
    """What a claim says of some curves. Only a confirmed claim has no reason."""
    (found,) = (each for each in of.claims if each.id == claim)
    judgement = found.check(Observations([each for curve in curves for each in curve]))
    assert judgement.seen
    assert bool(judgement.why) == (judgement.standing is not Standing.CONFIRMED), judgement
    return judgement
