"""Constraints with patterns as JSON text, for what is saved.

The intervals of such a constraint are between texts, and JSON keeps texts and whole numbers as they
are; nothing of a constraint is lost.
"""

from __future__ import annotations

import json
from typing import Any

from tamis.encode.clause import Constraint, PatternTest
from tamis.encode.pattern import Pattern, Piece


def constraint_to_json(constraint: Constraint) -> str:
    """The constraint as text; equal constraints are written alike.

    >>> from tamis.encode.intervals import after, before
    >>> constraint_to_json(Constraint(2, 0, ((before("a"), after("b")),),
    ...                    (PatternTest(Pattern.like("%x_"), True),)))
    '[2,0,[[[0,"a",0],[0,"b",1]]],[[["",["x",null]],true]]]'
    """
    patterns = [(test.pattern.pieces, test.positive) for test in constraint.patterns]
    parts = (constraint.attribute, constraint.kind, constraint.intervals, patterns)
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def constraint_from_json(text: str) -> Constraint:
    """The constraint that was written so."""
    attribute, kind, intervals, patterns = json.loads(text)
    return Constraint(
        attribute,
        kind,
        tuple((tuple(low), tuple(high)) for low, high in intervals),
        tuple(
            PatternTest(Pattern(tuple(map(_piece, pieces))), positive)
            for pieces, positive in patterns
        ),
    )


def _piece(given: Any) -> Piece:
    return given if isinstance(given, str) else tuple(given)
