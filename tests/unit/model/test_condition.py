"""What conditions are made of, apart from what it means."""

from __future__ import annotations

import copy
import pickle

from tamis.model.condition import (
    And,
    Arithmetic,
    Call,
    Literal,
    Not,
    Or,
    Predicate,
    ValueConstraint,
    Variable,
    leaves,
    parts_of,
    variables,
)

X, Y = Variable("x"), Variable("y")
PRICE = Predicate("price", "<", 5, (0, 9))
CALL = Call("f", (X, 1, Y, X), (20, 30))
ABOVE = ValueConstraint(Arithmetic("*", 2, Y), ">", Arithmetic("-", X, Y), (40, 50))


def test_the_place_in_the_text_makes_no_difference() -> None:
    assert Call("f", (X,), (0, 5)) == Call("f", (X,))
    assert ValueConstraint(X, "<", 5, (0, 5)) == ValueConstraint(X, "<", 5)
    assert len({Call("f", (X,), (0, 5)), Call("f", (X,)), Call("f", (Y,))}) == 2
    assert len({ValueConstraint(X, "<", 5, (0, 5)), ValueConstraint(X, "<", 5)}) == 1
    assert X == Variable("x") != Y


def test_nodes_are_copied_and_pickled() -> None:
    condition = Or((And((PRICE, CALL, Not(ABOVE))), PRICE))
    for again in (pickle.loads(pickle.dumps(condition)), copy.deepcopy(condition)):
        assert again == condition
        assert [leaf.span for leaf in leaves(again)] == [(0, 9), (20, 30), (40, 50), (0, 9)]


def test_leaves_come_from_left_to_right() -> None:
    condition = Or((And((CALL, PRICE)), Not(ABOVE)))
    assert list(leaves(condition)) == [CALL, PRICE, ABOVE]
    assert list(leaves(CALL)) == [CALL]


def test_a_part_in_many_places_is_visited_once() -> None:
    condition: And | Or = And((CALL, ABOVE))
    for _ in range(60):
        condition = Or((condition, condition))
    assert list(leaves(condition)) == [CALL, ABOVE]


def test_variables_come_from_left_to_right_as_often_as_they_stand_there() -> None:
    assert [each.name for each in variables(CALL)] == ["x", "y", "x"]
    assert [each.name for each in variables(ABOVE)] == ["y", "x", "y"]
    assert list(variables(PRICE)) == []


def test_a_clause_is_sorted_by_who_answers() -> None:
    clause = (
        Literal(ABOVE, False),
        Literal(CALL, True),
        Literal(PRICE, True),
        Literal(CALL, False),
    )
    assert parts_of(clause) == ((clause[2],), (clause[1], clause[3]), (clause[0],))
    assert parts_of(clause).constraints == (clause[0],)
    assert parts_of(()) == ((), (), ())
