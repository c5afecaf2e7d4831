"""Every matcher of the registry, under every trial of its options, passes every check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tamis.match.base import Matcher
from tamis.match.registry import create, entry, matchers
from tamis.testing import CHECKS
from tamis.testing.soak import soak
from tamis.testing.state_machine import machine

Trial = tuple[str, Mapping[str, Any]]


def _id(trial: Trial) -> str:
    name, options = trial
    return name + "".join(f"-{key}={value}" for key, value in options.items())


def _marks(trial: Trial) -> list[pytest.MarkDecorator]:
    # One group a matcher: its kernels are compiled in one process only.
    marks = [pytest.mark.xdist_group(trial[0])]
    if trial[1].get("database") == "postgresql":
        marks.append(pytest.mark.postgresql)
    return marks


TRIALS = [
    pytest.param((name, trial), id=_id((name, trial)), marks=_marks((name, trial)))
    for name in matchers()
    for trial in entry(name).trials
]


def _make(trial: Trial) -> Callable[[], Matcher]:
    return partial(create, trial[0], **trial[1])


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("trial", TRIALS)
def test_conforms(trial: Trial, check: str) -> None:
    CHECKS[check](_make(trial))


@pytest.mark.parametrize("trial", TRIALS)
def test_state_machine_of_adds_removes_and_matches(trial: Trial) -> None:
    run_state_machine_as_test(
        machine(_make(trial)),
        settings=settings(
            max_examples=max(2, round(15 * entry(trial[0]).effort)),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("trial", TRIALS)
def test_a_short_soak_agrees_with_naive(trial: Trial) -> None:
    effort = entry(trial[0]).effort
    operations = round(800 * effort)
    found = soak(_make(trial), partial(create, "naive"), operations=operations, seed=7)
    assert found.pairs > 10_000 * effort**2
    assert found.disagreements == 0
