"""The paper's simulated load: time and space while subscriptions grow and matches do not.

30 attributes of 5 values; the popularity of attributes decays by a factor that keeps the number of
matches. The sizes, the index attributes and the number of matches are lost from our copy of the
paper. Chosen are 2 index attributes and 20 matches an event. Paper mode has all optimisations of
section 5, because the paper's measure of space counts successors.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.lab.experiments.experiment import (
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observations,
)
from tamis.lab.papers.checks import ends, growth_exponent, judge, listed, points
from tamis.lab.papers.gryphon.trees import (
    ANNOTATED,
    COLLAPSED,
    OURS,
    TREE,
    TreeExperiment,
    tree_axes,
)
from tamis.workload import Workload, gryphon

UNFACTORED, LINEAR = "aguilera, no index attribute", "naive"
MATCHES = 20
SIMULATED = {**ANNOTATED, "factor": 2}
_SIZES = {
    LabScale.SMALL: (1_000, 4_000, 16_000, 64_000),
    LabScale.PAPER: (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000),
}
_SUB, _SUPER = 0.9, 1.1  # exponents below and above linear growth
_SAME = 0.25  # matches of 200 events scatter


def _sublinear_time(found: Observations) -> Judgement:
    """By nodes visited, and by the time in batches, which has little of the time of a call."""
    visits, times = found.curve(TREE, "visited_nodes"), points(found, TREE, "batch_cpu_ms")
    slopes = [growth_exponent(each) for each in (visits, times)]
    first, last = ends(times)
    return judge(
        max(slopes) < _SUB,
        f"exponents: nodes visited {slopes[0]:.2f}, time in batches {slopes[1]:.2f}; "
        f"{first * 1e3:.1f} to {last * 1e3:.1f} µs; nodes visited {listed(visits)}",
        "The nodes visited and the time do not both grow sub-linearly. The nodes of a small tree "
        "are in the caches of the processor, those of a large one are not, so that a visit takes "
        "longer there.",
        opposite=min(slopes) >= 1,
    )


def _linear_space(found: Observations) -> Judgement:
    space = found.curve(TREE, "space")
    slope = growth_exponent(space)
    each = {x: size / float(x) for x, size in space.items()}
    return judge(
        slope <= _SUPER,
        f"exponent {slope:.2f}; edges and successors for each subscription {listed(each, '.1f')}",
        "Space grows faster than the subscriptions. Subscriptions have more tests as they grow in "
        "number here, and each test adds a node to a path and successors to a node.",
        opposite=slope > 1.5,
    )


def _constant_matches(found: Observations) -> Judgement:
    matches = found.curve(TREE, "matches")
    low, high = min(matches.values()), max(matches.values())
    return judge(
        high / max(low, 1e-9) <= (1 + _SAME) / (1 - _SAME),
        f"{low:.1f} to {high:.1f}",
        "The factor holds the expectation. Few events, or a few popular subscriptions, make the "
        "mean scatter.",
    )


class ConstantMatches(TreeExperiment):
    """Loads in which an event matches as many subscriptions at every size."""

    def load_step(self, scale: LabScale, n: int, curves: tuple[Curve, ...]) -> LabStep:
        """The step with `n` subscriptions."""
        given = {
            "subscriptions": self.fewer(n),
            "attributes": 30,
            "values": 5,
            "matches": MATCHES,
            "effort": str(scale),
        }
        return LabStep(self.fewer(n), curves, given)

    def draw(self, step: LabStep, seed: int) -> Workload:
        given = step.parameters
        return gryphon.make(
            given["subscriptions"],
            seed=seed,
            attributes=given["attributes"],
            values=given["values"],
            matches=min(given["matches"], given["subscriptions"] / 10),
        )


class SimulatedLoad(ConstantMatches):
    """The tree with and without index attributes, tuned, naive matching, and `tamis`."""

    id = "AG-sim"
    title = "Time and space of the simulated load"
    source = "section 7, figure with the simulated workload"
    plots = tree_axes("subscriptions")
    grid = (
        COLLAPSED,
        ANNOTATED,
        {**COLLAPSED, "factor": 2},
        {**COLLAPSED, "factor": 3},
        {**ANNOTATED, "factor": 3},
        {"tree": "general"},
    )
    claims = (
        Claim(
            "AG-sim.time",
            "Matching time is sub-linear in the number of subscriptions.",
            _sublinear_time,
            stated="figures lost",
        ),
        Claim(
            "AG-sim.space",
            "Space, as edges and successors, is linear in the number of subscriptions.",
            _linear_space,
            stated="figures lost",
        ),
        Claim(
            "AG-sim.matches",
            "The number of matches an event stays the same while subscriptions grow.",
            _constant_matches,
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        curves = (
            Curve(LINEAR),
            Curve(UNFACTORED, Mode.PAPER, ANNOTATED),
            Curve(TREE, Mode.PAPER, SIMULATED),
            Curve(TREE, Mode.TUNED),
            OURS,
        )
        sizes = _SIZES[scale]
        return [self.load_step(scale, n, curves) for n in sizes]
