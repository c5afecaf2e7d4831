"""The bulk door of the engine: a table of subscriptions, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from tamis.encode.arrow import one_chunk
from tamis.encode.bulk_terms import BulkTerms
from tamis.encode.plain_conditions import none_plain, plain
from tamis.engine.compiled_clause import CompiledClause
from tamis.engine.ids import Id
from tamis.engine.predicate_rows import condition_of
from tamis.engine.slot_table import check_id
from tamis.errors import ConditionError, SubscriptionError
from tamis.language.limits import PREDICATE_LIMIT, TEXT_LIMIT

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

Progress = Callable[[int, int], object] | None
Clauses = list[CompiledClause]
_STEP = 1000  # rows between two calls of progress
_MANY = 40  # conditions from which on it is worth to have Arrow read them


def subscribe_table(engine: Engine, given: Any, progress: Progress) -> int:
    """Add all subscriptions of a table. Nothing is changed before everything is checked."""
    table = _table(given)
    ids = _ids(engine, table)
    if not ids:
        return 0
    if "condition" in table.column_names:
        column = _one(table, "condition")
        _subscribe_conditions(engine, ids, column, progress)
    else:
        column = _one(table, "predicates")
        _subscribe_predicates(engine, ids, column, progress)
    return len(ids)


def _subscribe_conditions(
    engine: Engine, ids: list[Id], column: pa.Array, progress: Progress
) -> None:
    def read(rows: int) -> None:
        if progress:
            progress(rows, len(ids))

    lists = plain(column, TEXT_LIMIT, read) if len(ids) >= _MANY else none_plain(len(ids))
    bulk = BulkTerms(engine.encoder, lists, PREDICATE_LIMIT)
    compiled: list[Clauses] = []
    for done, row in enumerate(bulk.slow.tolist()):
        if progress and done % _STEP == 0:
            progress(len(bulk.fast) + done, len(ids))
        compiled.append(_compile(engine, column[row].as_py(), row))
    _enter(engine, ids, bulk, compiled, column, progress)


def _subscribe_predicates(
    engine: Engine, ids: list[Id], column: pa.Array, progress: Progress
) -> None:
    assert isinstance(column, pa.ListArray | pa.LargeListArray)
    bulk = BulkTerms(engine.encoder, column, PREDICATE_LIMIT)
    compiled: list[Clauses] = []
    for done, row in enumerate(bulk.slow.tolist()):
        if progress and done % _STEP == 0:
            progress(len(bulk.fast) + done, len(ids))
        compiled.append(_compile_predicates(engine, column, row))
    _enter(engine, ids, bulk, compiled, column, progress)


def _compile_predicates(engine: Engine, column: pa.Array, row: int) -> Clauses:
    try:
        condition = condition_of(column[row].as_py(), engine.schema)
        return [CompiledClause()] if condition is None else engine.compile(condition)
    except ConditionError as error:
        raise error.at_row(row) from None


def _compile(engine: Engine, condition: str | None, row: int) -> Clauses:
    if condition is None:
        raise ConditionError("the condition is null").at_row(row)
    try:
        return engine.compile(condition)
    except ConditionError as error:
        raise error.at_row(row) from None


def _enter(
    engine: Engine,
    ids: list[Id],
    bulk: BulkTerms,
    compiled: list[Clauses],
    column: pa.Array,
    progress: Progress,
) -> None:
    """Let them in: the rows that were coded as arrays, and those that were compiled."""
    if progress:  # whatever it raises, it raises before anything is changed
        progress(len(ids), len(ids))
    counts = np.ones(len(ids), np.int64)
    counts[bulk.slow] = [len(each) for each in compiled]
    slots = engine.slot_table.reserve(int(counts.sum()))
    firsts = np.cumsum(counts) - counts
    rows = np.repeat(np.arange(len(ids)), counts)
    late = np.isin(rows, bulk.slow)
    moved = engine.encoder.count_texts(bulk.text_uses())
    engine.put(slots[firsts[bulk.fast]], bulk.terms(), moved)
    try:
        clauses = [clause for each in compiled for clause in each]
        engine.place(slots[late], clauses, slots[firsts[rows[late]]])
        engine.slot_table.add_table(ids, slots, counts, column)
    except BaseException:  # a matcher may refuse, for example for lack of memory
        # What the table asks now, not what it asked at first: labels may have moved meanwhile.
        if ids[0] not in engine.slot_table:
            engine.evict(slots)
        raise


def _table(given: Any) -> pa.Table:
    try:
        table: pa.Table = given if isinstance(given, pa.Table) else pa.table(given)
    except (TypeError, ValueError, pa.ArrowException) as why:
        raise SubscriptionError(f"expected an Arrow table of subscriptions: {why}") from None
    names = table.column_names
    for name in ("id", "condition", "predicates"):
        if names.count(name) > 1:
            raise SubscriptionError(f"the table has two columns named {name!r}")
    if "id" not in names:
        raise SubscriptionError(f"the table has no column 'id', only {', '.join(names)}")
    if ("condition" in names) == ("predicates" in names):
        raise SubscriptionError("the table needs 'condition' or 'predicates', and not both")
    if "condition" in names:
        kind = table.schema.field("condition").type
        if not (_is_text(kind) or (types.is_dictionary(kind) and _is_text(kind.value_type))):
            raise SubscriptionError(f"the column 'condition' is {kind}, expected string")
    else:
        _check_predicates(table.schema.field("predicates").type)
    return table


def _check_predicates(kind: pa.DataType) -> None:
    expected = "list<struct<attribute: string, comparator: string, value: double, text: string>>"
    wrong = SubscriptionError(f"the column 'predicates' is {kind}, expected {expected}")
    if not isinstance(kind, pa.ListType | pa.LargeListType):
        raise wrong
    struct = kind.value_type
    if not isinstance(struct, pa.StructType):
        raise wrong
    fields = {struct.field(i).name: struct.field(i).type for i in range(struct.num_fields)}
    if (
        not {"attribute", "comparator"}
        <= fields.keys()
        <= {
            "attribute",
            "comparator",
            "value",
            "text",
        }
    ):
        raise wrong
    for name, kept in fields.items():
        inner = kept.value_type if isinstance(kept, pa.DictionaryType) else kept
        fits = (
            types.is_floating(inner) or types.is_integer(inner)
            if name == "value"
            else _is_text(inner)
        )
        if not (fits or types.is_null(inner)):
            raise wrong


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _one(table: pa.Table, name: str) -> pa.Array:
    column = one_chunk(table.column(name))
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as why:  # for example bytes that are no UTF-8
        raise SubscriptionError(f"the column {name!r}: {why}") from None
    return column


def _ids(engine: Engine, table: pa.Table) -> list[Id]:
    column = _one(table, "id")
    kind = column.type
    if not (types.is_integer(kind) or _is_text(kind)):
        raise SubscriptionError(f"the column 'id' is {kind}, expected int64 or string")
    ids: list[Id] = column.to_pylist()
    seen: dict[Id, int] = {}
    whole = len(set(ids)) == len(ids) and None not in set(ids)
    known = engine.slot_table
    if whole and types.is_integer(kind) and not types.is_uint64(kind) and not len(known):
        return ids  # nothing left to check: spares a million calls on a fresh engine
    for row, id in enumerate(ids):
        if id is None:
            raise SubscriptionError(f"row {row}: the id is null")
        if id in seen:
            raise SubscriptionError(f"row {row}: the id {id!r} stands in row {seen[id]} already")
        seen[id] = row
        try:
            check_id(id)
        except SubscriptionError as why:
            raise SubscriptionError(f"row {row}: {why}") from None
        if id in known:
            raise SubscriptionError(f"row {row}: the id {id!r} is taken")
    return ids
