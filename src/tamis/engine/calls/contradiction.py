"""Value constraints that no value satisfies: `?n < 3 and ?n > 5`, whatever an operator gives.

Looked at are those that compare one variable with a constant, as ordinary predicates do with an
attribute. What several variables, or arithmetic over them, can never be is not looked for.
"""

from __future__ import annotations

from typing import Any

from tamis.engine.calls.clause_calls import variables_of
from tamis.engine.calls.join import Bound, compile_constraint, kind_of
from tamis.errors import NeverTrueError
from tamis.model.condition import Clause, Literal, Not, ValueConstraint, parts_of
from tamis.model.printer import to_text

_LONGEST = 300  # characters of a condition that an error shows


def refuse_contradiction(clause: Clause) -> None:
    """A `NeverTrueError` where no value of some variable satisfies all that is said about it."""
    said: dict[str, list[tuple[Literal[ValueConstraint], Bound]]] = {}
    for literal in parts_of(clause).constraints:
        names = variables_of(literal.predicate)
        if len(names) == 1:
            (name,) = names
            bound = compile_constraint(*literal, {name: 0}).bound
            if bound is not None:
                said.setdefault(name, []).append((literal, bound))
    for each in said.values():
        if not _possible([bound for _, bound in each]):
            raise _never([literal for literal, _ in each])


def _possible(bounds: list[Bound]) -> bool:
    """Whether some value satisfies them all. Between two different ones there is always a third."""
    kinds = {kind_of(bound.constant) for bound in bounds}
    if len(kinds) > 1:
        return False
    if kinds == {bool}:
        return any(
            all((value == each.constant) == (each.comparator == "=") for each in bounds)
            for value in (True, False)
        )
    # The highest of the low ends, and of equal ones that which its own value does not satisfy.
    lows: list[tuple[Any, bool]] = [("", False)] if kinds == {str} else []
    lows += [(each.constant, each.comparator == ">") for each in bounds if each.comparator in _LOW]
    highs: list[tuple[Any, bool]] = [
        (each.constant, each.comparator != "<") for each in bounds if each.comparator in _HIGH
    ]
    if not lows or not highs:
        return True
    (low, open_), (high, closed) = max(lows), min(highs)
    if low != high:
        return bool(low < high)
    excluded = any(each.comparator == "!=" and each.constant == low for each in bounds)
    return closed and not open_ and not excluded


_LOW = ("=", ">", ">=")
_HIGH = ("=", "<", "<=")


def _never(literals: list[Literal[ValueConstraint]]) -> NeverTrueError:
    spans = [literal.predicate.span for literal in literals if literal.predicate.span]
    shown = " and ".join(
        to_text(constraint if positive else Not(constraint)) for constraint, positive in literals
    )
    return NeverTrueError(
        f"never true: {shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + '…'}",
        span=(min(start for start, _ in spans), max(end for _, end in spans)) if spans else None,
    )
