"""Engines with conditions that call operators, and the truth about them."""

from __future__ import annotations

import random
from typing import Any

from tamis import Engine
from tamis.errors import ConditionError
from tamis.model import semantics
from tamis.model.condition import Condition
from tamis.operators.remembering_runner import RememberingRunner
from tamis.testing import operator_cases as cases

TRUTHS = cases.truths()
EVENTS = [cases.event(random.Random(number)) for number in range(20)]


def patient(engine: Engine) -> Engine:
    """The engine, which sets no operator aside for its faults."""
    engine.calls.runner = RememberingRunner(faults=1_000_000)
    return engine


def filled(
    number: int = 12, seed: int = 5, scheduler: str = "adaptive"
) -> tuple[Engine, dict[int, Condition]]:
    """An engine with so many random conditions, and the conditions by id."""
    chance = random.Random(seed)
    engine = patient(Engine(cases.SCHEMA, operators=cases.OPERATORS, scheduler=scheduler))
    live: dict[int, Condition] = {}
    while len(live) < number:
        condition = cases.condition(chance)
        try:
            engine.subscribe(condition, id=len(live))
        except ConditionError:
            continue
        live[len(live)] = condition
    return engine, live


def expected(live: dict[int, Condition], event: dict[str, Any]) -> set[int]:
    """The ids that an event matches, by the definition of truth."""
    return {
        id
        for id, condition in live.items()
        if semantics.satisfies(condition, event, cases.SCHEMA, TRUTHS)
    }
