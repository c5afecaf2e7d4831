"""Why a subscription of an engine matches an event or not."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tamis.engine.bulk_load import parsed
from tamis.engine.calls.clause_calls import fits
from tamis.engine.ids import Id
from tamis.model.condition import Call, leaves
from tamis.model.event import Event
from tamis.model.explain import Branch, Explanation, explain

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


def explain_subscription(
    engine: Engine, id: Id, event: Mapping[str, Any], in_operators: AbstractContextManager[Any]
) -> Explanation:
    """Explain it predicate by predicate. Operators are called within the given block."""
    checked = Event.of(engine.schema, event)
    condition = parsed(engine.slot_table.source(id), engine.schema)
    if condition is None:
        return Explanation(True, (Branch(True, (), ()),))
    names = {leaf.operator for leaf in leaves(condition) if isinstance(leaf, Call)}
    evaluators = engine.calls.evaluators(engine.slot_table.slots(id).tolist(), names)
    with in_operators:
        return explain(condition, checked, engine.schema, evaluators, fits)
