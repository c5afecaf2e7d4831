"""Predicates of different costs: what section 4.3 adds, and what more there is to gain.

The paper plots nothing here. It puts costs into the weights that order chains, and sorts each chain
by probability alone. We also sort chains by cost / probability to kill, and run schedulers that are
not given the costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observations,
)
from tamis.lab.papers.checks import judge, judge_all, percent
from tamis.lab.papers.liu.draws import Contender
from tamis.lab.papers.liu.scheduling import (
    ADAPTIVE,
    CONTENDERS,
    NAIVE,
    SEQUENTIAL,
    SUB_ORDER,
    SchedulingExperiment,
)

_HIDDEN = "adaptive, costs hidden"
_HIDDEN_SUB_ORDER = "sub-order, costs hidden"
_SETTINGS = {"uniform": (80_000, 40_000, None), "Zipf 1": (20_000, 5_000, 1.0)}
_SAME = 0.05  # a heuristic order may lose as much by chance
FACTOR = 1_000.0  # of the largest cost to the smallest


def _below_sequential(found: Observations) -> Judgement:
    ordered, sequential = (found.curve(name, "cost") for name in (SUB_ORDER, SEQUENTIAL))
    return judge_all(
        (ordered[x] < sequential[x] for x in sequential),
        _shares(ordered, sequential, "of Sequential's cost"),
        "Chains sorted by probability alone begin with predicates that kill, at any price. "
        "Weights of pairs cannot repair this, because they do not change the order in a chain.",
    )


def _worth_including(found: Observations) -> Judgement:
    known, hidden = (found.curve(name, "cost") for name in (SUB_ORDER, _HIDDEN_SUB_ORDER))
    gains = [known[x] < hidden[x] for x in hidden]
    worst = max(known[x] / hidden[x] for x in hidden)
    return judge(
        all(gains),
        _shares(known, hidden, "of the cost without them"),
        "Weights of pairs decide little once chains are sorted by probability alone. "
        "A chain that begins with a dear predicate remains dear at any place.",
        opposite=worst > 1 + _SAME,
    )


def _shares(part: dict[float | str, float], whole: dict[float | str, float], what: str) -> str:
    return ", ".join(f"{x}: {percent(part[x] / whole[x])}" for x in whole) + f" {what}"


class DifferentCosts(SchedulingExperiment):
    """Costs are log-uniform from 1 to 1,000, independent of all else."""

    id = "LI-cost"
    title = "Predicates of different costs"
    source = "section 4.3, which has no figure"
    plots = (
        Axes("popularity of predicates", "cost of an event", "cost", log_y=True),
        Axes("popularity of predicates", "predicates evaluated an event", "evaluated"),
    )
    claims = (
        Claim(
            "LI-cost.order",
            "Sub-Order carries over to different costs: it costs less than Sequential.",
            _below_sequential,
        ),
        Claim(
            "LI-cost.weights",
            "Costs can be included in the weights of pairs, and this makes events cheaper.",
            _worth_including,
        ),
    )
    contenders: ClassVar[Mapping[str, Contender]] = {
        **CONTENDERS,
        _HIDDEN_SUB_ORDER: Contender("sub-order", costs_known=False),
        _HIDDEN: Contender("adaptive", costs_known=False),
    }
    curves = (
        Curve(NAIVE),
        Curve(SEQUENTIAL),
        Curve(SUB_ORDER, options={"chains": "selectivity"}),
        Curve(_HIDDEN_SUB_ORDER, options={"chains": "selectivity"}),
        Curve(SUB_ORDER, Mode.TUNED, {"chains": "cost"}),
        Curve(ADAPTIVE, Mode.OURS),
        Curve(_HIDDEN, Mode.OURS),
    )

    def settings(self, scale: LabScale) -> Sequence[LabStep]:
        return [
            self.step(
                scale,
                name,
                subscriptions=subscriptions,
                predicates=predicates,
                exponent=exponent,
                factor=FACTOR,
            )
            for name, (subscriptions, predicates, exponent) in _SETTINGS.items()
        ]
