"""Engines with operators against the definition of truth, on random instances.

An instance is a few subscriptions that share predicates, and a few events. Every scheduler must
give the answers of `semantics.satisfies`, which evaluates everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tamis.engine import Engine
from tamis.errors import ConditionError
from tamis.model import semantics
from tamis.model.condition import Condition
from tamis.operators.remembering_runner import RememberingRunner
from tamis.schedule.registry import schedulers
from tamis.testing import operator_cases as cases

_SUBSCRIPTIONS = 8
_EVENTS = 3


@dataclass
class SchedulerComparison:
    """The comparison of schedulers with the definition of truth."""

    instances: int = 0
    subscriptions: int = 0
    pairs: int = 0
    matches: int = 0
    disagreements: int = 0
    calls: dict[str, int] = field(default_factory=dict)  # of operators, by scheduler


def compare_schedulers(
    instances: int,
    seed: int = 0,
    names: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> SchedulerComparison:
    """Compare the schedulers, or those named, with the definition of truth."""
    chance = random.Random(seed)
    result = SchedulerComparison()
    truths = cases.truths()
    for number in range(instances):
        engines = {
            name: Engine(cases.SCHEMA, "scan", operators=cases.OPERATORS, scheduler=name)
            for name in names or schedulers()
        }
        for engine in engines.values():
            engine.calls.runner = RememberingRunner(
                faults=1_000_000
            )  # never gives up on an operator
        live = _subscribed(chance, list(engines.values()))
        events = [cases.event(chance) for _ in range(_EVENTS)]
        expected = [
            {
                id
                for id, each in live.items()
                if semantics.satisfies(each, event, cases.SCHEMA, truths)
            }
            for event in events
        ]
        for name, engine in engines.items():
            for answer, wanted in zip(engine.match_batch(events), expected, strict=True):
                result.disagreements += len(set(answer) ^ wanted) + len(answer) - len(set(answer))
            called = sum(each.events for each in engine.report())
            result.calls[name] = result.calls.get(name, 0) + called
        result.instances += 1
        result.subscriptions += len(live)
        result.pairs += len(live) * len(events)
        result.matches += sum(map(len, expected))
        if progress:
            progress(number + 1)
    return result


def _subscribed(chance: random.Random, engines: list[Engine]) -> dict[int, Condition]:
    live: dict[int, Condition] = {}
    while len(live) < _SUBSCRIPTIONS:
        condition = cases.condition(chance)
        try:
            for engine in engines:
                engine.subscribe(condition, id=len(live))
        except ConditionError:
            continue  # nothing binds a variable, or the condition can never hold
        live[len(live)] = condition
    return live
