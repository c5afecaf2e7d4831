"""What conditions are made of, apart from what it means."""

from __future__ import annotations

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


def test_leaves_and_variables_come_from_left_to_right() -> None:
    condition: And | Or = Or((And((CALL, PRICE)), Not(ABOVE)))
    assert list(leaves(condition)) == [CALL, PRICE, ABOVE]
    assert list(leaves(CALL)) == [CALL]
    assert [each.name for each in variables(CALL)] == ["x", "y", "x"]
    assert [each.name for each in variables(ABOVE)] == ["y", "x", "y"]
    assert list(variables(PRICE)) == []
    for _ in range(60):
        condition = Or((condition, condition))
    assert list(leaves(condition)) == [CALL, PRICE, ABOVE], "a shared part is visited once"


def test_a_clause_is_sorted_by_who_answers() -> None:
    clause = (
        Literal(ABOVE, False),
        Literal(CALL, True),
        Literal(PRICE, True),
        Literal(CALL, False),
    )
    assert parts_of(clause) == ((clause[2],), (clause[1], clause[3]), (clause[0],), (), ())
    assert parts_of(clause).constraints == (clause[0],)
    assert parts_of(()) == ((), (), (), (), ())
