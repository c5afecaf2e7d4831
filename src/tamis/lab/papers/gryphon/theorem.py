"""The theorem on nodes visited, and the remarks on space, preprocessing and the worst event.

With K attributes of V values, K1 = K + 1 and λ = ln V / (ln V + ln K1), a uniform event visits at
most

    V·K1·(K1·|S|^(1 - λ) - 1)·(ln V + ln K1) / ((V·K1 - 1)·ln K1)

nodes on average, for any set S of subscriptions. The formula is lost from our copy of the paper.
This is how the paper of Le Subscribe prints it. λ is ½ exactly if V = K + 1, so that 4 attributes
of 5 values are measured beside 30.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import log

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Observation,
    Observations,
)
from tamis.lab.papers.checks import Points, growth_exponent, judge, judge_all, listed, points
from tamis.lab.papers.gryphon.trees import OURS, PLAIN_TREE, TREE, TreeExperiment, tree_axes
from tamis.workload import Workload, gryphon

BOUND = Curve("bound of the theorem")
WIDE, NARROW = "30 attributes", "4 attributes"
WORST_EVENT, PREPROCESSING = "worst event", "preprocessing, by attributes"
VALUES = 5
_WIDTHS = {WIDE: 30, NARROW: 4, WORST_EVENT: 30}
_SIZES = {
    LabScale.SMALL: {
        WIDE: (200, 1_000, 5_000, 25_000, 100_000),
        NARROW: (20, 80, 320, 1_295),
        WORST_EVENT: (500, 2_000, 8_000),
    },
    LabScale.PAPER: {
        WIDE: (200, 1_000, 5_000, 25_000, 100_000, 400_000),
        NARROW: (20, 80, 320, 1_295),
        WORST_EVENT: (500, 2_000, 8_000, 32_000, 128_000),
    },
}
_BUILT = {LabScale.SMALL: 20_000, LabScale.PAPER: 100_000}
_LINEAR, _SQUARE = 1.3, 1.7  # exponents of times that count as linear, and as quadratic


def visit_bound(subscriptions: float, attributes: int) -> float:
    """The theorem's bound on the nodes that a uniform event visits."""
    k1 = attributes + 1
    both = log(VALUES) + log(k1)
    power = subscriptions ** (log(k1) / both)  # 1 - λ
    return float(VALUES * k1 * (k1 * power - 1) * both / ((VALUES * k1 - 1) * log(k1)))


def _visits(found: Observations, panel: str) -> Points:
    return found.curve(TREE, "visited_nodes", panel=panel)


def _of_tree(found: Observations, panel: str) -> list[Observation]:
    mine = [each for each in found.all if (each.curve, each.panel) == (TREE, panel)]
    if not mine:
        raise KeyError(panel)
    return mine


def _below_bound(found: Observations) -> Judgement:
    holds, seen = [], []
    for panel, width in ((WIDE, 30), (NARROW, 4)):
        visits = _visits(found, panel)
        shares = {x: each / visit_bound(float(x), width) for x, each in visits.items()}
        if not shares:
            raise KeyError(panel)
        holds += [share <= 1 for share in shares.values()]
        seen.append(
            f"{panel}: {min(shares.values()):.2f} to {max(shares.values()):.2f} of the bound"
        )
    return judge_all(
        holds,
        "; ".join(seen),
        "Our tree visits more nodes than the bound allows at some size. As the theorem has a "
        "proof, this points at an error in our tree or in our copy of the formula.",
    )


def _sublinear(found: Observations) -> Judgement:
    slopes = {panel: growth_exponent(_visits(found, panel)) for panel in (WIDE, NARROW)}
    most = max(slopes.values())
    return judge(
        most < 0.9,
        ", ".join(f"{panel}: exponent {slope:.2f}" for panel, slope in slopes.items()),
        "Visits grow nearly in proportion to the subscriptions. The sizes measured may be too "
        "small for the power law to show.",
        opposite=most >= 1,
    )


def _square_root(found: Observations) -> Judgement:
    visits = _visits(found, NARROW)
    slope = growth_exponent(visits)
    return judge(
        slope <= 0.55,
        f"visits grow with exponent {slope:.2f} for 4 attributes: {listed(visits, ',.1f')}",
        "Visits grow faster than with the square root of the subscriptions between these sizes. "
        "The bound has the exponent ½, and visits below a bound may still grow faster for a while.",
        opposite=slope >= 0.9,
    )


def _at_most_two_ways(found: Observations) -> Judgement:
    most = {
        panel: max(max(each.measured["visited_nodes"]) for each in _of_tree(found, panel))
        for panel in (NARROW, WIDE)
    }
    limits = {panel: 2.0 ** (_WIDTHS[panel] + 1) - 1 for panel in most}
    return judge_all(
        (most[panel] <= limits[panel] for panel in most),
        ", ".join(f"{panel}: at most {most[panel]:,.0f} of {limits[panel]:,.0f}" for panel in most),
        "An event visited more nodes than a tree with two ways at each level has. This points at "
        "an error in our tree or in its count.",
    )


