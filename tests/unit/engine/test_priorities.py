"""The first match of each event: the highest priority, then the earliest subscription."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis import Engine, Schema
from tamis.engine import repair
from tamis.errors import NeverTrueError, SubscriptionError
from tamis.model.condition import Condition
from tamis.model.operator import Signature
from tamis.model.semantics import satisfies
from tamis.operators.operator import Operator
from tamis.testing import cases
from tamis.testing.state_machine import HypothesisChooser, conditions, events

SCHEMA = Schema.from_dict({"attributes": {"price": "integer", "title": "text"}})
PRIORITIES = st.sampled_from([0, 0, 0, 1, 2, -1, 2**63 - 1, -(2**63)])


def right(
    live: dict[int, tuple[Condition, int]], event: dict[str, Any], schema: Schema
) -> list[int]:
    """The first match by the definition of truth; `live` is in order of arrival."""
    matching = [id for id, (condition, _) in live.items() if satisfies(condition, event, schema)]
    return [max(matching, key=lambda id: live[id][1])] if matching else []


class FirstMatches(RuleBasedStateMachine):
    """Subscriptions come, go and change their priority."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(cases.SCHEMA, "scan")
        self.live: dict[int, tuple[Condition, int]] = {}

    @rule(condition=conditions(), priority=PRIORITIES)
    def subscribe(self, condition: Condition, priority: int) -> None:
        try:
            id = int(self.engine.subscribe(condition, priority=priority))
        except NeverTrueError:
            return
        self.live[id] = (condition, priority)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.live)))
        self.engine.unsubscribe(id)
        del self.live[id]

    @precondition(lambda self: self.live)
    @rule(data=st.data(), priority=PRIORITIES)
    def change(self, data: st.DataObject, priority: int) -> None:
        id = data.draw(st.sampled_from(sorted(self.live)))
        self.engine.set_priority(id, priority)
        self.live[id] = (self.live[id][0], priority)

    @rule(batch=st.lists(events(), min_size=1, max_size=4))
    def match(self, batch: list[dict[str, Any]]) -> None:
        schema = self.engine.schema
        wanted = [right(self.live, event, schema) for event in batch]
        assert list(self.engine.match_batch(batch, first=True)) == wanted
        assert self.engine.match(batch[0], first=True) == wanted[0]

    @precondition(lambda self: self.engine.schema.version < 4)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        self.engine.extend(cases.grown(HypothesisChooser(data.draw), self.engine.schema))

    @rule()
    def repair(self) -> None:
        repair.repair(self.engine)

    @rule()
    def pickle(self) -> None:
        self.engine = pickle.loads(pickle.dumps(self.engine))

    @invariant()
    def invariants_hold(self) -> None:
        assert {id: self.engine.priority(id) for id in self.live} == {
            id: priority for id, (_, priority) in self.live.items()
        }
        self.engine.check()


FirstMatches.TestCase.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
test_first_matches_are_right = pytest.mark.slow(FirstMatches.TestCase)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-2, 2)), max_size=12), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_first_of_a_table(rows: list[tuple[int, int]], late: bool) -> None:
    """Before and after somebody has asked for the first match."""
    engine = Engine(SCHEMA, "scan")
    if late:
        engine.subscribe("price >= 0", id=1000, priority=-1)
        assert engine.match({"price": 1}, first=True) == [1000]
    table = pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "condition": pa.array(
                [f"price = {price} or price = {price + 1}" for price, _ in rows], pa.string()
            ),
            "priority": pa.array([priority or None for _, priority in rows], pa.int16()),
        }
    )
    engine.subscribe_table(table)
    engine.check()
    for price in range(7):
        fits = [id for id, (low, _) in enumerate(rows) if price in (low, low + 1)]
        fits = [1000] * late + fits
        best = sorted(fits, key=lambda id: -1 if id == 1000 else rows[id][1], reverse=True)
        assert engine.match({"price": price}, first=True) == best[:1]


def test_patterns_residuals_and_clauses() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("price > 0", id="any")
    engine.subscribe('title like "%oak"', id="pattern", priority=3)
    engine.subscribe("price > 5 or title = elm", id="clauses", priority=2)
    many = " and ".join(f'(price = {n} or not price = {n} or title = "x{n}")' for n in range(8))
    engine.subscribe(f"({many}) and title exists", id="residual", priority=1)
    assert "residual" in engine.match({"price": 1, "title": "ash"})
    wanted = [
        ({"price": 1}, ["any"]),
        ({"price": 9, "title": "oak"}, ["pattern"]),
        ({"price": 9, "title": "ash"}, ["clauses"]),
        ({"price": 9, "title": "elm"}, ["clauses"]),
        ({"price": 1, "title": "ash"}, ["residual"]),
        ({"price": 0}, []),
    ]
    batch = [event for event, _ in wanted]
    assert list(engine.match_batch(batch, first=True)) == [first for _, first in wanted]
    bad = engine.match_batch([*batch[:2], {"price": "x"}], bad="skip", first=True)
    assert list(bad) == [["any"], ["pattern"], []]


def test_operators_are_asked_only_if_they_can_win() -> None:
    asked: list[str] = []

    def looks(name: str) -> Operator:
        def look(price: int) -> bool:
            asked.append(name)
            return price > 5

        return Operator(look, Signature(name, (), ("price",)), run="here", pure=False)

    with Engine(SCHEMA, operators=[looks("low"), looks("high")]) as engine:
        engine.subscribe("low() and price > 0", id="low", priority=-1)
        engine.subscribe("price > 0", id="plain")
        engine.subscribe("high() and price > 0", id="high", priority=1)
        assert engine.match({"price": 9}, first=True) == ["high"]
        assert engine.match({"price": 1}, first=True) == ["plain"]
        assert set(asked) == {"high"}
        engine.unsubscribe("plain")
        assert engine.match({"price": 1}, first=True) == []
        assert set(asked) == {"high", "low"}


def test_saved_engines_keep_priorities(tmp_path: Path) -> None:
    engine = Engine(SCHEMA)
    for id, priority in (("a", 0), ("b", 7), ("c", 7)):
        engine.subscribe("price > 0 or title = oak", id=id, priority=priority)
    engine.unsubscribe("a")
    engine.subscribe("price > 0", id="a", priority=7)
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved")
    assert [opened.priority(id) for id in "abc"] == [7, 7, 7]
    assert opened.match({"price": 1}, first=True) == ["b"]
    opened.subscribe("price > 0", id="d", priority=7)
    assert opened.match({"price": 1}, first=True) == ["b"]
    opened.unsubscribe("d")
    opened.set_priority("b", 0)
    assert opened.match({"price": 1}, first=True) == ["c"]
    opened.check()


def test_wrong_priorities_are_refused() -> None:
    engine = Engine(SCHEMA)
    for wrong in (1.5, "1", True, None, 2**63):
        with pytest.raises(SubscriptionError, match="a priority is a 64-bit integer"):
            engine.subscribe("price > 0", priority=wrong)  # type: ignore[arg-type]
    table = pa.table({"id": [1], "condition": ["price > 0"], "priority": ["high"]})
    with pytest.raises(SubscriptionError, match="the column 'priority' is string, expected int64"):
        engine.subscribe_table(table)
    assert len(engine) == 0
    for unknown in (lambda: engine.priority("x"), lambda: engine.set_priority("x", 1)):
        with pytest.raises(SubscriptionError, match="no subscription has the id"):
            unknown()
