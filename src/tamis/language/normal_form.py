"""Normal form: a condition as a list of clauses. It holds if one of them does.

The size of the result is computed before it is built, so that a small text cannot cause a large
expansion.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.errors import ConditionError, LimitError
from tamis.language.limits import CLAUSE_LIMIT, DEPTH_LIMIT, PREDICATE_LIMIT, VALUE_LIMIT
from tamis.model.condition import (
    LEAVES,
    And,
    Arithmetic,
    Call,
    Clause,
    Condition,
    Expression,
    Leaf,
    Literal,
    Not,
    Or,
    Predicate,
    ValueConstraint,
)
from tamis.model.domain import show

_MANY = 10**9
_TOO_DEEP = f"nested deeper than {DEPTH_LIMIT} levels"
_SHORT_LIST = VALUE_LIMIT // PREDICATE_LIMIT // 2


def clauses(condition: Condition) -> list[Clause]:
    """The clauses of a condition, `not` pushed down to the leaves.

    >>> from tamis.language.parser import parse
    >>> [len(clause) for clause in clauses(parse("a = 1 and (b = 2 or not c = 3)"))]
    [2, 2]
    """
    check_size(condition)
    return expand(condition)


def check_size(condition: Condition) -> None:
    """Refuse a condition that is nested too deeply or would expand to too much."""
    if _is_plain(condition):
        return  # most conditions: a few simple predicates
    _check_depth(condition)
    number, longest, values = _size(condition, True, {})
    if number > CLAUSE_LIMIT:
        raise LimitError(
            f"the condition expands to {_about(number)} clauses; at most {CLAUSE_LIMIT}",
            hint="write a long 'or' over one attribute as 'in (…)'",
        )
    if longest > PREDICATE_LIMIT:
        raise LimitError(f"a clause of {_about(longest)} predicates; at most {PREDICATE_LIMIT}")
    if values > VALUE_LIMIT:
        raise LimitError(
            f"{_about(values)} values in the lists of all clauses; at most {VALUE_LIMIT:,}",
            hint="a long 'in' is repeated in each clause that an 'or' next to it expands to",
        )


def _check_depth(condition: Condition) -> None:
    """Count the levels in the text of the condition: parentheses, `not` and arithmetic.

    Not recursive: a condition built by a program may be nested without limit, and may share parts,
    which are visited once per level.
    """
    waiting: dict[int, dict[int, Condition]] = {0: {id(condition): condition}}
    for level in range(DEPTH_LIMIT + 1):
        stack = list(waiting.pop(level, {}).values())
        while stack:
            node = stack.pop()
            if isinstance(node, ValueConstraint):
                if level + height(node) > DEPTH_LIMIT:
                    raise LimitError(_TOO_DEEP, span=node.span)
                continue
            if isinstance(node, Predicate | Call):
                continue
            for part in (node.part,) if isinstance(node, Not) else node.parts:
                if not isinstance(part, Condition):
                    raise ConditionError(f"{show(part)} is not a condition")
                if isinstance(node, Not):
                    deeper = 2 if isinstance(part, And | Or) else 1
                elif not isinstance(part, And | Or):
                    deeper = 0
                else:
                    deeper = 0 if isinstance(node, Or) and isinstance(part, And) else 1
                if deeper:
                    waiting.setdefault(level + deeper, {})[id(part)] = part
                elif not isinstance(part, Predicate | Call):
                    stack.append(part)
        if not waiting:
            return
    raise LimitError(_TOO_DEEP)


def height(constraint: ValueConstraint) -> int:
    """The nesting of arithmetic in a constraint, up to one more than the limit."""
    level: dict[int, Expression] = {0: constraint.left, 1: constraint.right}
    for found in range(DEPTH_LIMIT + 1):
        nested = [node for node in level.values() if isinstance(node, Arithmetic)]
        if not nested:
            return found
        level = {id(part): part for node in nested for part in (node.left, node.right)}
    return DEPTH_LIMIT + 1


def expand(condition: Condition) -> list[Clause]:
    """The clauses of a condition whose size has been checked."""
    return _expand(condition, True)


def _is_plain(condition: Condition) -> bool:
    if isinstance(condition, Predicate):
        return True
    return (
        isinstance(condition, And)
        and len(condition.parts) <= PREDICATE_LIMIT
        and all(
            type(part) is Predicate
            and (type(part.value) is not tuple or len(part.value) <= _SHORT_LIST)
            for part in condition.parts
        )
    )


class _ExpandedSize(NamedTuple):
    clauses: int
    longest: int  # literals in one clause
    values: int  # in the lists, calls and expressions of all clauses together


def _size(
    condition: Condition, positive: bool, known: dict[tuple[int, bool], _ExpandedSize]
) -> _ExpandedSize:
    """The size of the expanded form; each number is capped at `_MANY`."""
    if isinstance(condition, Predicate):
        given = condition.value
        return _ExpandedSize(1, 1, len(given) if isinstance(given, tuple) else 1)
    if isinstance(condition, Call):
        return _ExpandedSize(1, 1, len(tuple(condition.arguments)))
    if isinstance(condition, ValueConstraint):
        sizes: dict[int, int] = {}
        return _ExpandedSize(
            1, 1, _operands(condition.left, sizes) + _operands(condition.right, sizes)
        )
    if isinstance(condition, Not):
        return _size(condition.part, not positive, known)
    key = id(condition), positive
    if key not in known:
        joined = isinstance(condition, And) == positive
        clauses, longest, values = int(joined), 0, 0
        for part in condition.parts:
            one = _size(part, positive, known)
            if joined:
                values = values * one.clauses + one.values * clauses
                clauses, longest = clauses * one.clauses, longest + one.longest
            else:
                clauses, longest = clauses + one.clauses, max(longest, one.longest)
                values += one.values
            clauses, longest, values = (min(many, _MANY) for many in (clauses, longest, values))
        known[key] = _ExpandedSize(clauses, longest, values)
    return known[key]


def _operands(expression: Expression, known: dict[int, int]) -> int:
    """The number of operands in the text of an expression."""
    if not isinstance(expression, Arithmetic):
        return 1
    key = id(expression)
    if key not in known:
        both = _operands(expression.left, known) + _operands(expression.right, known)
        known[key] = min(both, _MANY)
    return known[key]


def _expand(condition: Condition, positive: bool) -> list[Clause]:
    if isinstance(condition, LEAVES):
        return [(Literal(condition, positive),)]
    if isinstance(condition, Not):
        return _expand(condition.part, not positive)
    if isinstance(condition, And) != positive:
        return [clause for part in condition.parts for clause in _expand(part, positive)]
    found: list[Clause] = [()]
    run: list[Literal[Leaf]] = []  # adjacent leaves: most conditions have nothing else
    for part in condition.parts:
        if isinstance(part, LEAVES):
            run.append(Literal(part, positive))
        else:
            more = _expand(part, positive)
            found = [(*left, *run, *right) for left in found for right in more]
            run = []
    return [(*left, *run) for left in found]


def _about(number: int) -> str:
    return f"more than {_MANY:,}" if number >= _MANY else f"{number:,}"