def _linear_space(found: Observations) -> Judgement:
    shares = {
        (panel, each.x): each.counts["tree_nodes"] / ((_WIDTHS[panel] + 1) * float(each.x))
        for panel in (WIDE, NARROW, WORST_EVENT)
        for each in _of_tree(found, panel)
    }
    return judge_all(
        (share <= 1 for share in shares.values()),
        f"{min(shares.values()):.2f} to {max(shares.values()):.2f} nodes for each of (K + 1)·|S|",
        "A tree has more nodes than all paths together. This points at an error in our tree.",
    )


def _linear_preprocessing(found: Observations) -> Judgement:
    built = points(found, TREE, "build_cpu_s", panel=WIDE)
    largest = sorted(built, key=float)[-3:]  # the time of small ones is mostly the call itself
    by_size = growth_exponent({x: built[x] for x in largest})
    by_width = growth_exponent(points(found, TREE, "build_cpu_s", panel=PREPROCESSING))
    most = max(by_size, by_width)
    return judge(
        most <= _LINEAR,
        f"time grows with exponent {by_size:.2f} in |S|, {by_width:.2f} in K",
        "Subscriptions share the first levels, so that nodes to create grow faster than levels. "
        "Larger trees also leave the caches of the processor, which takes time but no steps.",
        opposite=most >= _SQUARE,
    )


def _linear_worst_event(found: Observations) -> Judgement:
    visits = _visits(found, WORST_EVENT)
    nodes = found.curve(TREE, "tree_nodes", panel=WORST_EVENT)
    slope = growth_exponent(visits)
    same = all(visits[x] == nodes[x] for x in nodes)
    return judge(
        same and slope > 0.9,
        f"visits grow with exponent {slope:.2f}, "
        + ("all nodes of each tree" if same else f"of {listed(nodes)} nodes"),
        "The event does not visit all nodes of its tree. Its subscriptions share more of their "
        "paths than the paper's example does.",
        opposite=slope < 0.5,
    )


class TreeTheorem(TreeExperiment):
    """Worst-case subscriptions in the equality-only tree, without optimisations, and `tamis`."""

    id = "AG-thm"
    title = "Nodes visited and the bound"
    source = "section 4, theorem 1"
    plots = (
        *tree_axes("subscriptions, or attributes")[:2],
        Axes(
            "subscriptions, or attributes",
            "CPU s to build",
            "build_cpu_s",
            log_x=True,
            log_y=True,
        ),
    )
    claims = (
        Claim(
            "AG-thm.bound",
            "A uniform event visits no more nodes than the bound, for any set of subscriptions.",
            _below_bound,
            stated="C(S) of the theorem",
        ),
        Claim(
            "AG-thm.sublinear",
            "Nodes visited grow sub-linearly with the subscriptions.",
            _sublinear,
            stated="O(N^(1 - λ)); λ is 0.32 for 30 attributes of 5 values",
        ),
        Claim("AG-thm.half", "In some cases λ is about ½.", _square_root, stated="λ ≈ ½"),
        Claim(
            "AG-thm.paths",
            "An event visits at most 2^(K + 1) - 1 nodes.",
            _at_most_two_ways,
            stated="2^(K + 1) - 1",
        ),
        Claim(
            "AG-thm.space",
            "The tree has at most K + 1 nodes for each subscription.",
            _linear_space,
            stated="(K + 1)·|S|",
        ),
        Claim(
            "AG-thm.preprocessing",
            "Preprocessing takes time in proportion to subscriptions and attributes.",
            _linear_preprocessing,
            stated="O(N·K)",
        ),
        Claim(
            "AG-thm.worst",
            "For some subscriptions, the worst event visits the whole tree: linear time.",
            _linear_worst_event,
            stated="linear",
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        curves = {WORST_EVENT: (PLAIN_TREE, OURS)}
        found = []
        for panel, sizes in _SIZES[scale].items():
            for full in sizes:
                n = full if panel == NARROW else self.fewer(full)
                given = {
                    "subscriptions": n,
                    "attributes": _WIDTHS[panel],
                    "values": VALUES,
                    "effort": str(scale),
                }
                default = (BOUND, PLAIN_TREE, OURS)
                found.append(LabStep(n, curves.get(panel, default), given, panel))
        for width in (20, 40, 60):
            given = {
                "subscriptions": self.fewer(_BUILT[scale]),
                "attributes": width,
                "values": VALUES,
                "effort": str(scale),
            }
            found.append(LabStep(width, (PLAIN_TREE,), given, PREPROCESSING))
        return found

    def draw(self, step: LabStep, seed: int) -> Workload:
        makers: dict[str, Callable[..., Workload]] = {
            WORST_EVENT: gryphon.make_worst_event,
            PREPROCESSING: partial(gryphon.make, factor=1.0, popularity=0.5),
        }
        make = makers.get(step.panel, gryphon.make_worst_set)
        given = step.parameters
        return make(
            given["subscriptions"],
            seed=seed,
            attributes=given["attributes"],
            values=given["values"],
        )

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        if BOUND in step.curves:
            bound = visit_bound(step.parameters["subscriptions"], step.parameters["attributes"])
            yield step.observation(BOUND, counts={"visited_nodes": bound})
            rest = tuple(each for each in step.curves if each != BOUND)
            step = LabStep(step.x, rest, step.parameters, step.panel)
        if step.curves:
            yield from super().measure(step, seed)
