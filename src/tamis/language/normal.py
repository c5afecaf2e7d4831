"""Normal form: a condition as a list of clauses, any of which makes it match.

The size of the result is computed before it is built, so that a small text cannot ask for a large
expansion.
"""

from __future__ import annotations

import math

from tamis.errors import LimitError
from tamis.model.condition import And, Clause, Condition, Literal, Not, Predicate

CLAUSE_LIMIT = 256
PREDICATE_LIMIT = 64  # in one clause
DEPTH_LIMIT = 100
_MANY = 10**9


def clauses(condition: Condition, text: str | None = None) -> list[Clause]:
    """The clauses of a condition, `not` pushed down to the predicates.

    >>> from tamis.language.parser import parse
    >>> [len(clause) for clause in clauses(parse("a = 1 and (b = 2 or not c = 3)"))]
    [2, 2]
    """
    check_size(condition, text)
    return _expand(condition, True)


def check_size(condition: Condition, text: str | None = None) -> None:
    """Refuse a condition that is nested too deeply or would expand to too much."""
    _check_depth(condition, text)
    number, longest = _size(condition, True, {})
    if number > CLAUSE_LIMIT:
        raise LimitError(
            f"the condition expands to {_about(number)} clauses; at most {CLAUSE_LIMIT}",
            text=text,
            hint="a long 'or' over one attribute is better written with 'in (…)'",
        )
    if longest > PREDICATE_LIMIT:
        raise LimitError(
            f"a clause of {_about(longest)} predicates; at most {PREDICATE_LIMIT}", text=text
        )


def _check_depth(condition: Condition, text: str | None) -> None:
    """Without recursion: a condition built in a program may be nested without end."""
    level: list[Condition] = [condition]
    for _ in range(DEPTH_LIMIT + 1):
        below: list[Condition] = []
        for node in level:
            if isinstance(node, Not):
                below.append(node.part)
            elif not isinstance(node, Predicate):
                below.extend(node.parts)
        if not below:
            return
        level = list({id(node): node for node in below}.values())  # a program may share parts
    raise LimitError(f"nested deeper than {DEPTH_LIMIT} levels", text=text)


def _size(
    condition: Condition, positive: bool, known: dict[tuple[int, bool], tuple[int, int]]
) -> tuple[int, int]:
    """How many clauses there will be, and the most predicates in one."""
    if isinstance(condition, Predicate):
        return 1, 1
    if isinstance(condition, Not):
        return _size(condition.part, not positive, known)
    key = id(condition), positive
    if key not in known:
        sizes = [_size(part, positive, known) for part in condition.parts]
        counts, lengths = [count for count, _ in sizes], [longest for _, longest in sizes]
        if isinstance(condition, And) == positive:
            number, longest = math.prod(counts), sum(lengths)
        else:
            number, longest = sum(counts), max(lengths)
        known[key] = min(number, _MANY), min(longest, _MANY)
    return known[key]


def _expand(condition: Condition, positive: bool) -> list[Clause]:
    if isinstance(condition, Predicate):
        return [(Literal(condition, positive),)]
    if isinstance(condition, Not):
        return _expand(condition.part, not positive)
    if isinstance(condition, And) != positive:
        return [clause for part in condition.parts for clause in _expand(part, positive)]
    found: list[Clause] = [()]
    for part in condition.parts:
        if isinstance(part, Predicate):
            found = [(*left, Literal(part, positive)) for left in found]
        else:
            more = _expand(part, positive)
            found = [left + right for left in found for right in more]
    return found


def _about(number: int) -> str:
    return f"more than {_MANY:,}" if number >= _MANY else f"{number:,}"
