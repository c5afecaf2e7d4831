"""Operators that use the engine which calls them, and threads that use it meanwhile."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import pytest

import tamis.engine.engine
import tamis.engine.engine_lock
from tamis import Engine, Operator, Schema
from tamis.errors import SubscriptionError
from tamis.model.operator import Parameter, Signature

SCHEMA = Schema.from_dict({"attributes": {"price": "integer"}})
WIDER = Schema.from_dict({"attributes": {"price": "integer", "more": "integer"}})
NUMBER = (Parameter("n", "number", True),)


def _engine(function: Callable[[int], Any]) -> Engine:
    """Two subscriptions that ask the operator, and one that asks nothing."""
    operators = [
        Operator(function, Signature("meddles", NUMBER, ("price",)), run="here", pure=False),
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
        assert "must not use the engine" in str(engine.explain("a", event))
    count = engine.report()["meddles"]
    assert count.refused == count.events == 1
    assert "an operator must not use the engine that calls it" in str(count.last)
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


_FILES = {module.__file__ for module in (tamis.engine.engine, tamis.engine.engine_lock, contextlib)}


def _interrupted(doing: Callable[[], Any], after: int) -> bool:
    """Do something, with a Ctrl-C at one of the points where Python looks for it; whether it came.

    That is where a function of Python begins, and where one that is compiled has come back.
    """
    seen = 0

    def at(frame: FrameType, event: str, given: Any) -> None:
        nonlocal seen
        if event in ("call", "c_return") and frame.f_code.co_filename in _FILES:
            seen += 1
            if seen == after:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(at)
    try:
        doing()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


@pytest.mark.parametrize(
    "doing",
    [
        lambda engine: engine.match({"price": 1}),
        lambda engine: engine.match_bitmap([{"price": 1}]),
        lambda engine: engine.explain("a", {"price": 1}),
        lambda engine: engine.subscribe("price < 3"),
    ],
)
def test_an_interrupt_at_any_point_leaves_the_engine_free(doing: Callable[[Engine], Any]) -> None:
    engine = _engine(lambda price: [1])
    answers: list[list[Any]] = []
    after = 1
    while _interrupted(lambda: doing(engine), after):
        other = Thread(target=lambda: answers.append(engine.match({"price": 4})), daemon=True)
        other.start()
        other.join(30)
        assert len(answers) == after, "somebody who is gone has the turn"
        assert sorted(answers[-1]) == ["a", "b", "c"]
        after += 1
    assert after > 5


def test_a_condition_is_read_between_two_changes() -> None:
    """The place of a subscription that goes may be taken by another."""
    engine, said = Engine(SCHEMA), list[Any]()
    engine.subscribe("price < 5", id="a")

    def read() -> None:
        try:
            said.append(engine.condition("a"))
        except SubscriptionError as why:
            said.append(str(why))

    thread = Thread(target=read)
    with engine._lock.mutex:
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        engine.unsubscribe("a")
        engine.subscribe("price > 7", id="b")
    thread.join()
    assert said == ["no subscription has the id 'a'"]
