"""Forty thousand random pairs: `naive`, `scan` and `satisfies` agree on all."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tamis.engine import Engine
from tamis.match.registry import entry, matchers
from tamis.model.condition import Condition
from tamis.model.semantics import satisfies
from tamis.testing import cases
from tamis.testing.engine_checks import subscribe_random

ROUNDS, CONDITIONS, EVENTS = 4, 200, 50  # `make soak` tries millions


EXACT = [
    pytest.param(name, marks=pytest.mark.xdist_group(name))
    for name in matchers()
    if entry(name).exact
]


class Truth(NamedTuple):
    """Random conditions and events, and which of them belong together."""

    conditions: list[Condition]
    events: list[dict[str, Any]]
    right: list[set[int]]  # for each event, the places of its conditions


@cache
def truth(seed: int) -> Truth:
    """Evaluated once for all matchers of a process: it takes longer than all of them."""
    chooser = cases.RandomChooser(1000 + seed)
    conditions = list(subscribe_random(Engine(cases.SCHEMA), chooser, CONDITIONS).values())
    events = [cases.event(chooser) for _ in range(EVENTS)]
    checked = [cases.SCHEMA.event(event) for event in events]
    right = [
        {at for at, each in enumerate(conditions) if satisfies(each, event, cases.SCHEMA)}
        for event in checked
    ]
    return Truth(conditions, events, right)


@pytest.mark.parametrize("matcher", EXACT)
def test_forty_thousand_random_pairs_mean_what_satisfies_says(matcher: str) -> None:
    for seed in range(max(1, round(ROUNDS * entry(matcher).effort))):
        known = truth(seed)
        engine = Engine(cases.SCHEMA, matcher)
        for at, condition in enumerate(known.conditions):
            engine.subscribe(condition, at)
        for number, got in enumerate(engine.match_batch(known.events)):
            wrong = known.right[number] ^ set(got)
            assert not wrong, (known.events[number], [known.conditions[at] for at in wrong][:2])
            assert len(got) == len(set(got)), "an id occurs once in an answer"


@pytest.mark.parametrize("seed", range(5))
def test_events_through_arrow_match_as_events_from_dicts(seed: int) -> None:
    chooser = cases.RandomChooser(seed)
    engine = Engine(cases.SCHEMA)
    subscribe_random(engine, chooser, 200)
    events = [cases.event(chooser) for _ in range(60)]
    for event in events:  # an Arrow column has values of one kind
        for name in event.keys() - {*_ARROW.names}:
            del event[name]
    table = pa.Table.from_pylist([_listed(event) for event in events], schema=_ARROW)
    plain, arrow = engine.match_batch(events), engine.match_batch(table)
    assert [set(ids) for ids in arrow] == [set(ids) for ids in plain]


_LISTS = {
    "event_type": pa.string(),
    "price": pa.float64(),
    "number": pa.int64(),
    "small": pa.int8(),
    "title": pa.string(),
    "tags": pa.string(),
    "at": pa.string(),
    "rank": pa.string(),
    "colour": pa.string(),
    "category": pa.string(),
    "craft": pa.string(),
}
_ARROW = pa.schema(
    [
        *(pa.field(name, pa.list_(kind)) for name, kind in _LISTS.items()),
        pa.field("open", pa.bool_()),
        pa.field("period", pa.string()),
        pa.field("picture", pa.string()),
    ]
)


def _listed(event: dict[str, Any]) -> dict[str, Any]:
    """The event with lists where the Arrow schema has lists, whole numbers as such."""
    found = {**event, "picture": None if event.get("picture") is None else "something"}
    for name in _LISTS.keys() & event.keys():
        if event[name] is not None:
            values = event[name] if isinstance(event[name], list) else [event[name]]
            found[name] = [int(v) if name in ("number", "small") else v for v in values]
    return found
