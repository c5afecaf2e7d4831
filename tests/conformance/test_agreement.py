"""A hundred thousand random pairs: `naive`, `scan` and `satisfies` agree on all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tamis.engine import Engine
from tamis.match.registry import entry, matchers
from tamis.testing import cases
from tamis.testing.engine_checks import agree, subscribe_random

ROUNDS, CONDITIONS, EVENTS = 10, 200, 50


EXACT = [
    pytest.param(name, marks=pytest.mark.xdist_group(name))
    for name in matchers()
    if entry(name).exact
]


@pytest.mark.parametrize("matcher", EXACT)
def test_a_hundred_thousand_random_pairs_mean_what_satisfies_says(matcher: str) -> None:
    pairs = 0
    rounds = max(1, round(ROUNDS * entry(matcher).effort))
    for seed in range(rounds):
        chooser = cases.RandomChooser(1000 + seed)
        engine = Engine(cases.SCHEMA, matcher)
        conditions = subscribe_random(engine, chooser, CONDITIONS)
        pairs += agree(engine, conditions, [cases.event(chooser) for _ in range(EVENTS)])
    assert pairs == 10_000 * rounds


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
