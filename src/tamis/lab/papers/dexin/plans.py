"""Figures 15 and 16: plans by LMRFF against optimal plans, by the number of attributes.

One experiment for two figures. Figure 15 shows the cost μ of the plans, figure 16 the time to match
an event with and without the time to plan. For the latter, the plans of all events are made before
and given to the matcher. Each attribute is uniform or follows Zipf's law, by the toss of a coin.
The optimal plan tries all sets of exclusive attributes, 2^M of them. At M = 22 it takes a good part
of a second an event, so fewer events are timed there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean

from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observation,
    Observations,
)
from tamis.lab.instruments.matcher_runs import MatcherRuns, singles
from tamis.lab.instruments.timing import timed
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin.attributes import ATTRIBUTES, AXIS
from tamis.lab.papers.dexin.checks import TIME, CurveReading, growth, listed
from tamis.lab.papers.dexin.curves import OURS, paper_curve
from tamis.lab.papers.dexin.scenario import DexinExperiment, matcher_of
from tamis.match.dexin.dexin import Dexin

LMRFF, OPTIMAL = "dexin, LMRFF", "dexin, optimal"
MANY = 10  # attributes from which on the paper sees no difference
_ATTRIBUTES = {**ATTRIBUTES, LabScale.SMALL: (2, 4, 6, 10, 13, 16)}
_MIXED = {"": {"distribution": "mixed"}}
_NO_GAP = 0.01
_COINCIDE = 0.1
_EXPONENTIAL = 1.5  # a factor of time for each further attribute
_COSTED, _PLANNED = 20, 50  # events compared: the same for both plans
_COST = CurveReading("cost_n", unit="N")
_BARE = CurveReading("planned_ms")


def _gaps(seen: Observations) -> dict[float, float]:
    near, best = _COST.points(seen, LMRFF), _COST.points(seen, OPTIMAL)
    return {x: near[x] / best[x] - 1 for x in best if x in near}


def _shown(gaps: dict[float, float]) -> str:
    return listed({f"M = {x:g}": f"{gap:.2%}" for x, gap in gaps.items()})


def _shrinks(seen: Observations) -> Judgement:
    gaps = _gaps(seen)
    few = fmean(gap for x, gap in gaps.items() if x < MANY)
    many = fmean(gap for x, gap in gaps.items() if x >= MANY)
    why = (
        "At M = 2 both planners choose nearly the same, so the gap opens first, is widest at three "
        "to six attributes, and closes beyond. The widest gap is about one per cent."
    )
    return judge(few > many, f"LMRFF over optimal: {_shown(gaps)}", why, opposite=few < many)


def _vanishes(seen: Observations) -> Judgement:
    gaps = {x: gap for x, gap in _gaps(seen).items() if x >= MANY}
    why = (
        "Skewed attributes let nearly all or nearly none through, and then another set of "
        "exclusive attributes than the first ones can be cheaper. LMRFF never finds such sets."
    )
    holds = all(gap <= _NO_GAP for gap in gaps.values())
    return judge(holds, _shown(gaps), why, opposite=all(gap > 5 * _NO_GAP for gap in gaps.values()))


def _coincide(seen: Observations) -> Judgement:
    near, best = _BARE.points(seen, LMRFF), _BARE.points(seen, OPTIMAL)
    gaps = {x: near[x] / best[x] - 1 for x in best if x in near and x >= MANY}
    why = (
        "Beyond ten attributes the two plans are the same for nearly all events, so differences "
        "are noise of the machine or few events. The cost of the plans says the same without noise."
    )
    holds = all(abs(gap) <= _COINCIDE for gap in gaps.values())
    said = f"LMRFF over optimal, without planning: {_shown(gaps)}"
    return judge(holds, said, why, opposite=all(abs(gap) > 0.5 for gap in gaps.values()))


def _explodes(seen: Observations) -> Judgement:
    whole, bare = TIME.points(seen, OPTIMAL), _BARE.points(seen, OPTIMAL)
    near = TIME.points(seen, LMRFF)
    planning = {x: max(whole[x] - bare[x], 1e-6) for x in whole if x in bare and x >= MANY}
    span = max(planning) - min(planning)
    factor = growth(list(planning.values())) ** (1 / span)
    last = max(planning)
    said = (
        f"optimal planning {factor:.2f}-fold for each attribute beyond M = {min(planning):g}; "
        f"at M = {last:g} optimal {whole[last]:.3g} ms, LMRFF {near[last]:.3g} ms"
    )
    why = (
        "All sets are tried in compiled code, a few nanoseconds each. With few attributes that is "
        "little beside a pass over the subscriptions."
    )
    return judge(
        factor >= _EXPONENTIAL and whole[last] > near[last],
        said,
        why,
        opposite=whole[last] < near[last],
    )


class PlansExperiment(DexinExperiment):
    """DEXIN with LMRFF's and with optimal plans, M from 2 to 22."""

    id = "DX-15"
    title = "Near-optimal and optimal plans by number of attributes"
    source = "figures 15 and 16"
    varied = "attributes"
    values = _ATTRIBUTES
    panels = _MIXED
    plots = (
        Axes(AXIS, "cost of the plan, μ (subscriptions / N)", "cost_n"),
        Axes(AXIS, "event matching time with planning (ms)", "match_ms", log_y=True),
        Axes(AXIS, "event matching time without planning (ms)", "planned_ms", log_y=True),
        Axes(AXIS, "subscriptions touched per event", "subscriptions", log_y=True),
    )
    claims = (
        Claim(
            "DX-15.shrinks",
            "LMRFF's plans cost little more than optimal ones, and the gap shrinks as the "
            "attributes grow in number.",
            _shrinks,
        ),
        Claim(
            "DX-15.vanishes",
            "From ten attributes on, both plans cost the same (within 1 %).",
            _vanishes,
            stated="almost the same",
        ),
        Claim(
            "DX-16.coincide",
            "Without the time to plan, both match equally fast from ten attributes on (within "
            "10 %).",
            _coincide,
            stated="almost coincide",
        ),
        Claim(
            "DX-16.explodes",
            "With the time to plan, the optimal plan takes exponentially more time.",
            _explodes,
        ),
    )

    def curves(self, panel: str) -> tuple[Curve, ...]:
        return (
            paper_curve("dexin", "LMRFF", plan="lmrff"),
            paper_curve("dexin", "optimal", plan="optimal"),
            Curve(OURS, Mode.OURS),
        )

    def observe(self, runs: MatcherRuns, step: LabStep, curve: Curve) -> Observation:
        found = runs.observe(step, curve, matcher_of(curve))
        if found.refusal or curve.mode is Mode.OURS:
            return found
        matcher, _ = runs.build(matcher_of(curve), curve.options)
        assert isinstance(matcher, Dexin)
        more = {"cost_n": _costs(matcher, runs), "planned_ms": _planned(matcher, runs)}
        return replace(found, measured={**found.measured, **more})


def _costs(matcher: Dexin, runs: MatcherRuns) -> list[float]:
    """μ of the plan of each event."""
    costs = []
    for single in singles(runs.events[:_COSTED]):
        before = matcher.cost
        matcher.match(single)
        costs.append(matcher.cost - before)
    return costs


def _planned(matcher: Dexin, runs: MatcherRuns) -> list[float]:
    """Milliseconds of events whose plans were made before; the median of some passes."""
    each = singles(runs.events[:_PLANNED])
    plans = [matcher.exclusive_attributes(single) for single in each]
    match: list[Callable[[], object]] = [
        partial(matcher.match_planned, single, plan)
        for single, plan in zip(each, plans, strict=True)
    ]
    match[0]()
    passes = [[timed(run) for run in match] for _ in range(runs.effort.passes)]
    return [1e3 * sorted(taken)[len(taken) // 2] for taken in zip(*passes, strict=True)]
