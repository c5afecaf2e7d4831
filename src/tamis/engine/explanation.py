"""What an engine says of itself: why a subscription matches an event or not, and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tamis.engine.bulk_load import parsed
from tamis.engine.calls.clause_calls import fits
from tamis.engine.ids import Id
from tamis.errors import MatcherError, counted
from tamis.match.capabilities import Plans
from tamis.match.plan import Plan
from tamis.match.registry import name_of
from tamis.model.condition import Call, leaves
from tamis.model.event import Event
from tamis.model.explain import Branch, Explanation, explain
from tamis.model.times.moments import clock, mentions_now, with_now

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


def summary_of(engine: Engine) -> str:
    """An engine in one line."""
    called = f", {counted(len(engine.calls), 'clause')} with operators" if engine.calls else ""
    over = counted(len(engine.schema.attributes) - 1, "attribute")
    name = name_of(engine.matcher) or type(engine.matcher).__name__
    return f"<Engine: {counted(len(engine), 'subscription')} over {over}, matcher {name}{called}>"


def explain_subscription(
    engine: Engine,
    id: Id,
    event: Mapping[str, Any],
    in_operators: AbstractContextManager[Any],
    now: int | None = None,
) -> Explanation:
    """Explain it predicate by predicate. Operators are called within the given block.

    Without a moment, it is the present one.
    """
    checked = Event.of(engine.schema, event)
    condition = parsed(engine.slot_table.source(id), engine.schema)
    if condition is None:
        return Explanation(True, (Branch(True, (), ()),))
    names = {leaf.operator for leaf in leaves(condition) if isinstance(leaf, Call)}
    evaluators = engine.calls.evaluators(engine.slot_table.slots(id).tolist(), names)
    if now is None and mentions_now(with_now(condition, engine.schema)):
        now = clock()
    with in_operators:
        return explain(condition, checked, engine.schema, evaluators, fits, moment=now)


def plan_of(engine: Engine, id: Id | None, lines: int) -> Plan:
    """The plan of the matcher of an engine; a `MatcherError` if it makes no plans."""
    if not isinstance(engine.matcher, Plans):
        kind = type(engine.matcher).__name__
        raise MatcherError(f"a {kind} makes no plan; the matcher 'tamis' makes one")
    slots = None if id is None else engine.slot_table.slots(id)
    return engine.matcher.plan(slots, lines).named(list(engine.schema.attributes))
