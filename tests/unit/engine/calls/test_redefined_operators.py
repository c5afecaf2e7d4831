"""Operators whose function is defined anew while subscriptions ask the former one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from tamis import Engine, Operator, Schema, operator
from tamis.operators import registry

SCHEMA = Schema.from_dict({"attributes": {"a": "integer"}})


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test registers is not known to the next one."""
    yield
    registry._REGISTERED.pop("parity", None)


def _define(which: str) -> Operator:
    """The same function, as in a cell of a notebook that is run again with another text."""
    texts = {
        "even": "def parity(a): return a % 2 == 0",
        "odd": "def parity(a): return a % 2 == 1",
        "gives": "def parity(a): return [a % 2]",
    }
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(texts[which], space)  # as a notebook does
    gives = {"n": "number"} if which == "gives" else {}
    return operator(reads=("a",), gives=gives, run="here")(space["parity"])


@pytest.mark.parametrize("later", ["odd", "gives"])
def test_an_explanation_asks_the_operator_that_the_subscription_asks(later: str) -> None:
    engine = Engine(SCHEMA)
    _define("even")
    engine.subscribe("parity() or a > 100", id="old")
    _define(later)
    engine.subscribe("parity()" if later == "odd" else "parity(?n) and ?n = 1", id="new")
    for a, matching in ((2, ["old"]), (3, ["new"])):
        assert engine.match({"a": a}) == matching
        for id in ("old", "new"):
            assert engine.explain(id, {"a": a}).holds == (id in matching)


@pytest.mark.parametrize("later", ["odd", "gives"])
@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_a_copy_asks_the_operators_that_the_engine_asks(later: str, way: str) -> None:
    engine = Engine(SCHEMA)
    _define("even")
    engine.subscribe("parity() and a < 100", id="old")
    _define(later)
    engine.subscribe("parity()" if later == "odd" else "parity(?n) and ?n = 1", id="new")
    copied: Engine
    if way == "pickle":
        data = pickle.dumps(engine)
        registry._REGISTERED.pop("parity")
        copied = pickle.loads(data)
    else:
        copied = copy.deepcopy(engine)
    for a, matching in ((2, ["old"]), (3, ["new"])):
        assert copied.match({"a": a}) == matching
        for id in ("old", "new"):
            assert copied.explain(id, {"a": a}).holds == (id in matching)
    again: Engine = pickle.loads(pickle.dumps(copied))
    assert again.match({"a": 2}) == ["old"]


def test_a_call_in_a_clause_that_was_dropped_is_explained_too() -> None:
    engine = Engine(SCHEMA)
    _define("even")
    engine.subscribe("a < 3 or a < 3 and parity()", id=1)
    assert engine.match({"a": 1}) == [1]
    assert engine.explain(1, {"a": 1}).holds
    assert not engine.explain(1, {"a": 4}).holds
