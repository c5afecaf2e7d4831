"""The three truths of SQL, in conditions that have two.

SQL's comparison with NULL is unknown: NOT leaves it unknown, and only a condition that is true
selects a row. A `Test` says under which condition of tamis an SQL condition has one of some truths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntFlag

from tamis.model.condition import And, Condition, Not, Or


class Truth(IntFlag):
    """Truths that are asked for; several at once are alternatives."""

    TRUE = 1
    FALSE = 2
    UNKNOWN = 4


TRUE, FALSE, UNKNOWN = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN
NEVER = Truth(0)
ANY = TRUE | FALSE | UNKNOWN

Made = Condition | bool
"""A condition, or what it is for every event."""
Test = Callable[[Truth], Made]


def every(parts: Sequence[Made]) -> Made:
    """All hold."""
    return _joined(parts, And, True)


def one_of(parts: Sequence[Made]) -> Made:
    """At least one holds."""
    return _joined(parts, Or, False)


def _joined(parts: Sequence[Made], kind: type[And] | type[Or], neutral: bool) -> Made:
    if any(part is (not neutral) for part in parts):
        return not neutral
    found: list[Condition] = []
    for part in parts:
        if isinstance(part, kind):
            found += part.parts
        elif not isinstance(part, bool):
            found.append(part)
    if not found:
        return neutral
    return found[0] if len(found) == 1 else kind(tuple(found))


def constant(value: bool | None) -> Test:
    """A condition without attributes; None is NULL."""
    truth = UNKNOWN if value is None else TRUE if value else FALSE
    return lambda wanted: truth in wanted


def leaf(condition: Condition, unknown: Callable[[], Made]) -> Test:
    """A condition of tamis, which is false as its complement is where SQL says unknown.

    `unknown` gives the condition that it is unknown, if anybody asks.
    """

    def test(wanted: Truth) -> Made:
        if wanted == ANY:
            return True
        parts: list[Made] = [condition] if TRUE in wanted else []
        if FALSE in wanted:
            parts.append(Not(condition))
        if UNKNOWN in wanted:
            parts.append(unknown())
        return one_of(parts)

    return test


def two_valued(holds: Callable[[], Made], fails: Callable[[], Made]) -> Test:
    """A condition that is never unknown."""

    def test(wanted: Truth) -> Made:
        if TRUE in wanted:
            return True if FALSE in wanted else holds()
        return fails() if FALSE in wanted else False

    return test


def truth_is(inner: Test, truths: Truth) -> Test:
    """`… IS TRUE` and its like: whether the truth of a condition is one of these."""
    return two_valued(lambda: inner(truths), lambda: inner(ANY & ~truths))


def negation(inner: Test) -> Test:
    """NOT: true and false change places."""

    def test(wanted: Truth) -> Made:
        swapped = wanted & UNKNOWN
        swapped |= FALSE if TRUE in wanted else NEVER
        swapped |= TRUE if FALSE in wanted else NEVER
        return inner(swapped)

    return test


def conjunction(parts: Sequence[Test]) -> Test:
    """AND: false if one part is, or else unknown if one part is."""

    def test(wanted: Truth) -> Made:
        if wanted in (NEVER, ANY):
            return wanted == ANY
        if wanted in (TRUE, TRUE | UNKNOWN):
            return every([part(wanted) for part in parts])
        if wanted in (FALSE, FALSE | UNKNOWN):
            return one_of([part(wanted) for part in parts])
        if wanted == UNKNOWN:
            return every([test(TRUE | UNKNOWN), test(FALSE | UNKNOWN)])
        return one_of([test(TRUE), test(FALSE)])

    return test


def disjunction(parts: Sequence[Test]) -> Test:
    """OR: `a OR b` is `NOT (NOT a AND NOT b)`."""
    return negation(conjunction([negation(part) for part in parts]))
