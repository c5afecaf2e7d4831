"""A schema is extended: the conditions that mention a grown domain are compiled again.

The names of a grown domain get other codes. A clause that could never hold with the earlier values
may hold now. So conditions start over from what subscribers wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tamis.encode.encoder import Encoder
from tamis.engine.bulk_load import parsed
from tamis.engine.clause_placement import place_clauses, remove_clauses
from tamis.engine.compiled_condition import CompiledClause, compile_condition
from tamis.engine.ids import Id
from tamis.engine.repair import repair
from tamis.errors import MatcherError, SchemaError, TamisError
from tamis.language.dialects.registry import NATIVE
from tamis.model.condition import Condition
from tamis.model.schema import Schema
from tamis.operators.registry import Operators

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

_FEW = 8  # if one condition in so many mentions the domain, all are subscribed again, in bulk


class _Again(NamedTuple):
    """A subscription, compiled for the grown domains."""

    id: Id
    source: str | Condition
    clauses: list[CompiledClause]
    operators: Operators


def extend_schema(engine: Engine, schema: Schema) -> None:
    """Replace the schema of an engine by an extension of it. The caller holds the lock."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    if schema.is_open:  # it need not have what conditions here mention
        schema = engine.schema.mentioning(schema.attributes)
    schema.check_extends(engine.schema)
    grown = schema.grown_attributes(engine.schema)
    if grown:
        extend_domains(engine, schema, grown)
        return
    engine.torn = True
    engine.encoder.extend(schema)
    engine.torn = False


def extend_domains(engine: Engine, schema: Schema, names: Sequence[str]) -> None:
    """Replace the schema of an engine by one in which the domains of these attributes have grown.

    The caller holds the lock. If the matcher refuses, the engine is as it was before.
    """
    before, leaders = engine.schema, engine.slot_table.mentioning(names)
    engine.torn = True
    try:
        # Conditions on elements have numbers in the encoder that they are compiled with.
        few = not engine.encoder.elements and _FEW * len(leaders) <= len(engine)
        if not (few and _compile_again(engine, schema, leaders)):
            engine.encoder.schema = schema
            repair(engine)
    except TamisError as why:
        engine.encoder.schema = before
        repair(engine)
        raise (why.__cause__ or why) from None
    engine.torn = False


def _compile_again(engine: Engine, schema: Schema, leaders: Sequence[int]) -> bool:
    """Compile everything first. Then each subscription moves to new slots, in one step.

    Returns False if the matcher has no room for the old and the new clauses of a subscription.
    """
    calls, encoder = engine.calls, Encoder(schema)
    called, now = calls.operators_by_owner(), calls.operators
    again: list[_Again] = []
    for id, leader, given in engine.slot_table.sources_of(leaders):
        condition = parsed(given, schema)
        assert condition is not None  # it mentions an attribute
        source = given if isinstance(given, str) else condition
        # Its operators are those of the day when it came. Others may have the names now.
        operators = now.over(called.get(leader, {}))
        compiled = compile_condition(condition, encoder, operators, NATIVE, stored=True)
        again.append(_Again(id, source, compiled.clauses, operators))
    engine.encoder.extend(schema)
    engine.residuals.forget_evaluators()
    for id, source, clauses, operators in again:
        old = engine.slot_table.slots(id)
        slots = engine.slot_table.reserve(len(clauses))
        calls.operators = operators
        try:
            place_clauses(engine, slots, clauses, slots[:1].repeat(len(slots)))
        except MatcherError:
            return False
        finally:
            calls.operators = now
        engine.slot_table.move(id, slots, source)
        remove_clauses(engine, old)
        for slot in old.tolist():
            calls.remove(slot)
    return True
