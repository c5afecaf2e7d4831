"""LS-10: processing time by the share of equalities, p.

The paper has 800,000 subscriptions and varies p from 0 to 1; which values it plots is open. At the
small scale there are 50,000: all counts are proportional to the subscriptions.
"""

from __future__ import annotations

from tamis.lab.experiments.experiment import Axes, Claim, Judgement, Observations
from tamis.lab.papers.checks import NOISE, curves, falling, figure, judge, points, ratio
from tamis.lab.papers.lesubscribe.setting import (
    FAIR,
    PREFERRED,
    QUARANTINE,
    THREE,
    LeSubscribeExperiment,
)
from tamis.lab.papers.matcher_experiment import ExperimentSize, small_and_paper

TIME = "batch_ms"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def falls_with_equalities(seen: Observations) -> Judgement:
    """Whether all three get faster as p rises."""
    return falling(
        curves(seen, THREE, TIME),
        "ms",
        "The counts fall with p for all three. A time that does not fall is dominated by work that "
        "p does not change, such as fair-predicate's pass over all subscriptions at the end.",
    )


def equal_without_inequalities(seen: Observations) -> Judgement:
    """Whether equality-preferred and quarantine are the same at p = 1."""
    preferred, quarantine = (points(seen, name, TIME)[1.0] for name in (PREFERRED, QUARANTINE))
    work = [points(seen, name, "subscriptions")[1.0] for name in (PREFERRED, QUARANTINE)]
    return judge(
        work[0] == work[1] and 0.8 <= preferred / quarantine <= 1.25,
        f"equality-preferred {figure(preferred)}, quarantine {figure(quarantine)} ms; both touch "
        f"{figure(work[0])} and {figure(work[1])} subscriptions an event",
        "Both look up the same clusters and touch the same subscriptions. What differs is that "
        "equality-preferred compares a counter of each, where quarantine knows beforehand that "
        "nothing is left to verify.",
    )


def fewer_sums(seen: Observations) -> Judgement:
    """Whether quarantine raises far fewer counters than equality-preferred at p = 0.5."""
    preferred, quarantine = (
        points(seen, name, "additions")[0.5] for name in (PREFERRED, QUARANTINE)
    )
    fewer = ratio(preferred, quarantine)
    return judge(
        fewer >= 4,
        f"{figure(preferred)} and {figure(quarantine)} sums an event at p = 0.5: "
        f"{figure(fewer)} times fewer",
        "Quarantine counts only subscriptions without an equality. Their share decides the ratio, "
        "and it follows from p and the number of attributes.",
        opposite=fewer < 1 - NOISE,
    )


def follows_the_cost_model(seen: Observations) -> Judgement:
    """Whether fair-predicate's time rises with its additions plus its comparisons."""
    times, sums = points(seen, FAIR, TIME), points(seen, FAIR, "subscriptions")
    first, last = SHARES[0], SHARES[-1]
    slower, more = times[first] / times[last], ratio(sums[first], sums[last])
    return judge(
        slower > 1 + NOISE and more > 1,
        f"p = 0 against p = 1: {figure(more)} times the sums, {figure(slower)} times the time",
        "The model adds a comparison for each subscription to the sums. If comparisons cost as "
        "much as the sums, the time does not follow the satisfied predicates.",
        opposite=slower < 1 - NOISE,
    )


class LsFigure10(LeSubscribeExperiment):
    """Figure 10."""

    id = "LS-10"
    title = "Processing time by the share of equalities"
    source = "figure 10"
    varied = ("p", SHARES)
    plots = (
        Axes("share p of equalities on a4 to a6", "processing time (ms an event)", TIME),
        Axes("share p of equalities on a4 to a6", "subscriptions touched", "subscriptions"),
    )
    sizes = small_and_paper(
        ExperimentSize((50_000,), 1_000, 0.3),
        ExperimentSize((800_000,), 1_000, 3.0),
    )
    claims = (
        Claim(
            "LS-10.fall",
            "The time of all three falls as the share of equalities rises.",
            falls_with_equalities,
        ),
        Claim(
            "LS-10.equal",
            "Without inequalities, equality-preferred and quarantining perform the same.",
            equal_without_inequalities,
        ),
        Claim("LS-10.sums", "Quarantining largely reduces the number of sums.", fewer_sums),
        Claim(
            "LS-10.model",
            "An inequality is satisfied more often than an equality, and this costs the time.",
            follows_the_cost_model,
        ),
    )
