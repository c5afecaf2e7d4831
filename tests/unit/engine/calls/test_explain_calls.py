"""What an engine explains is what it answers, also where it gives up."""

from __future__ import annotations

import pytest

from tamis import Engine, Operator, Schema
from tamis.engine.calls import join as joining
from tamis.model.operator import Parameter, Signature

SCHEMA = Schema.from_dict({"attributes": {"price": "integer"}})


def _up_to(price: int) -> list[int]:
    return list(range(price))


def _engine() -> Engine:
    number = Parameter("n", "number", True)
    operators = [
        Operator(_up_to, Signature(name, (number,), ("price",)), run="here") for name in "fgh"
    ]
    return Engine(SCHEMA, operators=operators)


@pytest.mark.slow
def test_a_join_that_matching_gives_up_is_one_that_an_explanation_gives_up() -> None:
    engine = _engine()
    engine.subscribe("f(?a) and g(?b) and h(?c) and ?a + ?b + ?c = 100000", id="sum")
    event = {"price": 300}
    assert engine.match(event) == []
    assert engine.report().given_up == 1
    found = engine.explain("sum", event)
    assert not found
    assert found.branches[0].given_up
    assert "given up: too many substitutions of ?a, ?b and ?c to try" in str(found)


def test_what_matching_finds_is_explained_where_trying_all_would_take_too_long() -> None:
    """27 million substitutions, of which a join by equal values looks at a few hundred."""
    engine = _engine()
    engine.subscribe("f(?a) and g(?b) and h(?a) and h(?b) and ?a = 299 and ?b = 299", id="last")
    event = {"price": 300}
    assert engine.match(event) == ["last"]
    found = engine.explain("last", event)
    assert found
    assert all(each.holds and not each.given_up for each in found.branches[0].verdicts)


@pytest.mark.parametrize("most", [3, 10, 30, 100, 300])
def test_they_agree_wherever_the_limit_is(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MOST_STEPS", most)
    engine = _engine()
    for id, text in enumerate(
        (
            "f(?a) and g(?b) and ?a + ?b = 18",
            "f(?a) and g(?b) and ?a + ?b = 180 or h(?n) and ?n > 8",
            "f(?a) and g(?b) and not h(?a) and ?a < ?b",
            "f(?a) and g(?b) and h(?c) and ?a < ?b and ?b < ?c and ?a > 6",
            "f(?a) and f(?a) and f(?b) and f(4) and not h(40) and ?a > ?b and ?b > 5",
        )
    ):
        engine.subscribe(text, id=id)
    for price in (0, 5, 10):
        matched = engine.match({"price": price})
        given_up = 0
        for id in range(len(engine)):
            found = engine.explain(id, {"price": price})
            assert found.holds == (id in matched)
            given_up += not found and any(branch.given_up for branch in found.branches)
        assert given_up or most > 10 or price < 10


def test_a_branch_that_can_never_hold_is_explained_too() -> None:
    engine = _engine()
    engine.subscribe("price < 1 and price > 3 and f(?n) or price = 2", id="odd")
    found = engine.explain("odd", {"price": 2})
    assert found
    assert [branch.holds for branch in found.branches] == [False, True]
