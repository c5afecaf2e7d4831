"""Constraints with patterns as JSON, for saved engines.

Their intervals are between texts. JSON preserves texts and whole numbers, so nothing is lost.
"""

from __future__ import annotations

import json
from typing import Any

from tamis.encode.clause import Constraint, PatternTest
from tamis.encode.pattern import Pattern, Piece


def constraint_to_json(constraint: Constraint) -> str:
    """The constraint as JSON; equal constraints have equal texts.

    >>> from tamis.encode.intervals import after, before
    >>> constraint_to_json(Constraint(2, 0, ((before("a"), after("b")),),
    ...                    (PatternTest(Pattern.like("%x_"), True),)))
    '[2,0,[[[0,"a",0],[0,"b",1]]],[[["",["x",null]],true]]]'
    """
    patterns = [(test.pattern.pieces, test.positive) for test in constraint.patterns]
    parts = (constraint.attribute, constraint.kind, constraint.intervals, patterns)
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def constraint_from_json(text: str) -> Constraint:
    """The constraint from its JSON."""
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
