"""Every matcher of the registry, under every trial of its options, passes every check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import pytest

from tamis.match.base import Matcher
from tamis.match.registry import create, entry
from tamis.testing import CHECKS
from tamis.testing.soak import StoryStep, replay, story
from tamis.testing.state_machine import machine
from tests.running import run_machine
from tests.trials import FIRST_TRIALS, TRIALS

each_trial = pytest.mark.parametrize(("name", "options"), TRIALS)
each_matcher = pytest.mark.parametrize(("name", "options"), FIRST_TRIALS)


def _make(name: str, options: Mapping[str, Any]) -> Callable[[], Matcher]:
    return partial(create, name, **options)


# What an engine does around its matcher, whatever the options of the matcher: tried once for each.
OF_ENGINES = {
    "open_schema",
    "language_examples",
    "domains_grow",
    "threads",
    "bits_of_subscriptions",
}


@pytest.mark.parametrize("check", sorted(CHECKS.keys() - OF_ENGINES))
@each_trial
def test_conforms(name: str, options: Mapping[str, Any], check: str) -> None:
    CHECKS[check](_make(name, options))


@pytest.mark.parametrize("check", sorted(OF_ENGINES))
@each_matcher
def test_conforms_in_an_engine(name: str, options: Mapping[str, Any], check: str) -> None:
    CHECKS[check](_make(name, options))


@each_trial
def test_state_machine_of_adds_removes_and_matches(name: str, options: Mapping[str, Any]) -> None:
    first = options == entry(name).trials[0]
    examples = max(2, round((10 if first else 4) * entry(name).effort))
    run_machine(machine(_make(name, options)), examples, steps=25)


@cache
def _story(operations: int) -> list[StoryStep]:
    """Drawn and answered once for all trials of a process."""
    return list(story(partial(create, "naive"), operations, seed=7))


@each_trial
def test_a_short_soak_agrees_with_naive(name: str, options: Mapping[str, Any]) -> None:
    effort = entry(name).effort
    found = replay(_make(name, options), _story(round(800 * effort)))
    assert found.pairs > 10_000 * effort**2
    assert found.disagreements == 0
