"""Formulas: conditions, or what is true or false of every event, and how they are joined."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tamis.errors import LimitError, Span
from tamis.language.dialects.cesql import value_sets as sets
from tamis.language.dialects.cesql.value_sets import EVERY_INTEGER, EVERY_TEXT, Spread, TextSet
from tamis.language.dialects.cesql.values import HIGHEST, LOWEST
from tamis.language.limits import PREDICATE_LIMIT
from tamis.model.condition import REGULAR, And, Condition, Not, Or, Predicate

Formula = Condition | bool
"""A condition, or what is true or false of every event."""


class FormulaMaker:
    """Makes and joins formulas, and refuses what grows too large."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[Condition, int]] = {}

    def integers(self, name: str, wanted: Spread, span: Span) -> Formula:
        """The integer that is the value of an attribute is one of these."""
        if wanted == EVERY_INTEGER:
            return True
        rest = sets.others(wanted)
        if len(rest) < len(wanted):
            return Not(_some_integers(name, rest, span))
        return _some_integers(name, wanted, span)

    def texts(self, name: str, wanted: TextSet, span: Span) -> Formula:
        """The text that is the value of an attribute is one of these."""
        if wanted == EVERY_TEXT:
            return True
        parts: list[Condition] = []
        if len(wanted.exact) == 1:
            parts.append(Predicate(name, "=", wanted.exact[0], span))
        elif wanted.exact:
            parts.append(Predicate(name, "in", tuple(dict.fromkeys(wanted.exact)), span))
        parts += (Predicate(name, "like", like, span) for like in wanted.likes)
        parts += (Predicate(name, REGULAR, sets.whole(each), span) for each in wanted.expressions)
        if wanted.negated:
            return self.all(Not(part) for part in parts)
        return self.any(parts)

    def all(self, parts: Collection[Formula] | Iterator[Formula]) -> Formula:
        """All of these."""
        return self._join(And, parts, False)

    def any(self, parts: Collection[Formula] | Iterator[Formula]) -> Formula:
        """One of these."""
        return self._join(Or, parts, True)

    def _join(
        self,
        kind: type[And] | type[Or],
        parts: Collection[Formula] | Iterator[Formula],
        decisive: bool,
    ) -> Formula:
        found: dict[object, Condition] = {}
        for part in parts:
            if isinstance(part, bool):
                if part == decisive:
                    return decisive
                continue
            for each in part.parts if isinstance(part, kind) else (part,):
                is_leaf = not isinstance(each.part if isinstance(each, Not) else each, And | Or)
                found.setdefault(repr(each) if is_leaf else id(each), each)  # 1 equals True
        if len(found) < 2:
            return next(iter(found.values()), not decisive)
        size = sum(self._sizes.get(id(each), (each, 1))[1] for each in found.values())
        if size > PREDICATE_LIMIT:
            raise LimitError(f"as a condition, this has more than {PREDICATE_LIMIT:,} predicates")
        made = kind(tuple(found.values()))
        self._sizes[id(made)] = (made, size)
        return made


def _some_integers(name: str, wanted: Spread, span: Span) -> Condition:
    parts: list[Condition] = []
    points = [low for low, high in wanted if low == high]
    if len(points) == 1:
        parts.append(Predicate(name, "=", points[0], span))
    elif points:
        parts.append(Predicate(name, "in", tuple(points), span))
    for low, high in wanted:
        if low == LOWEST and high > low:
            parts.append(Predicate(name, "<=", high, span))
        elif high == HIGHEST and high > low:
            parts.append(Predicate(name, ">=", low, span))
        elif high > low:
            parts.append(Predicate(name, "between", (low, high), span))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))
