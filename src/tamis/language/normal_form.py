"""Normal form: a condition as a list of clauses. It holds if one of them does.

Multiplying out an `and` of many `or`s would take more memory than any machine has. So a large one
is not multiplied out: its clauses have a part of it, which every match satisfies, and the rest is
their *residual*, which is verified on the events that satisfy the part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.errors import ConditionError, LimitError
from tamis.language.limits import CALL_LIMIT, DEPTH_LIMIT, PREDICATE_LIMIT, VALUE_LIMIT
from tamis.model.condition import (
    IS_NULL,
    IS_SCALAR,
    LEAVES,
    SUPERSET,
    And,
    Arithmetic,
    Call,
    Clause,
    Comparison,
    Condition,
    Expression,
    Leaf,
    Literal,
    Not,
    Or,
    Predicate,
    Some,
    ValueConstraint,
    attributes_of,
)
from tamis.model.domain import show

_MANY = 10**9
_TOO_DEEP = f"nested deeper than {DEPTH_LIMIT} levels"
_FEW = 64  # predicates of a plain condition, each with a list of up to _SHORT_LIST values
_SHORT_LIST = VALUE_LIMIT // _FEW // 2
_EXPANSION = 16  # an `and` is multiplied out to at most this many clauses


_ABSENT_OR = ((IS_NULL, True), (IS_SCALAR, False))


class PartialClause(NamedTuple):
    """A conjunction: literals, and larger parts that were not multiplied out."""

    literals: Clause
    residual: tuple[Literal[Condition], ...] = ()


def clauses(condition: Condition) -> list[PartialClause]:
    """The clauses of a condition, `not` pushed down to the leaves.

    >>> from tamis.language.parser import parse
    >>> [len(each.literals) for each in clauses(parse("a = 1 and (b = 2 or not c = 3)"))]
    [2, 2]
    >>> pairs = " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(9))
    >>> [(len(each.literals), len(each.residual)) for each in clauses(parse(pairs))][:2]
    [(4, 5), (4, 5)]
    """
    check_size(condition)
    return expand(condition)


def check_size(condition: Condition) -> None:
    """Refuse a condition that is too large or nested too deeply."""
    if _is_plain(condition):
        return  # most conditions: a few simple predicates
    _check_depth(condition)
    size = _size(condition, True, {})
    if size.predicates > PREDICATE_LIMIT:
        raise LimitError(f"{_about(size.predicates)} predicates; at most {PREDICATE_LIMIT:,}")
    if size.values > VALUE_LIMIT:
        raise LimitError(f"{_about(size.values)} values in all lists; at most {VALUE_LIMIT:,}")
    if size.calls and size.clauses > CALL_LIMIT:
        raise LimitError(
            f"the calls are in {_about(size.clauses)} clauses; at most {CALL_LIMIT:,}",
            hint="an 'and' between many 'or's of calls has a clause for each combination",
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
            if isinstance(node, ValueConstraint | Comparison):
                if level + height(node) > DEPTH_LIMIT:
                    raise LimitError(_TOO_DEEP, span=node.span)
                continue
            if isinstance(node, Predicate | Call):
                continue
            if isinstance(node, Some):
                if not isinstance(node.condition, Condition):
                    raise ConditionError(f"{show(node.condition)} is not a condition")
                waiting.setdefault(level + 1, {})[id(node.condition)] = node.condition
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


def height(constraint: ValueConstraint | Comparison) -> int:
    """The nesting of arithmetic in a constraint, up to one more than the limit."""
    level: dict[int, Expression] = {0: constraint.left, 1: constraint.right}
    for found in range(DEPTH_LIMIT + 1):
        nested = [node for node in level.values() if isinstance(node, Arithmetic)]
        if not nested:
            return found
        level = {id(part): part for node in nested for part in (node.left, node.right)}
    return DEPTH_LIMIT + 1


def expand(condition: Condition) -> list[PartialClause]:
    """The clauses of a condition whose size has been checked."""
    return _expand(condition, True)


def _is_plain(condition: Condition) -> bool:
    if isinstance(condition, Predicate):
        return True
    return (
        isinstance(condition, And)
        and len(condition.parts) <= _FEW
        and all(
            type(part) is Predicate
            and (type(part.value) is not tuple or len(part.value) <= _SHORT_LIST)
            for part in condition.parts
        )
    )


class _Size(NamedTuple):
    predicates: int  # and calls and constraints
    values: int  # in their lists, arguments and expressions
    calls: bool  # whether it has calls or constraints
    clauses: int  # of calls; a part without any counts as one predicate


def _size(condition: Condition, positive: bool, known: dict[tuple[int, bool], _Size]) -> _Size:
    """The size of the text of a condition; each number is capped at `_MANY`."""
    if isinstance(condition, Predicate):
        given = condition.value
        return _Size(1, len(given) if isinstance(given, tuple) else 1, False, 1)
    if isinstance(condition, Call):
        return _Size(1, len(tuple(condition.arguments)), True, 1)
    if isinstance(condition, ValueConstraint | Comparison):
        sizes: dict[int, int] = {}
        values = _operands(condition.left, sizes) + _operands(condition.right, sizes)
        return _Size(1, values, isinstance(condition, ValueConstraint), 1)
    if isinstance(condition, Not):
        return _size(condition.part, not positive, known)
    if isinstance(condition, Some):
        inner = _size(condition.condition, True, known)
        return inner._replace(predicates=inner.predicates + 1, clauses=1)
    key = id(condition), positive
    if key not in known:
        joined = isinstance(condition, And) == positive
        parts = [_size(part, positive, known) for part in condition.parts]
        calls = any(part.calls for part in parts)
        clauses = 1
        if calls and joined:
            for part in parts:
                clauses = min(clauses * part.clauses, _MANY)
        elif calls:
            clauses = sum(part.clauses for part in parts)
        known[key] = _Size(
            min(sum(part.predicates for part in parts), _MANY),
            min(sum(part.values for part in parts), _MANY),
            calls,
            min(clauses, _MANY),
        )
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


def _expand(condition: Condition, positive: bool) -> list[PartialClause]:
    if isinstance(condition, Comparison):  # not indexed, but it needs its attributes
        bound = tuple(Literal(Predicate(name, "exists"), True) for name in attributes_of(condition))
        return [PartialClause(bound, (Literal(condition, positive),))]
    if isinstance(condition, LEAVES):
        if isinstance(condition, Predicate) and condition.comparator == SUPERSET:
            return _expand(as_contains(condition), positive)
        return [PartialClause((each,)) for each in leaf_cases(Literal(condition, positive))]
    if isinstance(condition, Not):
        return _expand(condition.part, not positive)
    if isinstance(condition, And) != positive:
        return [clause for part in condition.parts for clause in _expand(part, positive)]
    plain: list[Literal[Leaf]] = []  # most conditions have nothing else
    others: list[tuple[Condition, list[PartialClause]]] = []
    for part in condition.parts:
        if isinstance(part, LEAVES) and not _is_split(part):
            plain.append(Literal(part, positive))
        else:
            others.append((part, _expand(part, positive)))
    found = [PartialClause(tuple(plain))]
    others.sort(key=lambda each: (not _has_calls(each[1]), len(each[1])))
    for part, more in others:
        indexed = any(isinstance(each.predicate, Predicate) for each in found[0].literals)
        if len(found) * len(more) <= _EXPANSION or not indexed or _has_calls(more):
            found = [
                PartialClause((*left.literals, *right.literals), (*left.residual, *right.residual))
                for left in found
                for right in more
            ]
        else:
            rest = Literal(part, positive)
            found = [each._replace(residual=(*each.residual, rest)) for each in found]
    return found


def _is_split(leaf: Leaf) -> bool:
    """Whether a leaf is more than one literal of a clause."""
    return isinstance(leaf, Comparison) or (
        isinstance(leaf, Predicate) and leaf.comparator in (IS_NULL, IS_SCALAR, SUPERSET)
    )


def leaf_cases(literal: Literal[Any]) -> list[Literal[Any]]:
    """A leaf as a disjunction: `is null` is `missing`, or that the attribute is bound to null.

    Likewise `not x is scalar` is `missing`, or that the attribute is bound to objects.
    """
    leaf, positive = literal
    if isinstance(leaf, Predicate) and (leaf.comparator, positive) in _ABSENT_OR:
        return [Literal(Predicate(leaf.attribute, "missing", None, leaf.span), True), literal]
    return [literal]


def as_contains(predicate: Predicate) -> Condition:
    """`x superset of (a, b)` as `x contains a and x contains b`."""
    assert isinstance(predicate.value, tuple)
    parts = tuple(
        Predicate(predicate.attribute, "contains", item, predicate.span) for item in predicate.value
    )
    return parts[0] if len(parts) == 1 else And(parts)


def _has_calls(clauses: list[PartialClause]) -> bool:
    """Whether there are calls: their clauses are needed one by one, as variables belong to them."""
    return any(
        not isinstance(each.predicate, Predicate) for clause in clauses for each in clause.literals
    )


def all_literals(parts: tuple[Literal[Condition], ...]) -> list[Literal[Any]]:
    """The leaves of conditions without calls, each with its sign."""
    found: list[Literal[Any]] = []
    stack = list(reversed(parts))
    while stack:
        node, positive = stack.pop()
        if isinstance(node, LEAVES):
            found.append(Literal(node, positive))
        elif isinstance(node, Not):
            stack.append(Literal(node.part, not positive))
        else:
            stack.extend(Literal(part, positive) for part in reversed(node.parts))
    return found


def _about(number: int) -> str:
    return f"more than {_MANY:,}" if number >= _MANY else f"{number:,}"
