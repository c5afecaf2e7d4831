"""What the experiments of Le Subscribe share: its algorithms as published, and its workload.

The paper ran K programs on a 500 MHz Pentium. Its times are not ours. Its order of algorithms, its
trends and its ratios are what claims are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import ClassVar

from tamis import workload
from tamis.lab.experiments.experiment import LabStep
from tamis.lab.papers.matcher_experiment import MatcherExperiment, Options
from tamis.workload import Workload

FAIR, PREFERRED, QUARANTINE = "fair-predicate", "equality-preferred", "quarantine"
THREE = (QUARANTINE, PREFERRED, FAIR)  # from the fastest to the slowest, says the paper
NAIVE = "naive"

_CLUSTERED: Options = {"final": "all", "schemas": "subsets"}
PUBLISHED: dict[str, Options] = {
    NAIVE: {},
    FAIR: {"final": "all"},
    PREFERRED: _CLUSTERED,
    QUARANTINE: _CLUSTERED,
}
_CLUSTERED_GRID = tuple(
    {"final": final, "schemas": schemas}
    for final, schemas in product(("touched", "all"), ("fewest", "subsets"))
)
GRIDS: dict[str, tuple[Options, ...]] = {
    FAIR: ({"final": "touched"}, {"final": "all"}),
    PREFERRED: _CLUSTERED_GRID,
    QUARANTINE: _CLUSTERED_GRID,
}
_OF_THE_WORKLOAD = ("p", "presence", "texts", "numbers", "types")


def draw(step: LabStep, seed: int) -> Workload:
    """The workload that the parameters of a step describe."""
    given = {name: value for name, value in step.parameters.items() if name in _OF_THE_WORKLOAD}
    return workload.make("lesubscribe", step.parameters["n"], seed=seed, **given)


class LeSubscribeExperiment(MatcherExperiment):
    """An experiment on the workload of section 4, in one process.

    The paper sends sets of events to the matcher. So times are those of batches: `batch_ms`.
    """

    paper: ClassVar[str] = "lesubscribe"
    matchers: ClassVar[Sequence[str]] = THREE
    published = PUBLISHED
    grids = GRIDS

    def workload(self, step: LabStep, seed: int) -> Workload:
        return draw(step, seed)
