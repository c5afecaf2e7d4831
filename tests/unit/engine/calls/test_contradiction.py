"""Conditions on variables that nothing can satisfy are refused, and no others are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Engine, Operator, Schema
from tamis.engine.compiled_condition import refuse_contradiction
from tamis.errors import NeverTrueError
from tamis.model.condition import Literal, ValueConstraint, Variable
from tamis.model.operator import Parameter, Signature
from tamis.model.operator_semantics import constraint_holds

SCHEMA = Schema.from_dict({"attributes": {"price": "integer"}})
SIGNATURE = Signature("f", (Parameter("n", "any", True),), ("price",))


def _engine() -> Engine:
    return Engine(SCHEMA, operators=[Operator(lambda price: price, SIGNATURE, run="here")])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("f(?v) and ?v < 3 and ?v > 5", "?v < 3 and ?v > 5"),
        ("f(?v) and (?v < 3 and ?v > 4 or ?v < 3 and 5 < ?v)", "?v < 3 and ?v > 4"),
        ("f(?v) and f(?w) and ?v >= 3 and ?w = 1 and not ?v >= 3", "?v >= 3 and not ?v >= 3"),
        ("f(?v) and ?v > 1 + 1 and ?v <= 2", "?v > 1 + 1 and ?v <= 2"),
        ("f(?v) and ?v = 3 and ?v != 3.0", "?v = 3 and ?v != 3.0"),
        ("f(?v) and ?v = x and ?v > 3", '?v = "x" and ?v > 3'),
        ("f(?v) and ?v = 1 and ?v = true", "?v = 1 and ?v = true"),
        ('f(?v) and ?v < ""', '?v < ""'),
        ("f(?v) and ?v != true and ?v != false", "?v != true and ?v != false"),
    ],
)
def test_what_no_value_satisfies_is_refused(text: str, shown: str) -> None:
    with pytest.raises(NeverTrueError) as refused:
        _engine().subscribe(text)
    assert refused.value.message.replace('"x"', "x") == f"never true: {shown}".replace('"x"', "x")
    start, end = refused.value.span or (0, 0)
    assert text[start:end].startswith(shown[:2])


@pytest.mark.parametrize(
    "text",
    [
        "f(?v) and f(?w) and ?v < 3 and ?w > 5",
        "f(?v) and (?v < 3 or ?v > 5)",
        "f(?v) and ?v < ?v",
        "f(?v) and ?v / 0 = 1 and ?v = 1 / 0",
        "f(?v) and ?v <= 2 and ?v >= 2 and ?v != 3",
    ],
)
def test_what_may_be_so_or_is_not_looked_for_is_taken(text: str) -> None:
    _engine().subscribe(text)


CONSTANTS = (0, 1, 1.0, 2, "", "a", "b", True, False)
BETWEEN: tuple[Any, ...] = (*CONSTANTS, -1, 0.5, 1.5, 3, "A", "aa", "c")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("=", "!=", "<", "<=", ">", ">=")),
            st.sampled_from(CONSTANTS),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_refused_is_just_what_none_of_all_values_satisfies(said: list[Any]) -> None:
    clause = tuple(
        Literal(
            ValueConstraint(constant, comparator, Variable("v"))
            if flipped
            else ValueConstraint(Variable("v"), comparator, constant),
            positive,
        )
        for comparator, constant, flipped, positive in said
        if comparator in ("=", "!=") or not isinstance(constant, bool)  # they have no order
    )
    possible = any(
        all(constraint_holds(literal, {"v": value}) for literal in clause) for value in BETWEEN
    )
    try:
        refuse_contradiction(clause)
    except NeverTrueError:
        assert not possible
    else:
        assert possible
