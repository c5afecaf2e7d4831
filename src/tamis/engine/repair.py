"""Repair: rebuild an engine after an interrupted change.

An interrupt (Ctrl-C, lack of memory) can stop a change between any two steps. The ids with their
conditions are right even then; see `slot_table`. All other parts are built again from them.
"""

from __future__ import annotations

from builtins import id as address
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.encode.clause import Constraint
from tamis.encode.columns import is_text
from tamis.encode.encoder import Encoder
from tamis.encode.terms import joined
from tamis.engine.bulk_load import parsed, subscribe_table
from tamis.engine.calls.call_filter import CallFilter
from tamis.engine.compiled_condition import CompiledClause, compile_condition
from tamis.engine.condition_sources import ConditionSource, TableRow
from tamis.engine.element_engine import element_engine
from tamis.engine.engine_lock import EngineLock
from tamis.engine.ids import Id
from tamis.engine.pattern_filter import PatternFilter
from tamis.engine.residuals.residual_filter import ResidualFilter
from tamis.engine.slot_table import SlotTable
from tamis.errors import EngineError, LimitError, TamisError
from tamis.language.dialects.registry import NATIVE
from tamis.model.condition import Condition

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


def repair(engine: Engine) -> None:
    """Rebuild all parts. If this is interrupted, nothing is lost: the next call repairs."""
    engine.matcher.reset()
    fresh = object.__new__(type(engine))
    vars(fresh).update(
        _lock=EngineLock(),
        torn=False,
        encoder=Encoder(engine.schema, element_engine),
        matcher=engine.matcher,
        slot_table=SlotTable(),
        patterns=PatternFilter(),
        residuals=ResidualFilter(),
        calls=CallFilter(engine.calls.operators, engine.calls.scheduler_name),
    )
    fresh.calls.known = engine.calls.known
    try:
        _subscribe_all(fresh, engine)
    except TamisError as why:
        raise EngineError(
            "a change of this engine was interrupted, and its subscriptions cannot be rebuilt; "
            f"create a new engine from your own record of them: {why}"
        ) from why
    fresh.slot_table.continue_from(engine.slot_table)
    fresh.calls.operators = engine.calls.operators
    fresh.calls.runner, fresh.calls.given_up = engine.calls.runner, engine.calls.given_up
    fresh.residuals.undecided = engine.residuals.undecided
    fresh.encoder.ignored = engine.encoder.ignored
    rebuilt = ("encoder", "slot_table", "patterns", "residuals", "calls")
    parts = {name: vars(fresh)[name] for name in rebuilt}
    vars(engine).update(parts, torn=False)  # one step
    engine._lock.changed()


def check_clauses(engine: Engine, tests: Mapping[int, tuple[Constraint, ...]]) -> None:
    """Raise if the patterns and calls of the slots are not those of their conditions.

    Compiling conditions is slow, so it compares a thousand at most.
    """
    called, texts = engine.calls.operators_by_owner(), engine.calls.texts()
    for id, leader, source in islice(engine.slot_table.sources(), 1000):
        operators = engine.calls.operators.over(called.get(leader, {}))
        condition = parsed(source, engine.schema)
        clauses = [CompiledClause()]
        if condition is not None:
            clauses = compile_condition(
                condition, engine.encoder, operators, NATIVE, stored=True
            ).clauses
        for slot, clause in zip(engine.slot_table.slots(id).tolist(), clauses, strict=True):
            patterned = tuple(each for each in clause.constraints if each.patterns)
            assert (tests.get(slot, ()), texts.get(slot, "")) == (patterned, clause.text)
            steps = [] if clause.residual is None else clause.residual.steps
            assert engine.residuals.steps(slot) == steps


def _subscribe_all(fresh: Engine, old: Engine) -> None:
    """Subscribe everything again: many conditions at once, as tables, where possible."""
    called, operators = old.calls.operators_by_owner(), old.calls.operators
    alike: dict[tuple[int, type], list[tuple[Id, str | TableRow]]] = {}
    for id, leader, source in old.slot_table.sources():
        if leader in called:
            # Its operators are those of the day when it came. Others may have the names now.
            fresh.calls.operators = operators.over(called[leader])
            _subscribe(fresh, id, source)
        elif isinstance(source, Condition):
            fresh.subscribe(source, id, stored=True)
        else:
            column = address(source.column) if isinstance(source, TableRow) else 0
            alike.setdefault((column, type(id)), []).append((id, source))
    for some in alike.values():
        ids = [id for id, _ in some]
        rows = [source for _, source in some if isinstance(source, TableRow)]
        if rows:
            given = rows[0].column.take(pa.array([each.row for each in rows]))
        else:
            given = pa.array([source for _, source in some], pa.large_string())
        name = "condition" if is_text(given.type) else "predicates"
        try:
            subscribe_table(fresh, pa.table({"id": ids, name: given}), None, NATIVE, stored=True)
        except LimitError:  # a condition built by a program may be longer as text
            for id, source in some:
                _subscribe(fresh, id, source)


def _subscribe(fresh: Engine, id: Id, source: ConditionSource) -> None:
    condition = parsed(source, fresh.schema)
    assert condition is not None  # without predicates there are no calls, and no long texts
    fresh.subscribe(condition, id, stored=True)


def check(engine: Engine) -> None:
    """Raise if an invariant of an engine is broken: its parts agree with each other."""
    engine.matcher.check()
    slots = engine.matcher.clauses.live_slots()
    owners = engine.slot_table.check()
    assert slots.tolist() == sorted(owners), "each clause has one subscription"
    patterned = engine.patterns.check()
    assert engine.calls.check().items() <= owners.items()
    rest = engine.residuals.check(slots)
    terms = joined((engine.matcher.terms(slots), *rest))
    engine.encoder.check(terms, patterned.values())
    check_clauses(engine, patterned)
