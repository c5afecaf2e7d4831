"""The yardstick is right, narrow, and of the right form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tamis import TamisError, workload
from tamis.lab.instruments import yardstick
from tamis.lab.instruments.yardstick import WideYardstick, Yardstick, make_yardstick
from tamis.workload.tables import SUBSCRIPTIONS_SCHEMA
from tests.loaded import loaded

FORMS = pytest.mark.parametrize("form", [Yardstick, WideYardstick])


def _found(yardstick: Yardstick, events: pa.Table) -> list[list[int]]:
    return [yardstick.match(event).tolist() for event in yardstick.encode(events)]


@pytest.mark.parametrize("form", [Yardstick, WideYardstick, make_yardstick])
@pytest.mark.parametrize(
    "name", ["dexin", "lesubscribe", "topss-w4", "topss-w0", "gryphon", "sparse"]
)
def test_the_yardstick_agrees_with_the_engine(name: str, form: Callable[..., Yardstick]) -> None:
    """Of thousands of attributes, only the wide one."""
    if name == "sparse" and form is Yardstick:
        pytest.skip("too many columns")
    made = workload.make_variant(name, 400, seed=3)
    if name == "sparse":
        made = workload.make("sparse", 3000, seed=3, attributes=500, pairs=100)
    events = made.events(60)
    tried = form(made.subscriptions, events)
    answers = _found(tried, events)
    assert [sorted(ids) for ids in loaded(made).match_batch(events)] == answers
    assert any(answers)
    if form is make_yardstick and name in ("sparse", "gryphon"):
        assert type(tried) is (WideYardstick if name == "sparse" else Yardstick)


@pytest.mark.parametrize("share", [0.0, 1 / 16, 1.0])
def test_the_answer_is_the_same_whether_columns_are_masked_or_gathered(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = workload.make_variant("topss-w4", 300, seed=3)
    events = made.events(40)
    right = _found(WideYardstick(made.subscriptions, events), events)
    monkeypatch.setattr(yardstick, "_FEW_LEFT", share)
    tried = Yardstick(made.subscriptions, events)
    assert tried._masked == {0.0: len(tried._columns), 1.0: 1}.get(share, tried._masked)
    assert _found(tried, events) == right


def _table(rows: list[list[tuple[str, str, float]]]) -> pa.Table:
    keys = ("attribute", "comparator", "value")
    predicates = [[dict(zip(keys, each, strict=True)) for each in row] for row in rows]
    return pa.table({"id": range(len(rows)), "predicates": predicates}, schema=SUBSCRIPTIONS_SCHEMA)


@FORMS
def test_the_yardstick_at_the_ends(form: type[Yardstick]) -> None:
    """Null fails whatever is constrained, and only that; values between constants count."""
    table = _table(
        [
            [("a", ">", 1.0)],
            [("a", "<=", 1.0), ("b", "!=", 5.0)],
            [("b", "!=", 5.0)],
            [("a", "=", 2.0)],
            [("a", ">=", 1.0), ("a", "<", 2.0)],
            [],
        ]
    )
    events = pa.table({"a": [None, 0.5, 1.0, 1.5, 2.0, 9.0], "b": [5.0, 5.0, 6.0, None, 5.0, 4.0]})
    found = _found(form(table, events), events)
    assert found == [[5], [5], [1, 2, 4, 5], [0, 4, 5], [0, 3, 5], [0, 2, 5]]


def test_holes_of_attributes_with_other_ranks() -> None:
    """What is not a hole on an attribute of few constants may be a constant of another."""
    many = [[("b", "=", float(n))] for n in range(9)]
    table = _table([[("a", "!=", 1.0), ("b", ">=", 0.0)], [("a", "<", 9.0)], *many])
    events = pa.table({"a": [1.0, 2.0, 0.0], "b": [4.0, 4.0, None]})
    assert _found(WideYardstick(table, events), events) == [[1, 6], [0, 1, 6], [1]]
    nothing = WideYardstick(_table([[], []]), events)
    assert _found(nothing, events) == [[0, 1]] * 3, "without predicates all match"


def test_the_yardstick_keeps_columns_narrow() -> None:
    made = workload.make("dexin", 200, seed=1, cardinality=100)
    yardstick = Yardstick(made.subscriptions, made.events(5))
    assert {column.low.dtype for column in yardstick._columns} == {np.dtype(np.uint8)}
    wide = WideYardstick(made.subscriptions, made.events(5))
    assert {place.low.dtype for place in wide._places} == {np.dtype(np.uint8)}


@FORMS
def test_the_yardstick_refuses_what_it_cannot_do(form: type[Yardstick]) -> None:
    predicates = [[{"attribute": "a", "comparator": "starts with", "text": "x"}]]
    table = pa.table({"id": [0], "predicates": predicates}, schema=SUBSCRIPTIONS_SCHEMA)
    with pytest.raises(TamisError, match="starts with"):
        form(table, pa.table({"a": ["x"]}))
    twice = _table([[("a", "!=", 1.0), ("a", "!=", 2.0)]])
    with pytest.raises(TamisError, match="one !="):
        form(twice, pa.table({"a": [1.0]}))
