"""The normal form is true exactly when the condition is."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.errors import ConditionError, LimitError
from tamis.language import clauses, parse
from tamis.language.normal_form import PartialClause
from tamis.model import semantics
from tamis.model.condition import And, Condition, Not, Or, Predicate
from tests.unit.language.conditions import grow

SCHEMA = Schema.from_dict({"attributes": dict.fromkeys("abcd", "boolean")})
LEAVES = st.sampled_from([Predicate(name, "=", True) for name in "abcd"])


trees = st.recursive(LEAVES, grow, max_leaves=8)


def truth(condition: Condition, event: dict[str, bool]) -> bool:
    if isinstance(condition, Predicate):
        return event[condition.attribute]
    if isinstance(condition, Not):
        return not truth(condition.part, event)
    if isinstance(condition, And):
        return all(truth(part, event) for part in condition.parts)
    assert isinstance(condition, Or)
    return any(truth(part, event) for part in condition.parts)


@settings(max_examples=300)
@given(condition=trees)
def test_clauses_have_the_truth_table_of_the_condition(condition: Condition) -> None:
    found = clauses(condition)
    for values in product((True, False), repeat=4):
        event = dict(zip("abcd", values, strict=True))
        by_clauses = any(
            all(event[leaf.attribute] == positive for leaf, positive in clause.literals)
            and all(truth(part, event) == positive for part, positive in clause.residual)
            for clause in found
        )
        assert by_clauses == truth(condition, event)
        assert semantics.satisfies(condition, event, SCHEMA) == truth(condition, event)


@settings(max_examples=200)
@given(condition=trees)
def test_clauses_are_the_branches_of_the_semantics(condition: Condition) -> None:
    branches = [frozenset(branch) for branch in semantics.branches(condition)]
    if len(branches) <= 16:  # a larger one is not multiplied out
        found = clauses(condition)
        assert not any(clause.residual for clause in found)
        assert Counter(branches) == Counter(frozenset(clause.literals) for clause in found)


FIXTURES = [
    ("a = true", ["a"]),
    ("not a = true", ["-a"]),
    ("not not a = true", ["a"]),
    ("a = true and (b = true or c = true)", ["ab", "ac"]),
    ("not (a = true and b = true)", ["-a", "-b"]),
    ("not (a = true or b = true)", ["-a-b"]),
    ("not (a = true and not (b = true or c = true))", ["-a", "b", "c"]),
    ("(a = true or b = true) and (c = true or d = true)", ["ac", "ad", "bc", "bd"]),
]


def shown(clause: PartialClause) -> str:
    return "".join(
        ("" if positive else "-") + predicate.attribute for predicate, positive in clause.literals
    )


@pytest.mark.parametrize(("text", "expected"), FIXTURES)
def test_the_clauses_of(text: str, expected: list[str]) -> None:
    assert [shown(clause) for clause in clauses(parse(text))] == expected


def test_a_condition_from_a_program_has_the_same_limits() -> None:
    deep: Condition = Predicate("a", "=", True)
    for levels in range(1, 100_001):
        deep = Not(deep)
        if levels == 100:
            assert len(clauses(deep)) == 1
        elif levels in (101, 100_000):
            with pytest.raises(LimitError, match="nested deeper"):
                clauses(deep)


@pytest.mark.parametrize("make", [And, Or])
def test_and_and_or_are_limited(make: type[And] | type[Or]) -> None:
    """Shared parts are measured without being multiplied out."""
    condition: Condition = Predicate("a", "=", True)
    with pytest.raises(ConditionError, match="joins two or more"):
        make((condition,))
    for _ in range(60):
        condition = make((condition, condition))
    with pytest.raises(LimitError, match="more than 1,000,000,000"):
        Engine(SCHEMA).subscribe(condition)
