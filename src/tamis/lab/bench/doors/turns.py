"""An engine and what a user would write without it, in turns; answers before times.

Both answer the same events, and `scan` answers them too. Only if all three agree is anything timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.hash_join import HashJoin, Predicate
from tamis.lab.instruments.timing import Spread, fitting
from tamis.lab.results.records import DoorResult, Goal
from tamis.model.schema import Schema
from tamis.workload import Workload

HASH_JOIN = "hash join"
NUMPY = "numpy"
_SCALES = {"µs": 1e6, "ms": 1e3, "s": 1.0}
Answer = Callable[[Any], Any]


class DoorTurn(NamedTuple):
    """Seconds for one thing, of the engine and of the baseline, and the engine's single calls."""

    engine: float
    baseline: float
    each: Sequence[float] = ()


class DoorRow(NamedTuple):
    """What a result says apart from its figures."""

    measurement: str
    name: str
    title: str
    matcher: str
    subscriptions: int
    baseline: str


def result(
    row: DoorRow,
    unit: str,
    turns: Sequence[DoorTurn],
    goal: Goal | None,
    *,
    matches: float,
    compared: int,
    parameters: dict[str, Any],
) -> DoorResult:
    """The medians of the turns, in a unit of time, or in things a second."""
    ours, theirs = (
        [_in_unit(seconds, unit) for seconds in part]
        for part in zip(*((turn.engine, turn.baseline) for turn in turns), strict=True)
    )
    times = [turn.baseline / turn.engine for turn in turns]
    each = [seconds for turn in turns for seconds in turn.each]
    return DoorResult(
        *row, matches, median(ours), unit, min(ours), max(ours),
        Spread.of(each) if each else None, median(theirs), median(times), min(times), max(times),
        goal, compared, len(turns), parameters,
    )  # fmt: skip


def _in_unit(seconds: float, unit: str) -> float:
    return 1 / seconds if unit == "/s" else seconds * _SCALES[unit]


def alone(
    setting: BenchSetting, engine: Answer, baseline: Answer, events: Sequence[Any]
) -> Iterator[DoorTurn]:
    """Turns in which both answer the same events one at a time; their medians count.

    The events are as many as both answer within their time. An untimed turn comes first, in which
    the engine meets each form of event.
    """
    for event in events:
        engine(event)
    slow = fitting(lambda: baseline(events[0]), most=len(events), budget=setting.seconds)
    some = events[
        : min(slow, fitting(lambda: engine(events[0]), most=slow, budget=setting.seconds))
    ]
    calls(baseline, some)
    for _ in range(setting.rounds):
        theirs = calls(baseline, some)
        ours = calls(engine, some)
        yield DoorTurn(median(ours), median(theirs), ours)


def calls(answer: Answer, events: Sequence[Any]) -> list[float]:
    """The seconds of each call."""
    taken: list[float] = []
    for event in events:
        begun = perf_counter()
        answer(event)
        taken.append(perf_counter() - begun)
    return taken


def scanned(made: Workload, events: Sequence[Any]) -> list[list[Any]]:
    """What `scan` answers, with sorted ids."""
    engine = Engine(Schema.from_dict(made.schema), "scan")
    engine.subscribe_table(made.subscriptions)
    return [sorted(ids) for ids in engine.match_batch(list(events))]


def agree(what: str, right: Sequence[list[Any]], found: Sequence[Sequence[Any]]) -> int:
    """Raise unless some answers are those of `scan`; gives how many there are."""
    for row, (expected, ids) in enumerate(zip(right, found, strict=True)):
        if sorted(ids) != expected:
            raise TamisError(f"{what} and scan disagree on event {row}")
    return len(right)


def rules(subscriptions: pa.Table) -> Iterator[tuple[Any, list[Predicate]]]:
    """The subscriptions of a table of predicates, for a baseline in Python."""
    for part in subscriptions.to_batches(max_chunksize=10_000):
        for row in part.to_pylist():
            yield (
                row["id"],
                [
                    (
                        each["attribute"],
                        each["comparator"],
                        each["value"] if each["text"] is None else each["text"],
                    )
                    for each in row["predicates"]
                ],
            )


def hash_join(made: Workload) -> HashJoin:
    """The baseline in Python over the subscriptions of a workload."""
    return HashJoin(rules(made.subscriptions))
