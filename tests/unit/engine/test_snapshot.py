"""Copies of an engine, by pickle and by copy, while other threads change it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from tamis import Engine, Operator, Schema
from tamis.engine.calls.call_filter import CallFilter
from tamis.engine.slot_table import SlotTable
from tamis.match.default.matcher import Tamis
from tamis.model.operator import Parameter, Signature

SCHEMA = Schema.from_dict({"attributes": {"a": "integer", "name": "text"}})
LEAST = Operator(
    lambda a, k: a >= k,
    Signature("least", (Parameter("k", "number", False),), ("a",)),
    run="here",
)
WAYS: dict[str, Callable[[Engine], Engine]] = {
    "pickle": lambda engine: pickle.loads(pickle.dumps(engine)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
each_way = pytest.mark.parametrize("way", WAYS)


def _engine(**options: Any) -> Engine:
    engine = Engine(SCHEMA, operators=LEAST, **options)
    for number in range(20):
        engine.subscribe(f'least({number}) and a < {10 * number} or name = "n{number}"', id=number)
    return engine


def _expected(a: int) -> list[int]:
    return [number for number in range(20) if number <= a < 10 * number]


@pytest.mark.parametrize("part", [SlotTable, Tamis, CallFilter])
@each_way
def test_what_others_change_meanwhile_is_in_a_copy_wholly_or_not_at_all(
    part: type, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = _engine()
    engine.match({"a": 5})
    others: list[Thread] = []
    real: Any = part.__reduce_ex__

    def meanwhile(self: Any, protocol: Any) -> Any:
        """As if another thread came between this part and the one before."""
        if not others:
            others.append(Thread(target=_changes, args=(engine,)))
            others[0].start()
            others[0].join(0.2)
        return real(self, protocol)

    monkeypatch.setattr(part, "__reduce_ex__", meanwhile)
    copied = WAYS[way](engine)
    monkeypatch.undo()
    assert others
    others[0].join(60)
    for each in (copied, engine):
        each.check()
        each.calls.scheduler.check()
        assert len(each) == len(each.ids())
    assert copied.ids() in (list(range(20)), engine.ids())
    assert engine.ids() == [*range(1, 20), "new"]


def _changes(engine: Engine) -> None:
    engine.unsubscribe(0)
    engine.subscribe('least(3) and a < 8 and name = "another" or a = 77 or a = 78', id="new")


@pytest.mark.parametrize("matcher", ["tamis", "naive", "be-tree", "sql-grouping"])
@each_way
def test_a_copy_goes_its_own_way(matcher: str, way: str) -> None:
    engine = _engine(matcher=matcher)
    assert sorted(engine.match({"a": 5})) == _expected(5)
    copied = WAYS[way](engine)
    copied.unsubscribe(1)
    engine.subscribe("least(0)", id="mine")
    assert sorted(copied.match({"a": 5})) == [id for id in _expected(5) if id != 1]
    assert set(engine.match({"a": 5})) == {*_expected(5), "mine"}
    assert set(copied.match({"name": "n7"})) == {7}
    for each in (copied, engine):
        each.check()
    with copied, engine:
        pass
