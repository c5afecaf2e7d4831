"""Operators that use the engine which calls them, and threads that use it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tamis import Engine, Operator, Schema
from tamis.model.operator import Parameter, Signature

SCHEMA = Schema.from_dict({"attributes": {"price": "integer"}})
WIDER = Schema.from_dict({"attributes": {"price": "integer", "more": "integer"}})
NUMBER = (Parameter("n", "number", True),)


def _engine(function: Callable[[int], Any]) -> Engine:
    """Two subscriptions that ask the operator, and one that asks nothing."""
    operators = [
        Operator(function, Signature("meddles", NUMBER, ("price",)), run="here"),
        Operator(lambda price: [1, 2], Signature("counts", NUMBER, ("price",)), run="here"),
    ]
    engine = Engine(SCHEMA, operators=operators, scheduler="naive")
    engine.subscribe("meddles(?x) and counts(?x)", id="a")
    engine.subscribe("meddles(?x) and counts(?y) and ?x < ?y", id="b")
    engine.subscribe("price < 5", id="c")
    return engine


@pytest.mark.parametrize(
    "doing",
    [
        lambda engine: engine.unsubscribe("b"),
        lambda engine: engine.subscribe("counts(?x)"),
        lambda engine: engine.match({"price": 1}),
        lambda engine: engine.match_bitmap([{"price": 1}]),
        lambda engine: engine.explain("a", {"price": 1}),
        lambda engine: engine.extend(WIDER),
        lambda engine: engine.save(Path("nowhere")),
    ],
)
@pytest.mark.parametrize("how", ["match", "match_bitmap", "explain"])
def test_an_operator_that_uses_its_engine_fails_and_nothing_else_does(
    doing: Callable[[Engine], Any], how: str
) -> None:
    def meddles(price: int) -> list[int]:
        doing(engine)
        return [1]

    engine = _engine(meddles)
    event = {"price": 1}
    if how == "match":
        assert engine.match(event) == ["c"]
    elif how == "match_bitmap":
        assert list(engine.match_bitmap([event])[0]) == ["c"]
    else:
        assert "may not use the engine" in str(engine.explain("a", event))
    count = engine.report()["meddles"]
    assert count.refused == count.events == 1
    assert "an operator may not use the engine that calls it" in str(count.last)
    assert sorted(engine.ids()) == ["a", "b", "c"]
    engine.check()


def test_the_engine_is_free_again_after_an_operator_was_interrupted() -> None:
    def interrupted(price: int) -> list[int]:
        raise KeyboardInterrupt

    engine = _engine(interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.match({"price": 1})
    engine.unsubscribe("a")
    engine.unsubscribe("b")
    assert engine.match({"price": 1}) == ["c"]


def test_another_thread_waits_until_the_match_is_done() -> None:
    called, subscribed = Event(), Event()

    def waits(price: int) -> list[int]:
        called.set()
        return [int(subscribed.wait(0.1))]

    def subscribes() -> None:
        called.wait()
        engine.unsubscribe("b")
        engine.subscribe("price < 9", id="d")
        subscribed.set()

    engine = _engine(waits)
    other = Thread(target=subscribes)
    other.start()
    assert sorted(engine.match({"price": 1})) == ["b", "c"], "0 < 1, and d was not there yet"
    other.join(30)
    assert subscribed.is_set()
    assert sorted(engine.match({"price": 1})) == ["a", "c", "d"]
