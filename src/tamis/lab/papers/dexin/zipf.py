"""Figures 7 to 9: figures 2, 4 and 6 under Zipf's law, and under a uniform one.

The paper compares each figure with its uniform one. Here both distributions are measured in one
experiment, in two panels, at the same steps. The algorithms are tuned under Zipf's law only.
Cells have equal width, as in the paper: cells of equal population would remove the skew. The paper
gives no exponent; ours is 1, with the smallest value as the most popular one.
"""

from __future__ import annotations

from math import log
from statistics import fmean

from tamis.lab.experiments.experiment import Claim, Curve, Judgement, LabScale, Observations
from tamis.lab.papers.checks import judge
from tamis.lab.papers.dexin import attributes, range_widths, subscriptions
from tamis.lab.papers.dexin.checks import CurveReading, listed, shared
from tamis.lab.papers.dexin.curves import ALGORITHMS, compared_curves, paper_curves
from tamis.lab.papers.dexin.scenario import DexinExperiment, time_plots

UNIFORM, ZIPF = "uniform", "Zipf"
_DISTRIBUTIONS = {UNIFORM: {"distribution": "uniform"}, ZIPF: {"distribution": "zipf"}}
_SHARES = {**subscriptions.SHARES, LabScale.SMALL: (0.25, 1.0)}
_ATTRIBUTES = {**attributes.ATTRIBUTES, LabScale.SMALL: (4, 16)}
_WIDTHS = {**range_widths.WIDTHS, LabScale.SMALL: (0.2, 0.6)}
_NOISE = 1.02


class ZipfExperiment(DexinExperiment):
    """A varied parameter under two distributions of values."""

    panels = _DISTRIBUTIONS

    def curves(self, panel: str) -> tuple[Curve, ...]:
        return compared_curves() if panel == ZIPF else paper_curves()


def slowdowns(seen: Observations) -> dict[str, float]:
    """For each algorithm, its mean time under Zipf's law in parts of that under a uniform one."""
    found = {}
    for name in ALGORITHMS:
        skewed = CurveReading(panel=ZIPF).points(seen, name)
        uniform = CurveReading(panel=UNIFORM).points(seen, name)
        found[name] = fmean(skewed[x] / uniform[x] for x in shared([skewed, uniform]))
    return found


def _slower(seen: Observations) -> Judgement:
    found = slowdowns(seen)
    why = (
        "Points and low ends gather at the low end of the domain, but ranges stay as wide, so most "
        "algorithms touch about as many subscriptions as before, as the counts show. What pays is "
        "a search without order in a crowded cell: REIN compares its whole bucket one by one."
    )
    said = "time under Zipf / uniform: " + listed(
        {name: f"{each:.2f}" for name, each in found.items()}
    )
    ratios = found.values()
    return judge(
        all(each > _NOISE for each in ratios),
        said,
        why,
        opposite=all(each < 1 / _NOISE for each in ratios),
    )


def _least_affected(seen: Observations) -> Judgement:
    found = {name: abs(log(each)) for name, each in slowdowns(seen).items()}
    ranked = sorted(found, key=found.__getitem__)
    why = (
        "OpIndex compares every range under any distribution, and TAMA counts about as often. "
        "DEXIN finds its place in a crowded slot by bisection, but more subscriptions are left to "
        "be checked after its first attribute."
    )
    said = "change of time, least first: " + listed({name: f"{found[name]:.1%}" for name in ranked})
    return judge(ranked[0] == "dexin", said, why, opposite=ranked[-1] == "dexin")


def zipf_claims(id: str, varied: str) -> tuple[Claim, ...]:
    """The claims of one of the three figures."""
    return (
        Claim(
            f"{id}.slower",
            f"All six algorithms are slower under Zipf's law, for any {varied}.",
            _slower,
        ),
        Claim(
            f"{id}.least", f"Zipf's law affects DEXIN the least, for any {varied}.", _least_affected
        ),
    )


class ZipfSubscriptionsExperiment(ZipfExperiment):
    """All six algorithms, N from 0.25 to 1.75 million, under two distributions."""

    id = "DX-7"
    title = "Matching time by number of subscriptions under Zipf's law"
    source = "figure 7"
    varied = "n"
    values = _SHARES
    plots = time_plots(subscriptions.AXIS)
    claims = zipf_claims("DX-7", "number of subscriptions")


class ZipfAttributesExperiment(ZipfExperiment):
    """All six algorithms, M from 2 to 22, under two distributions."""

    id = "DX-8"
    title = "Matching time by number of attributes under Zipf's law"
    source = "figure 8"
    varied = "attributes"
    values = _ATTRIBUTES
    plots = time_plots(attributes.AXIS)
    claims = zipf_claims("DX-8", "number of attributes")


class ZipfWidthsExperiment(ZipfExperiment):
    """All six algorithms, all ranges of one width, under two distributions."""

    id = "DX-9"
    title = "Matching time by width of ranges under Zipf's law"
    source = "figure 9"
    varied = "theta"
    values = _WIDTHS
    plots = time_plots(range_widths.AXIS)
    claims = zipf_claims("DX-9", "width of ranges")
