"""An engine moves to another schema, with all its subscriptions or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.encode.encoder import Encoder
from tamis.engine import repair
from tamis.engine.bulk_load import parsed
from tamis.engine.compiled_condition import compile_condition
from tamis.engine.element_engine import element_engine
from tamis.engine.ids import Id
from tamis.errors import ConditionError, SchemaError, counted
from tamis.language.dialects.registry import NATIVE
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

_SHOWN = 10


def declare(engine: Engine, schema: Schema) -> None:
    """Replace the schema of an engine; an error names the subscriptions that do not fit."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    refused = _refused(engine, schema)
    if refused:
        shown = "".join(f"\n  {id!r}: {_reason(why)}" for id, why in refused[:_SHOWN])
        more = f"\n  and {len(refused) - _SHOWN:,} more" if len(refused) > _SHOWN else ""
        every = counted(len(engine), "subscription")
        many = counted(len(refused), f"of {every} does not", f"of {every} do not")
        raise SchemaError(f"{many} fit the schema:{shown}{more}")
    # A repair builds everything again from the schema of the encoder and the conditions. If it is
    # interrupted, the next call goes on with it.
    ignored = engine.encoder.ignored
    encoder = Encoder(schema, element_engine)
    encoder.ignored = ignored
    engine.torn = True
    engine.encoder = encoder
    repair.repair(engine)


def _reason(why: ConditionError) -> str:
    return why.message if why.hint is None else f"{why.message}; {why.hint}"


def _refused(engine: Engine, schema: Schema) -> list[tuple[Id, ConditionError]]:
    """The subscriptions whose conditions the schema does not accept, with the reasons."""
    called = engine.calls.operators_by_owner()
    encoder = Encoder(schema, element_engine)
    found: list[tuple[Id, ConditionError]] = []
    for id, leader, source in engine.slot_table.sources():
        condition = parsed(source, engine.schema)
        if condition is None:
            continue
        operators = engine.calls.operators.over(called.get(leader, {}))
        try:
            compile_condition(condition, encoder, operators, NATIVE, stored=True)
        except ConditionError as why:
            found.append((id, why))
    return found
