"""What every registered experiment keeps, whoever wrote it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from tamis import TamisError
from tamis.lab.experiments.experiment import Experiment, Judgement, LabScale, Observations
from tamis.lab.experiments.judgement import judge
from tamis.lab.experiments.registry import EXPERIMENTS, experiment, figure_ids
from tamis.lab.experiments.result_files import LabResult, described
from tamis.lab.plots.algorithms import LOOKS
from tamis.lab.report.summary import PAPERS

EVERY = [experiment(name) for name in EXPERIMENTS]


def _id(given: Experiment) -> str:
    return given.id


@pytest.mark.parametrize("given", EVERY, ids=_id)
def test_an_experiment_describes_itself(given: Experiment) -> None:
    assert EXPERIMENTS[given.id] == f"{type(given).__module__}:{type(given).__qualname__}"
    assert given.paper in PAPERS
    assert given.title
    assert given.source
    assert type(given).__doc__, "what the paper leaves open"
    assert given.plots
    for axes in given.plots:
        assert axes.x, "an axis without a label"
        assert axes.y
    for claim in given.claims:
        assert claim.id.partition("-")[0] == given.id.partition("-")[0], "of the same paper"
        assert any(claim.id.startswith(f"{figure}.") for figure in figure_ids(given))
        assert claim.statement
        assert callable(claim.check)


@pytest.mark.parametrize("given", EVERY, ids=_id)
def test_its_steps_are_a_plan(given: Experiment) -> None:
    """Each observation has one place in the result file, and the plan can be stored."""
    assert given.steps(LabScale.SMALL) or given.steps(LabScale.CLUSTER)
    for scale in LabScale:
        steps = given.steps(scale)
        places = Counter(
            (step.x, step.panel, curve.name, curve.mode) for step in steps for curve in step.curves
        )
        assert all(many == 1 for many in places.values())
        assert all(step.curves for step in steps)
        plan = described(steps)
        assert json.loads(json.dumps(plan)) == plan
        assert described(given.steps(scale)) == plan, "the same at each call"


@pytest.mark.parametrize("given", EVERY, ids=_id)
def test_its_curves_look_different_and_the_same_everywhere(given: Experiment) -> None:
    names = {
        curve.name for scale in LabScale for step in given.steps(scale) for curve in step.curves
    }
    assert names <= LOOKS.keys(), "give each a line in tamis/lab/plots/algorithms.py"
    assert len({LOOKS[name] for name in names}) == len(names)


@pytest.mark.parametrize("given", EVERY, ids=_id)
def test_its_claims_say_when_results_are_missing(given: Experiment) -> None:
    empty = LabResult.begin(given, LabScale.SMALL, 1)
    for verdict in judge(given, empty):
        assert verdict.lacking.startswith("the results are incomplete (0 of ")
    without = replace(empty, steps=[])  # whole, but nothing in it
    for verdict in judge(given, without):
        assert verdict.lacking or isinstance(verdict.judgement, Judgement)


@pytest.mark.parametrize("given", [each for each in EVERY if each.trial()], ids=_id)
@pytest.mark.slow
def test_its_trial_gives_what_it_plots(given: Experiment) -> None:
    found = [seen for step in given.trial() for seen in given.measure(step, seed=1)]
    planned = [(step.x, curve.name) for step in given.trial() for curve in step.curves]
    assert [(each.x, each.curve) for each in found] == planned
    assert all(each.refusal or each.measured or each.counts for each in found)
    for axes in given.plots:
        assert any(each.has(axes.quantity) for each in found), axes.quantity
    for claim in given.claims:
        try:
            claim.check(Observations(found))
        except (KeyError, IndexError, ValueError, ZeroDivisionError):
            continue  # it needs more steps


def test_claims_have_ids_of_their_own() -> None:
    ids = Counter(claim.id for each in EVERY for claim in each.claims)
    assert [id for id, many in ids.items() if many > 1] == []


def test_names_are_found_in_any_case_and_mistakes_are_named() -> None:
    for name in EXPERIMENTS:
        assert experiment(name.lower()).id == name
        for figure in figure_ids(experiment(name)):
            assert figure in EXPERIMENTS or experiment(figure.lower()).id == name
    with pytest.raises(TamisError, match="unknown experiment 'DX-99'"):
        experiment("DX-99")
