"""Normal form: a condition as a list of clauses, any of which makes it match.

The size of the result is computed before it is built, so that a small text cannot ask for a large
expansion.
"""

from __future__ import annotations

from tamis.errors import LimitError
from tamis.language.limits import CLAUSE_LIMIT, DEPTH_LIMIT, PREDICATE_LIMIT
from tamis.model.condition import And, Clause, Condition, Literal, Not, Or, Predicate

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
    """Count the levels that the text of the condition has: parentheses and `not`.

    Without recursion: a condition built in a program may be nested without end, and may share
    parts, which are looked at once a level.
    """
    waiting: dict[int, dict[int, Condition]] = {0: {id(condition): condition}}
    for level in range(DEPTH_LIMIT + 1):
        stack = list(waiting.pop(level, {}).values())
        while stack:
            node = stack.pop()
            if isinstance(node, Predicate):
                continue
            for part in (node.part,) if isinstance(node, Not) else node.parts:
                if isinstance(node, Not):
                    deeper = 1 if isinstance(part, Predicate | Not) else 2
                elif isinstance(part, Predicate | Not):
                    deeper = 0
                else:
                    deeper = 0 if isinstance(node, Or) and isinstance(part, And) else 1
                if deeper:
                    waiting.setdefault(level + deeper, {})[id(part)] = part
                elif not isinstance(part, Predicate):
                    stack.append(part)
        if not waiting:
            return
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
            number, longest = _product(counts), sum(lengths)
        else:
            number, longest = sum(counts), max(lengths)
        known[key] = min(number, _MANY), min(longest, _MANY)
    return known[key]


def _product(counts: list[int]) -> int:
    """Cut off at `_MANY`: the product of a million numbers would itself take long to compute."""
    number = 1
    for count in counts:
        number = min(number * count, _MANY)
    return number


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
