"""Section 5: collapsed stars, successors, aggressive successors and index attributes, on and off.

Each is added to those before it, as in the paper; index attributes also alone. One panel varies how
often attributes are tested, another the number of subscriptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tamis.lab.experiments.experiment import (
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observations,
)
from tamis.lab.papers.checks import (
    Check,
    Points,
    growth_exponent,
    judge,
    judge_all,
    percent,
    points,
)
from tamis.lab.papers.gryphon.trees import (
    ANNOTATED,
    COLLAPSED,
    LEVELS,
    OURS,
    PLAIN_TREE,
    TREE,
    TreeExperiment,
    tree_axes,
)
from tamis.workload import Workload, gryphon

POPULARITY, SUBSCRIPTIONS = "popularity", "subscriptions"
COLLAPSE, SUCCESSORS = "aguilera, collapsed", "aguilera, successors"
AGGRESSIVE, INDEXED = "aguilera, aggressive", "aguilera, 2 index attributes"
GENERAL, GENERAL_SUCCESSORS = "aguilera, general", "aguilera, general with successors"
GENERAL_INDEXED = "aguilera, general with 2 index attributes"
CURVES = (
    PLAIN_TREE,
    Curve(COLLAPSE, Mode.PAPER, COLLAPSED),
    Curve(SUCCESSORS, Mode.PAPER, ANNOTATED),
    Curve(AGGRESSIVE, Mode.PAPER, {**ANNOTATED, "aggressive": True}),
    Curve(INDEXED, Mode.PAPER, {**LEVELS, "factor": 2}),
    Curve(GENERAL, Mode.PAPER, {"tree": "general"}),
    Curve(GENERAL_SUCCESSORS, Mode.PAPER, {"tree": "general", "successors": True}),
    Curve(GENERAL_INDEXED, Mode.PAPER, {"tree": "general", "factor": 2}),
    OURS,
)
FACTORS = (0.5, 0.7, 0.85, 0.95)
_SIZE = {LabScale.SMALL: 10_000, LabScale.PAPER: 50_000}
_SIZES = {LabScale.SMALL: (2_500, 10_000, 40_000), LabScale.PAPER: (5_000, 20_000, 80_000, 320_000)}
_NOISE = 0.03  # of times, which are those in batches: a call takes more than most events
_LINEAR = 1.1
_COUNTS = {"visited_nodes": "the nodes visited", "predicates": "the attributes examined"}


def _saved(found: Observations, better: str, worse: str, quantity: str) -> Points:
    """The share of a quantity that one curve saves of another, by popularity."""
    low, high = (points(found, name, quantity, panel=POPULARITY) for name in (better, worse))
    return {x: 1 - low[x] / high[x] for x in high}


def helps(better: str, worse: str, count: str, why: str) -> Check:
    """An optimisation lowers both a count and the time, at every popularity."""

    def check(found: Observations) -> Judgement:
        counts, times = (_saved(found, better, worse, each) for each in (count, "batch_cpu_ms"))
        both = [*counts.values(), *times.values()]
        slower = all(each < -_NOISE for each in times.values())
        return judge(
            bool(both) and min(both) > 0,
            f"saves {_span(times)} of the time, {_span(counts)} of {_COUNTS[count]}",
            why,
            opposite=slower,
        )

    return check


def _span(shares: Points) -> str:
    return f"{percent(min(shares.values()))} to {percent(max(shares.values()))}"


def _most_where_rare(found: Observations) -> Judgement:
    saved = _saved(found, COLLAPSE, TREE, "visited_nodes")
    order = [saved[x] for x in sorted(saved, key=float)]
    rare, often = order[: len(order) // 2], order[len(order) // 2 :]
    return judge_all(
        (one > other for one, other in product(rare, often)),
        ", ".join(f"factor {x}: {percent(saved[x])}" for x in sorted(saved, key=float)),
        "The factor sets how fast the popularity of attributes decays, and with it how many nodes "
        "have a star only. Where hardly any subscriptions differ, there are few nodes to omit.",
    )


def _linear_successors(found: Observations) -> Judgement:
    exponents = {}
    for name in (SUCCESSORS, AGGRESSIVE):
        exponents[name] = growth_exponent(found.curve(name, "successors", panel=SUBSCRIPTIONS))
    most = max(exponents.values())
    sizes = found.curve(SUCCESSORS, "successors", panel=SUBSCRIPTIONS)
    nodes = found.curve(SUCCESSORS, "tree_nodes", panel=SUBSCRIPTIONS)
    each = {x: sizes[x] / nodes[x] for x in nodes}
    return judge(
        most <= _LINEAR,
        ", ".join(f"{name}: exponent {slope:.2f}" for name, slope in exponents.items())
        + f"; {min(each.values()):.1f} to {max(each.values()):.1f} successors a node",
        "A node has a successor for each way to replace its last values by stars, and a denser "
        "tree has more of these ways. So successors grow somewhat faster than the subscriptions.",
        opposite=most > 1.5,
    )


def _space_for_time(found: Observations) -> Judgement:
    times, space = (_saved(found, INDEXED, TREE, each) for each in ("batch_cpu_ms", "space"))
    holds = [times[x] > 0 and space[x] < 0 for x in times]
    return judge_all(
        holds,
        f"saves {_span(times)} of the time, adds {_span({x: -y for x, y in space.items()})} "
        "of space",
        "Index attributes replace the first levels of a tree. Subscriptions that do not test them "
        "are in several trees, but the trees lack those levels, so that space may also fall.",
    )


class TreeOptimisations(TreeExperiment):
    """The equality-only tree and the general tree with each optimisation, and `tamis`."""

    id = "AG-opt"
    title = "Optimisations of the matching tree"
    source = "section 5"
    plots = tree_axes("popularity factor, or subscriptions")
    claims = (
        Claim(
            "AG-opt.collapse",
            "To leave out nodes with a star edge only reduces matching time.",
            helps(
                COLLAPSE,
                TREE,
                "visited_nodes",
                "Where attributes are tested often, hardly any node has a star only, and there is "
                "little to leave out. The times of both trees then differ no more than two runs "
                "of one tree.",
            ),
            stated="figures lost",
        ),
        Claim(
            "AG-opt.rare",
            "This saves most where attributes are rarely tested.",
            _most_where_rare,
        ),
        Claim(
            "AG-opt.successors",
            "Successor nodes improve matching time further, with fewer attributes examined.",
            helps(
                SUCCESSORS,
                COLLAPSE,
                "predicates",
                "A search with successors examines fewer attributes, but reads a list of "
                "successors at each dead end. In compiled code a test costs no more than an entry "
                "of such a list.",
            ),
            stated="figures lost",
        ),
        Claim(
            "AG-opt.aggressive",
            "Aggressive successors improve matching time once more.",
            helps(
                AGGRESSIVE,
                SUCCESSORS,
                "visited_nodes",
                "The blocked test rules out few successors, so that hardly fewer nodes are met. "
                "Times differ by more than this from run to run.",
            ),
            stated="figures lost",
        ),
        Claim(
            "AG-opt.linear",
            "Successor sets take linear extra space.",
            _linear_successors,
            stated="linear",
        ),
        Claim(
            "AG-opt.factoring",
            "Index attributes improve matching time at the cost of space.",
            _space_for_time,
            stated="figures lost",
        ),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        settings = [
            *((POPULARITY, factor, _SIZE[scale], factor) for factor in FACTORS),
            *((SUBSCRIPTIONS, self.fewer(n), n, 0.85) for n in _SIZES[scale]),
        ]
        return [
            LabStep(
                x,
                CURVES,
                {
                    "subscriptions": self.fewer(n),
                    "attributes": 30,
                    "values": 5,
                    "factor": factor,
                    "effort": str(scale),
                },
                panel,
            )
            for panel, x, n, factor in settings
        ]

    def draw(self, step: LabStep, seed: int) -> Workload:
        given = step.parameters
        return gryphon.make(
            given["subscriptions"],
            seed=seed,
            attributes=given["attributes"],
            values=given["values"],
            factor=given["factor"],
        )
