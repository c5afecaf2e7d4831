"""Clauses into the parts of an engine and out again: labels, matcher, patterns, residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tamis.encode.clause import Constraint
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.engine.compiled_condition import CompiledClause
from tamis.engine.ids import Id
from tamis.engine.residuals.program import Program
from tamis.engine.slot_table import Slots
from tamis.errors import MatcherError

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

_STEP = 10_000  # programs encoded together: bounds the rows that are Python objects


def place_clauses(
    engine: Engine,
    slots: Slots,
    compiled: Sequence[CompiledClause],
    owners: Slots,
    undo: Slots | None = None,
) -> None:
    """Add clauses to all parts; clauses with one owner are alternatives of each other."""
    folded = [each.constraints for each in compiled]
    terms, moved = engine.encoder.terms(folded)
    put_terms(engine, slots, terms, moved, folded, undo)
    programs: list[tuple[int, Program]] = []
    for slot, owner, each in zip(slots.tolist(), owners.tolist(), compiled, strict=True):
        engine.patterns.add(slot, each.constraints)
        if each.calls is not None:
            engine.calls.add(slot, owner, each.calls, each.text)
        if each.residual is not None:
            programs.append((slot, each.residual))
    for first in range(0, len(programs), _STEP):
        some = dict(programs[first : first + _STEP])
        rest, moved = engine.encoder.terms([each.constraints for each in some.values()])
        _follow(engine, moved)
        engine.residuals.add(some, rest)


def put_terms(
    engine: Engine,
    slots: Slots,
    terms: Terms,
    moved: Mapping[int, Moved],
    folded: Sequence[tuple[Constraint, ...]] = (),
    undo: Slots | None = None,
) -> None:
    """Add terms to the matcher, after all parts have followed the labels that moved.

    If the matcher refuses them, the slots to `undo` are emptied as well: all or nothing.
    """
    _follow(engine, moved)
    try:
        engine.matcher.add(slots, terms)
    except MatcherError:  # refused before any change
        engine.encoder.release(terms, folded)
        if undo is not None:
            remove_clauses(engine, undo)
        engine.torn = False
        raise


def remove_clauses(engine: Engine, slots: Slots) -> None:
    """Remove the clauses of slots from all parts but the calls."""
    constants = engine.encoder.labels or engine.encoder.elements
    terms = engine.matcher.terms(slots) if constants else None
    engine.matcher.remove(slots)
    tests = [engine.patterns.remove(slot) for slot in slots.tolist()]
    for slot in slots.tolist():
        rest = engine.residuals.remove(slot)
        if rest is not None:
            engine.encoder.release(rest)
    if terms is not None:
        engine.encoder.release(terms, tests)


def _follow(engine: Engine, moved: Mapping[int, Moved]) -> None:
    """Labels moved: the matcher and the residuals follow."""
    for attribute, labels in moved.items():
        engine.residuals.follow(attribute, labels)
        engine.matcher.follow(attribute, labels)


def remove_subscription(engine: Engine, id: Id) -> None:
    """Remove a subscription with its clauses. The caller holds the lock."""
    slots = engine.slot_table.slots(id)
    engine.torn = True
    try:
        remove_clauses(engine, slots)
    except MatcherError:  # refused before any change
        engine.torn = False
        raise
    engine.slot_table.remove(id)
    for slot in slots.tolist():  # a repair needs the operators of what is there
        engine.calls.remove(slot)
    engine.torn = False
    engine._lock.changed()
