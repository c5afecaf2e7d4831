"""Ctrl-C where `test_interrupts` does not come: single events, JSON and priorities.

Its conditions have operators and elements, and those keep events from the shortest way. Reports on
redundancy are not here: they change nothing, and the locks of Python that start their threads do
not survive a Ctrl-C at any bytecode.
"""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.engine.change_matcher import change_matcher
from tamis.language import parse
from tamis.model.semantics import satisfies
from tests.campaign import SEED
from tests.unit.engine.interrupting import interrupt, same

DECLARED = Schema.from_dict(
    {"attributes": {"n": "integer", "s": "text", "d": "decimal"}, "unknown": "ignore"}
)
EVENTS: list[dict[str, Any]] = [
    {"n": 1, "s": "aab", "d": 1.5},
    {"n": 2, "s": "ab", "d": -0.0},
    {"n": 3, "s": "b", "more": 1},
    {"n": 7, "d": 2},
    {},
]
TEXTS = [json.dumps(event) for event in EVENTS]
MANY = " and ".join(f'(n = {at} or not n = {at} or s = "x{at}")' for at in range(8))
Live = dict[str, tuple[str, int]]  # conditions and priorities by id, in order of arrival
BEFORE: Live = {
    "plain": ("n > 2", 0),
    "several": ('s >= "aa" or n in (1, 7)', 2),
    "pattern": ('s like "%a%" and n < 5', 3),
    "decimal": ("d < 1.6", 0),
    "residual": (f"({MANY}) and s exists", 1),
}
ADDED: Live = {"x": ("n = 2", 5), "y": ('s = aab or s like "%b"', 0), "z": ("d > 1", -3)}
TABLE = pa.table(
    {
        "id": [*ADDED],
        "condition": [text for text, _ in ADDED.values()],
        "priority": [priority for _, priority in ADDED.values()],
    }
)
CASES: dict[str, tuple[Callable[[Engine], object], Live]] = {
    "match": (lambda engine: [engine.match(event) for event in EVENTS], BEFORE),
    "new shape": (lambda engine: [engine.match({"s": "aab", "n": 1}) for _ in range(3)], BEFORE),
    "match_json": (lambda engine: [*map(engine.match_json, TEXTS)], BEFORE),
    "match_lines": (lambda engine: engine.match_lines("\n".join(TEXTS)), BEFORE),
    "dicts": (lambda engine: engine.match_batch(EVENTS * 2), BEFORE),
    "first": (lambda engine: engine.match_batch(EVENTS, first=True), BEFORE),
    "change_matcher": (lambda engine: change_matcher(engine, "scan"), BEFORE),
    "set_priority": (
        lambda engine: engine.set_priority("several", -9),
        {**BEFORE, "several": (BEFORE["several"][0], -9)},
    ),
    "unsubscribe": (
        lambda engine: engine.unsubscribe("several"),
        {id: each for id, each in BEFORE.items() if id != "several"},
    ),
    "subscribe": (
        lambda engine: engine.subscribe(ADDED["y"][0], id="y", priority=4),
        {**BEFORE, "y": (ADDED["y"][0], 4)},
    ),
    "table": (lambda engine: engine.subscribe_table(TABLE), {**BEFORE, **ADDED}),
}


@cache
def saved_engine(declared: bool) -> bytes:
    engine = Engine(DECLARED if declared else None)
    for id, (text, priority) in BEFORE.items():
        engine.subscribe(text, id=id, priority=priority)
    return pickle.dumps(engine)


def warm_engine(declared: bool) -> Engine:
    """An engine that has met the shapes of the events, and knows its ranks."""
    engine: Engine = pickle.loads(saved_engine(declared))
    for event in EVENTS:
        for _ in range(3):
            engine.match(event)
    engine.match(EVENTS[0], first=True)
    return engine


def check(engine: Engine, live: Live) -> None:
    """Compare every answer with the definition of truth."""
    for event, text in zip(EVENTS, TEXTS, strict=True):
        right = [
            id
            for id, (condition, _) in live.items()
            if satisfies(parse(condition), event, engine.schema)
        ]
        for found in (engine.match(event), engine.match(event), engine.match_json(text)):
            assert same(found, right)
        assert same(engine.match_batch([event] * 2)[1], right)
        best = [max(right, key=lambda id: live[id][1])] if right else []
        assert engine.match(event, first=True) == best
    engine.check()


@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "open"])
@pytest.mark.parametrize("case", CASES)
def test_an_interrupt_anywhere(case: str, declared: bool) -> None:
    do, after = CASES[case]
    engine = warm_engine(declared)
    steps = interrupt(lambda: do(engine), 1 << 60)
    check(engine, after)
    draw = random.Random(f"{case} {SEED}")
    for _ in range(5):
        engine = warm_engine(declared)
        at = draw.randint(1, steps)
        interrupt(lambda engine=engine: do(engine), at)  # type: ignore[misc]
        live = {id: engine.priority(id) for id in engine.ids()}
        fits = [
            each
            for each in (BEFORE, after)
            if live == {id: priority for id, (_, priority) in each.items()}
        ]
        assert fits, (at, live)
        check(engine, fits[0])
