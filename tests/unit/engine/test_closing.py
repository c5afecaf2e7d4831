"""An engine that is closed leaves no threads and no worker processes behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from tamis import Engine, Operator, Schema
from tamis.model.operator import Parameter, Signature

SCHEMA = Schema.from_dict({"attributes": {"price": "integer"}})


def _engine(function: Callable[[int], int], run: str) -> Engine:
    signature = Signature("whoami", (Parameter("n", "number", True),), ("price",))
    engine = Engine(
        SCHEMA, operators=[Operator(function, signature, run=run, timeout=30.0, pure=False)]
    )
    engine.subscribe("whoami(?n) and ?n > 0", id="all")
    return engine


def _who(engine: Engine) -> int:
    """Who answers."""
    assert engine.match({"price": 1}) == ["all"]
    (verdict, _) = engine.explain("all", {"price": 1}).branches[0].verdicts
    found: int = verdict.values[0][0]
    return found


def _process(price: int) -> int:
    return os.getpid()


def _thread(price: int) -> int:
    return threading.get_native_id()


def _gone(who: int, run: str) -> bool:
    if run == "thread":
        return who not in {each.native_id for each in threading.enumerate()}
    try:
        os.kill(who, 0)
    except ProcessLookupError:
        return True
    return False


def _goes(who: int, run: str) -> bool:
    for _ in range(3000):
        if _gone(who, run):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(("run", "function"), [("thread", _thread), ("process", _process)])
@pytest.mark.slow
def test_closing_ends_workers_and_matching_starts_new_ones(
    run: str, function: Callable[[int], int]
) -> None:
    with _engine(function, run) as engine:
        first = _who(engine)
        assert not _gone(first, run)
    assert _goes(first, run)
    engine.close()
    second = _who(engine)
    assert not _gone(second, run)
    engine.close()
    engine.close()
    assert _goes(second, run)
    assert engine.report()["whoami"].faults == 0


def test_an_engine_that_called_nothing_can_be_closed_also_where_its_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), Engine(SCHEMA) as engine:
        engine.match({"price": 1 // 0})
    assert engine.match({"price": 1}) == []
