"""Clauses folded to constraints on attributes.

The predicates of a clause on one attribute fold into one constraint, since one value must satisfy
them all. `contains` and `excludes` are about the set of values; each is a constraint of its own. A
clause that no event can satisfy is refused, with its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tamis.encode import intervals
from tamis.encode.codes import Codec, NameCodec, TextCodec
from tamis.encode.intervals import Intervals
from tamis.encode.pattern import Pattern, Piece, TextCheck, TextTest, text_check
from tamis.errors import NeverTrueError, Span
from tamis.model.condition import (
    FOLDED,
    IGNORING_CASE,
    IS_NULL,
    IS_SCALAR,
    REGULAR,
    STATES,
    SUBSET,
    SUBSTRING,
    WITHIN,
    Clause,
    Literal,
    Not,
)
from tamis.model.printer import to_text

EVENT_TYPE_POSITION = 0  # the first attribute of every schema
SOME, NONE, MISSING = 0, 1, 2
"""Kinds of constraint: some value is in the intervals; the attribute is bound and no value is; the
attribute is not bound."""


class PatternTest(NamedTuple):
    """A check of text that the value must pass, or must not."""

    pattern: TextCheck
    positive: bool


class Constraint(NamedTuple):
    """A constraint on one attribute. The same value must also pass all `patterns`."""

    attribute: int
    kind: int
    intervals: Intervals
    patterns: tuple[PatternTest, ...] = ()


Folded = dict[tuple[int, ...], list[Constraint]]
"""Constraints by the identities of their literals, which the clauses of a condition share."""


def fold(
    clause: Clause,
    codecs: list[Codec],
    positions: Mapping[str, int],
    known: Folded | None = None,
) -> tuple[Constraint, ...]:
    """The constraints of a clause, sorted by attribute; a `NeverTrueError` for a contradiction."""
    groups: dict[int, list[Literal]] = {}
    special: set[int] = set()
    for literal in clause:
        attribute = positions[literal.predicate.attribute]
        groups.setdefault(attribute, []).append(literal)
        if literal.predicate.comparator in SPECIAL_COMPARATORS:
            special.add(attribute)
    found: list[Constraint] = []
    for attribute in sorted(groups):
        literals, codec = groups[attribute], codecs[attribute]
        key = () if known is None else tuple(map(id, literals))
        made = None if known is None else known.get(key)
        if made is None:
            made = (
                _fold_special(attribute, literals, codec)
                if attribute in special
                else [_fold_intervals(attribute, literals, codec)]
            )
            if known is not None:
                known[key] = made
        found.extend(made)
    return tuple(found)


def _fold_intervals(attribute: int, literals: list[Literal], codec: Codec) -> Constraint:
    """Fold predicates that are intervals. Hot path: nearly all are."""
    values = codec.satisfying(literals[0])
    for literal in literals[1:]:
        values = intervals.intersect(values, codec.satisfying(literal))
    if not values:
        raise never_true(literals)
    return Constraint(attribute, SOME, values)


def _fold_special(attribute: int, literals: list[Literal], codec: Codec) -> list[Constraint]:
    """Fold predicates some of which are patterns or about the set of values."""
    values = codec.everything
    patterns: list[PatternTest] = []
    contained: list[Intervals] = []
    excluded: Intervals = ()
    bound = missing = constrained = only_null = False
    for literal in literals:
        predicate, positive = literal
        comparator = predicate.comparator
        if comparator in ("exists", "missing"):
            if (comparator == "exists") == positive:
                bound = True
            else:
                missing = True
        elif comparator == IS_NULL:
            bound = True  # the normal form splits off the case that it is not bound
            only_null, constrained = only_null or positive, constrained or bool(codec.null)
            values = intervals.intersect(values, codec.null if positive else codec.not_null)
        elif comparator == IS_SCALAR:
            bound = True  # the normal form splits off the case that it is not bound
            if positive:
                values = intervals.intersect(values, codec.scalars)
                constrained = constrained or values != codec.everything
            else:
                excluded = intervals.unite((*excluded, *codec.scalars))
        elif comparator == SUBSET:
            others = _others(literal, codec)
            bound = True
            if positive:
                excluded = intervals.unite((*excluded, *others))
            else:
                contained.append(others)
        elif comparator in ("contains", "excludes"):
            point = codec.compare("=", codec.domain.constant(predicate.value))
            if (comparator == "contains") == positive:
                contained.append(point)
            else:
                excluded = intervals.unite((*excluded, *point))
                bound = True
        else:
            constrained = True
            narrowed, test = _narrow(literal, codec)
            values = intervals.intersect(values, narrowed)
            if test is not None:
                patterns.append(test)
    values = _drop_unfit_points(values, patterns)
    if attribute == EVENT_TYPE_POSITION and isinstance(codec, NameCodec):
        bound = True  # every event has a type
    if not values or (missing and (bound or contained or constrained)):
        raise never_true(literals)
    if only_null and not all(intervals.intersect(point, codec.null) for point in contained):
        raise never_true(literals)
    outside = intervals.complement(excluded, codec.bottom, codec.top)
    if not intervals.intersect(values, outside) or not all(
        point and intervals.intersect(point, outside) for point in contained
    ):
        raise never_true(literals)
    if missing:
        return [Constraint(attribute, MISSING, ())]
    if only_null:
        return [Constraint(attribute, NONE, codec.not_null)]
    found = [Constraint(attribute, SOME, point) for point in dict.fromkeys(contained)]
    if constrained or (bound and not excluded and not contained):
        found.insert(0, Constraint(attribute, SOME, values, tuple(patterns)))
    if excluded:
        found.append(Constraint(attribute, NONE, excluded))
    return found


def _others(literal: Literal, codec: Codec) -> Intervals:
    """The values that are not in the list of a literal."""
    assert isinstance(literal.predicate.value, tuple)
    listed = intervals.unite(
        interval
        for item in literal.predicate.value
        for interval in codec.compare("=", codec.domain.constant(item))
    )
    return intervals.complement(listed, codec.bottom, codec.top)


_CHECKED = frozenset(("ends with", "like", SUBSTRING, REGULAR, WITHIN, *FOLDED))
SPECIAL_COMPARATORS = frozenset((*STATES, "contains", "excludes", SUBSET, *_CHECKED))


def _narrow(literal: Literal, codec: Codec) -> tuple[Intervals, PatternTest | None]:
    """The intervals of a literal, and the pattern test that remains, if any."""
    predicate, positive = literal
    if predicate.comparator not in _CHECKED:
        return codec.satisfying(literal), None
    assert isinstance(codec, TextCodec)
    comparator, given = predicate.comparator, predicate.value
    if comparator == "!=" + IGNORING_CASE:
        comparator, positive = "=" + IGNORING_CASE, not positive
    texts = tuple(map(str, given if isinstance(given, tuple) else (given,)))
    pattern = text_check(comparator, texts)
    if isinstance(pattern, TextTest):
        return codec.texts, PatternTest(codec.pattern(pattern), positive)
    if pattern.literal is not None:
        exact, found = True, codec.compare("=", pattern.literal)
    else:
        exact = pattern.only_prefix
        prefix = pattern.prefix
        found = codec.compare("starts with", prefix) if prefix else codec.texts
    if exact:
        return (found if positive else codec.complement(found, predicate)), None
    return (found if positive else codec.texts), PatternTest(codec.pattern(pattern), positive)


def _drop_unfit_points(values: Intervals, patterns: list[PatternTest]) -> Intervals:
    """Drop single texts that fail a pattern."""
    if not patterns:
        return values

    def fits(low: intervals.Cut, high: intervals.Cut) -> bool:
        if low[1] != high[1] or low[0] != high[0]:
            return True  # not a single text
        return all(test.pattern.matches(low[1]) == test.positive for test in patterns)

    return tuple((low, high) for low, high in values if fits(low, high))


def never_true(literals: Sequence[Literal[Any]]) -> NeverTrueError:
    """The error for literals that cannot hold together."""
    spans = [literal.predicate.span for literal in literals if literal.predicate.span]
    span: Span | None = (
        (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None
    )
    shown = " and ".join(
        to_text(predicate if positive else Not(predicate)) for predicate, positive in literals
    )
    if len(shown) > 300:
        shown = shown[:297] + "…"
    return NeverTrueError(f"never true: {shown}", span=span)


def constraint_to_json(constraint: Constraint) -> str:
    """The constraint as JSON; equal constraints have equal texts.

    >>> from tamis.encode.intervals import after, before
    >>> constraint_to_json(Constraint(2, 0, ((before("a"), after("b")),),
    ...                    (PatternTest(Pattern.like("%x_"), True),)))
    '[2,0,[[[0,"a",0],[0,"b",1]]],[[["",["x",null]],true]]]'
    """
    patterns = [(_check_to_json(test.pattern), test.positive) for test in constraint.patterns]
    parts = (constraint.attribute, constraint.kind, constraint.intervals, patterns)
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def constraint_from_json(text: str) -> Constraint:
    """The constraint from its JSON."""
    attribute, kind, intervals, patterns = json.loads(text)
    return Constraint(
        attribute,
        kind,
        tuple((_cut(low), _cut(high)) for low, high in intervals),
        tuple(PatternTest(_check_from_json(check), bool(positive)) for check, positive in patterns),
    )


def _check_to_json(check: TextCheck) -> Any:
    if isinstance(check, Pattern):
        return check.pieces
    return {"comparator": check.comparator, "constants": check.constants, "skipped": check.skipped}


def _check_from_json(given: Any) -> TextCheck:
    if not isinstance(given, dict):
        return Pattern(tuple(map(_piece, given)))
    comparator, constants, skipped = (
        given.get(name) for name in ("comparator", "constants", "skipped")
    )
    right = isinstance(constants, list) and all(isinstance(each, str) for each in constants)
    if comparator not in _CHECKED or not right or not constants or not isinstance(skipped, int):
        raise TypeError("a check of text is a comparator, its constants and a number")
    return TextTest(comparator, tuple(constants), skipped)


def _cut(given: Any) -> intervals.Cut:
    part, text, side = given
    if not (isinstance(part, int) and isinstance(text, str) and isinstance(side, int)):
        raise TypeError("an end of an interval is a number, a text and a number")
    return part, text, side


def _piece(given: Any) -> Piece:
    piece = given if isinstance(given, str) else tuple(given)
    if not all(each is None or isinstance(each, str) for each in piece):
        raise TypeError("a piece of a pattern is text, or characters")
    return piece
