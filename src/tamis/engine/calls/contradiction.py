"""Value constraints that no value satisfies: `?n < 3 and ?n > 5`.

Only constraints that compare one variable with a constant are examined. Contradictions between
several variables, or in arithmetic, are not found.
"""

from __future__ import annotations

from typing import Any

from tamis.encode.clause import never_true
from tamis.engine.calls.clause_calls import variable_names
from tamis.engine.calls.join import Bound, compile_constraint, kind_of
from tamis.model.condition import Clause, Literal, ValueConstraint, parts_of


def refuse_contradiction(clause: Clause) -> None:
    """Raise a `NeverTrueError` if no value of some variable satisfies all its constraints."""
    bounds: dict[str, list[tuple[Literal[ValueConstraint], Bound]]] = {}
    for literal in parts_of(clause).constraints:
        names = variable_names(literal.predicate)
        if len(names) == 1:
            (name,) = names
            bound = compile_constraint(*literal, {name: 0}).bound
            if bound is not None:
                bounds.setdefault(name, []).append((literal, bound))
    for each in bounds.values():
        if not _possible([bound for _, bound in each]):
            raise never_true([literal for literal, _ in each])


def _possible(bounds: list[Bound]) -> bool:
    """Whether some value satisfies all bounds. Between two different values lies a third."""
    kinds = {kind_of(bound.constant) for bound in bounds}
    if len(kinds) > 1:
        return False
    if kinds == {bool}:
        return any(
            all((value == each.constant) == (each.comparator == "=") for each in bounds)
            for value in (True, False)
        )
    # The highest lower bound and the lowest upper bound; of equal ones, the strict one.
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
