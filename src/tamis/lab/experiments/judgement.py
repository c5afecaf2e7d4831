"""Verdicts: what the results say about each claim of a paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tamis.lab.experiments.experiment import Claim, Experiment, Judgement
from tamis.lab.experiments.result_files import LabResult

# What a check raises that misses an observation, or has too few for a mean or a slope.
_LACKING = (KeyError, IndexError, ValueError, ZeroDivisionError)


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim and its judgement; without one, `lacking` says why."""

    experiment: Experiment
    claim: Claim
    judgement: Judgement | None
    lacking: str = ""

    @property
    def standing(self) -> str:
        return str(self.judgement.standing) if self.judgement else "not measured"


def judge(experiment: Experiment, result: LabResult | None) -> list[ClaimVerdict]:
    """The verdicts of an experiment on its results, in the order of its claims.

    Results that are not whole give none: a claim about all steps could hold at the first ones.
    """
    return [_verdict(experiment, claim, result) for claim in experiment.claims]


def _verdict(experiment: Experiment, claim: Claim, result: LabResult | None) -> ClaimVerdict:
    if result is None:
        return ClaimVerdict(experiment, claim, None, "there is no result file")
    if not result.whole:
        done = f"{len(result.observations)} of {result.size} observations"
        return ClaimVerdict(experiment, claim, None, f"the results are incomplete ({done})")
    try:
        return ClaimVerdict(experiment, claim, claim.check(result.observed()))
    except _LACKING as why:
        reason = f"the results lack what the check needs ({type(why).__name__} {why})"
        return ClaimVerdict(experiment, claim, None, reason)


@dataclass(frozen=True)
class VerdictChange:
    """A claim whose standing differs between two result folders."""

    claim: Claim
    before: ClaimVerdict
    after: ClaimVerdict


def changes(
    before: Mapping[str, ClaimVerdict], after: Mapping[str, ClaimVerdict]
) -> list[VerdictChange]:
    """The claims that stand differently, by the ids of claims, where both have a judgement."""
    return [
        VerdictChange(verdict.claim, before[id], verdict)
        for id, verdict in after.items()
        if id in before
        and verdict.judgement is not None
        and before[id].judgement is not None
        and before[id].standing != verdict.standing
    ]
