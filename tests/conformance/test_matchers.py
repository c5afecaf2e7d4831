"""Every matcher of the registry, under every trial of its options, passes every check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from tamis.match.base import Matcher
from tamis.match.registry import create, entry
from tamis.testing import CHECKS
from tamis.testing.soak import soak
from tamis.testing.state_machine import machine
from tests.running import run_machine
from tests.trials import TRIALS

each_trial = pytest.mark.parametrize(("name", "options"), TRIALS)


def _make(name: str, options: Mapping[str, Any]) -> Callable[[], Matcher]:
    return partial(create, name, **options)


@pytest.mark.parametrize("check", CHECKS)
@each_trial
def test_conforms(name: str, options: Mapping[str, Any], check: str) -> None:
    CHECKS[check](_make(name, options))


@each_trial
def test_state_machine_of_adds_removes_and_matches(name: str, options: Mapping[str, Any]) -> None:
    examples = max(2, round(15 * entry(name).effort))
    run_machine(machine(_make(name, options)), examples, steps=25)


@each_trial
def test_a_short_soak_agrees_with_naive(name: str, options: Mapping[str, Any]) -> None:
    effort = entry(name).effort
    operations = round(800 * effort)
    found = soak(_make(name, options), partial(create, "naive"), operations=operations, seed=7)
    assert found.pairs > 10_000 * effort**2
    assert found.disagreements == 0
