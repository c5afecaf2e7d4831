"""Observations made up for claims, so that each of their branches is taken."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.lab.experiments.experiment import (
    OVER_LIMIT,
    Claim,
    Experiment,
    Judgement,
    Mode,
    Observation,
    Observations,
    Standing,
)

CONFIRMED, NOT_CONFIRMED = Standing.CONFIRMED, Standing.NOT_CONFIRMED
CONTRARY, UNTESTABLE = Standing.CONTRARY, Standing.UNTESTABLE


def line(curve: str, panel: str = "", /, **quantities: Any) -> list[Observation]:
    """A curve as published: the values of each quantity by x."""
    steps = dict.fromkeys(x for values in quantities.values() for x in values)
    return [
        Observation(
            x,
            curve,
            Mode.PAPER,
            measured={name: [values[x]] for name, values in quantities.items() if x in values},
            counts={},
            parameters={"processors": 2},
            panel=panel,
        )
        for x in steps
    ]


def refused(curve: str, *steps: float) -> list[Observation]:
    """A curve that refuses some steps."""
    return [Observation(x, curve, Mode.PAPER, refusal="too large") for x in steps]


def left_out(curve: str, *steps: float) -> list[Observation]:
    """A curve that the run left out at some steps."""
    return [Observation(x, curve, Mode.PAPER, refusal=f"{OVER_LIMIT}60 s") for x in steps]


class Case(NamedTuple):
    """What a claim must say about some observations."""

    claim: str
    standing: Standing
    seen: list[Observation]


def judged(given: Experiment, case: Case) -> Judgement:
    """The judgement of a case. A claim that is not confirmed says why in two sentences or more."""
    judgement = claim_of(given, case.claim).check(Observations(case.seen))
    assert judgement.seen
    assert "nan" not in judgement.seen
    if judgement.standing is CONFIRMED:
        assert judgement.why == ""
    else:
        assert judgement.why.count(". ") + judgement.why.endswith(".") >= 2, judgement.why
    return judgement


def claim_of(given: Experiment, id: str) -> Claim:
    """The claim of an experiment with an id."""
    return next(each for each in given.claims if each.id == id)
