"""One dict at a time, as most programs have their events."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

from tamis import workload
from tamis.engine import Engine
from tamis.errors import MatcherError
from tamis.lab.bench.doors import flights
from tamis.lab.bench.doors.turns import (
    HASH_JOIN,
    NUMPY,
    Answer,
    DoorRow,
    DoorTurn,
    agree,
    alone,
    hash_join,
    result,
    scanned,
)
from tamis.lab.bench.matchers import COMPARED
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.dict_yardstick import DictYardstick
from tamis.lab.results.records import DoorResult, Goal, RefusedResult
from tamis.model.schema import Schema
from tamis.workload import Workload, as_dicts

SINGLE = "single"


@dataclass(frozen=True)
class SingleRow:
    """A workload, a size, the baseline that is the faster one there, and the goal in µs."""

    title: str
    variant: str
    subscriptions: int
    baseline: str
    goal: float
    dicts: int = 1  # at once


ROWS: dict[str, SingleRow] = {
    "rules": SingleRow("a thousand rules", "flights", 1_000, HASH_JOIN, 6),
    "rules-64": SingleRow(
        "a thousand rules, 64 dicts at once", "flights", 1_000, HASH_JOIN, 2.5, 64
    ),
    "equality": SingleRow("Le Subscribe, equality", "lesubscribe-equality", 100_000, HASH_JOIN, 8),
    "equality-large": SingleRow(
        "Le Subscribe, equality", "lesubscribe-equality", 800_000, HASH_JOIN, 12
    ),
    "lesubscribe": SingleRow("Le Subscribe", "lesubscribe", 100_000, NUMPY, 20),
    "dexin": SingleRow("DEXIN", "dexin", 1_000_000, NUMPY, 35),
}


def rows(setting: BenchSetting) -> dict[str, SingleRow]:
    """The named rows. Names of rows of other measurements count for those only."""
    named = [name for name in ROWS if name in setting.rows]
    return {name: ROWS[name] for name in named or ROWS}


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return 2 * len(rows(setting)) * len(setting.fastest)


def measure(setting: BenchSetting) -> Iterator[DoorResult | RefusedResult | str]:
    """Each row of the table."""
    for name, row in rows(setting).items():
        for matcher in setting.fastest:
            yield f"{row.title}, {matcher}"
            try:
                yield _measure_row(setting, name, row, matcher)
            except MatcherError as why:
                yield RefusedResult(SINGLE, row.title, matcher, str(why))
            gc.collect()  # engines and matchers may hold themselves in cycles


def _measure_row(setting: BenchSetting, name: str, row: SingleRow, matcher: str) -> DoorResult:
    size = min(row.subscriptions, setting.most_subscriptions)
    made = _made(row.variant, size, setting.seed)
    table = made.events(setting.batch)
    events = as_dicts(table)
    right = scanned(made, events[:COMPARED])
    theirs: Answer
    if row.baseline == NUMPY:
        theirs = DictYardstick(made.subscriptions, table).match_dict
    else:
        theirs = hash_join(made).match
    engine = Engine(Schema.from_dict(made.schema), matcher, **setting.options)
    engine.subscribe_table(made.subscriptions)
    compared = agree(row.baseline, right, [theirs(event) for event in events[:COMPARED]])
    agree(matcher, right, [engine.match(event) for event in events[:COMPARED]])
    if row.dicts == 1:
        turns = list(alone(setting, engine.match, theirs, events))
    else:
        agree(matcher, right, list(engine.match_batch(events[:COMPARED])))
        groups = [events[at : at + row.dicts] for at in range(0, len(events), row.dicts)]
        groups = [group for group in groups if len(group) == row.dicts] or [events]
        both = alone(
            setting,
            lambda group: engine.match_batch(group).subscriptions,
            lambda group: [theirs(event) for event in group],
            groups,
        )
        turns = [_shared(turn, len(groups[0])) for turn in both]
    return result(
        DoorRow(SINGLE, name, row.title, matcher, size, row.baseline),
        "µs",
        turns,
        Goal(row.goal, at_most=True) if size == row.subscriptions else None,
        matches=sum(map(len, map(engine.match, events))) / len(events),
        compared=compared,
        parameters=made.parameters | {"dicts": row.dicts},
    )


def _made(variant: str, size: int, seed: int) -> Workload:
    if variant == "flights":
        return flights.make(size, seed=seed)
    return workload.make_variant(variant, size, seed=seed)


def _shared(turn: DoorTurn, events: int) -> DoorTurn:
    """The time of one event of a group."""
    each = [seconds / events for seconds in turn.each]
    return DoorTurn(turn.engine / events, turn.baseline / events, each)
