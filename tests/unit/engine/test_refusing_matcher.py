"""A matcher may refuse clauses (an index too large): the engine is then as it was before."""

from __future__ import annotations

import pytest

from tamis import Engine, Schema
from tamis.encode.terms import Terms
from tamis.errors import LimitError, MatcherError
from tamis.match.base import Slots
from tamis.match.lesubscribe.naive import Naive
from tamis.model.condition import And, Or, Predicate
from tests.unit.engine.world import predicate_row, predicate_table

SCHEMA = Schema.from_dict({"attributes": {"n": "integer", "t": "text"}})


class Full(Naive):
    """Takes five clauses and not one more."""

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        if len(self) > 5:
            raise MatcherError("full")


def _state(engine: Engine) -> tuple[object, ...]:
    labels = {at: len(each) for at, each in engine.encoder.labels.items()}
    return len(engine), len(engine.matcher), labels, +engine.encoder.patterned


def test_a_refused_subscription_leaves_nothing_behind() -> None:
    engine = Engine(SCHEMA, Full())
    for number in range(5):
        engine.subscribe(f"n = {number}", id=number)
    before = _state(engine)
    for text in ("t = new and n > 1", 't like "%x%" and t < "zz"'):
        with pytest.raises(MatcherError, match="full"):
            engine.subscribe(text, id=99)
    assert _state(engine) == before
    engine.check()
    engine.unsubscribe(0)
    engine.subscribe("t = new", id=99)
    assert sorted(engine.match({"n": 1, "t": "new"})) == [1, 99]


@pytest.mark.parametrize("slow", [False, True])
def test_a_refused_table_leaves_nothing_behind(slow: bool) -> None:
    engine = Engine(SCHEMA, Full())
    engine.subscribe("n = 0", id=0)
    before = _state(engine)
    plain, odd = predicate_row("t", "=", "new"), predicate_row("t", "like", "%w%")
    rows = [[plain]] * 4 + [[odd if slow else plain]] * 4
    table = predicate_table(rows, list(range(1, 9)))
    with pytest.raises(MatcherError, match="full"):
        engine.subscribe_table(table)
    assert _state(engine) == before
    engine.check()
    engine.subscribe_table(table.slice(0, 4))
    assert sorted(engine.match({"n": 0, "t": "new"})) == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_a_product_of_a_million_is_not_computed() -> None:
    engine = Engine(SCHEMA)
    either = Or((Predicate("n", "=", 1), Predicate("n", "=", 2)))
    with pytest.raises(LimitError, match="2,000,000 predicates"):
        engine.subscribe(And((either,) * 1_000_000))


def test_what_the_parser_accepts_is_not_too_deep_later() -> None:
    engine = Engine(SCHEMA)
    text = "n > 1"
    for level in range(100):
        text = f"({text}) {'or' if level % 2 else 'and'} n > {level % 2 + 2}"
    engine.subscribe(text)
    with pytest.raises(LimitError, match="deeper"):
        engine.subscribe(f"({text}) and n = 1")
