"""Bulk load: a table of subscriptions, all or nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.encode.arrow import one_chunk
from tamis.encode.arrow_checks import checked_table
from tamis.encode.bulk_terms import BulkTerms
from tamis.encode.columns import is_text
from tamis.encode.plain_conditions import none_plain, read_plain
from tamis.engine.clause_placement import place_clauses, put_terms
from tamis.engine.compiled_condition import CompiledClause, CompiledCondition
from tamis.engine.condition_sources import ConditionSource, TableRow, check_predicates
from tamis.engine.ids import Id
from tamis.engine.slot_table import check_id
from tamis.errors import ConditionError, SchemaError, SubscriptionError
from tamis.files.arrays import Int64s
from tamis.language import parse, to_text
from tamis.language.dialects.registry import NATIVE
from tamis.language.limits import PREDICATE_LIMIT, TEXT_LIMIT
from tamis.language.pitfalls import doubtful_words
from tamis.model.condition import (
    COMPARATORS,
    LISTS,
    STATES,
    SYNONYMS,
    And,
    Condition,
    Constant,
    Predicate,
)
from tamis.model.schema import Schema
from tamis.model.times.moments import NOW_WORDS

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

Progress = Callable[[int, int], object] | None
_STEP = 1000  # rows between two calls of progress
_MANY = 40  # from this many conditions on, reading them with Arrow pays


def subscribe_table(
    engine: Engine, given: Any, progress: Progress, language: str, stored: bool
) -> int:
    """Add all subscriptions of a table. Nothing changes until every row is checked."""
    table = _table(given)
    ids = _ids(engine, table)
    if not ids:
        return 0
    name = "condition" if "condition" in table.column_names else "predicates"
    column, rows = _one(table, name), len(ids)
    priorities = _priorities(table)
    report = progress or (lambda done, rows: None)
    lists = column
    if name == "condition":
        if language == NATIVE and rows >= _MANY:
            doubtful = NOW_WORDS if stored else doubtful_words(engine.schema)
            lists = read_plain(column, TEXT_LIMIT, lambda done: report(done, rows), doubtful)
        else:
            lists = none_plain(rows)
    assert isinstance(lists, pa.ListArray | pa.LargeListArray)
    if engine.schema.is_open:
        mention(engine, lists)
    bulk = BulkTerms(engine.encoder, lists, PREDICATE_LIMIT)
    compiled: list[CompiledCondition] = []
    with no_collection():
        for done, row in enumerate(bulk.slow.tolist()):
            if done % _STEP == 0:
                report(len(bulk.fast) + done, rows)
            compiled.append(_compile(engine, name, column[row].as_py(), row, language, stored))
    if name == "condition" and language != NATIVE:  # the engine keeps the translated conditions
        texts = [to_text(each.source) for each in compiled if not isinstance(each.source, str)]
        column = pa.array(texts, pa.large_string())
    report(rows, rows)  # if it raises, nothing has changed yet
    with no_collection():
        _add(engine, ids, bulk, [each.clauses for each in compiled], column, priorities)
    return rows


@contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage: 100,000 conditions with residuals are millions of objects, all in use.

    To visit them again and again takes a third of the time.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def mention(engine: Engine, lists: pa.ListArray | pa.LargeListArray) -> None:
    """Let the attributes of all predicates join an open schema at once."""
    names = pc.struct_field(lists.flatten(), "attribute").unique().drop_null().to_pylist()
    with suppress(SchemaError):  # a name that no event can have: its row is refused
        schema = engine.schema.mentioning(names)
        if schema is not engine.schema:
            engine.encoder.extend(schema)


def _compile(
    engine: Engine, name: str, given: Any, row: int, language: str, stored: bool
) -> CompiledCondition:
    try:
        if given is None:
            raise ConditionError(f"the row has no {name}: it is null")
        condition = given if name == "condition" else condition_of(given, engine.schema)
        if condition is None:
            return CompiledCondition("", [CompiledClause()])
        return engine.compile(condition, language, stored=stored)
    except ConditionError as error:
        raise error.at_row(row) from None


def _add(
    engine: Engine,
    ids: list[Id],
    bulk: BulkTerms,
    compiled: list[list[CompiledClause]],
    column: pa.Array,
    priorities: Int64s | None,
) -> None:
    """Add the rows that were encoded as arrays, and those that were compiled one by one."""
    counts = np.ones(len(ids), np.int64)
    counts[bulk.slow] = [len(each) for each in compiled]
    slots = engine.slot_table.reserve(int(counts.sum()))
    firsts = np.cumsum(counts) - counts
    rows = np.repeat(np.arange(len(ids)), counts)
    late = np.isin(rows, bulk.slow)
    clauses = [clause for each in compiled for clause in each]
    early = slots[firsts[bulk.fast]]
    engine.torn = True
    moved = engine.encoder.count_texts(bulk.text_uses())
    put_terms(engine, early, bulk.terms(), moved)
    place_clauses(engine, slots[late], clauses, slots[firsts[rows[late]]], undo=early)
    engine.slot_table.add_table(ids, slots, counts, column, priorities)
    engine.torn = False


def _table(given: Any) -> pa.Table:
    table = checked_table(given, "an Arrow table of subscriptions", SubscriptionError)
    names = table.column_names
    for name in ("id", "condition", "predicates", "priority"):
        if names.count(name) > 1:
            raise SubscriptionError(f"the table has two columns named {name!r}")
    if "id" not in names:
        raise SubscriptionError(f"the table has no column 'id', only {', '.join(names)}")
    if ("condition" in names) == ("predicates" in names):
        raise SubscriptionError("the table needs either 'condition' or 'predicates'")
    if "condition" in names:
        kind = table.schema.field("condition").type
        if not is_text(kind):
            raise SubscriptionError(f"the column 'condition' is {kind}, expected string")
    else:
        check_predicates(table.schema.field("predicates").type)
    return table


def _one(table: pa.Table, name: str) -> pa.Array:
    return one_chunk(table.column(name))


def _priorities(table: pa.Table) -> Int64s | None:
    """The column of priorities, if there is one; null is 0."""
    if "priority" not in table.column_names:
        return None
    column = _one(table, "priority")
    if not (types.is_integer(column.type) or types.is_null(column.type)):
        raise SubscriptionError(f"the column 'priority' is {column.type}, expected int64")
    try:
        found: Int64s = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as why:
        raise SubscriptionError(f"the column 'priority': {why}") from None
    return found


def _ids(engine: Engine, table: pa.Table) -> list[Id]:
    column = _one(table, "id")
    kind = column.type
    if not (types.is_integer(kind) or (is_text(kind) and not types.is_dictionary(kind))):
        raise SubscriptionError(f"the column 'id' is {kind}, expected int64 or string")
    ids: list[Id] = column.to_pylist()
    seen: dict[Id, int] = {}
    whole = len(set(ids)) == len(ids) and None not in set(ids)
    known = engine.slot_table
    if whole and types.is_integer(kind) and not types.is_uint64(kind) and not len(known):
        return ids  # nothing left to check: saves a million calls on a fresh engine
    for row, id in enumerate(ids):
        if id is None:
            raise SubscriptionError(f"row {row}: the id is null")
        if id in seen:
            raise SubscriptionError(f"row {row}: the id {id!r} is in row {seen[id]} already")
        seen[id] = row
        try:
            check_id(id)
        except SubscriptionError as why:
            raise SubscriptionError(f"row {row}: {why}") from None
        if id in known:
            raise SubscriptionError(f"row {row}: the id {id!r} is taken")
    return ids


def parsed(source: ConditionSource, schema: Schema) -> Condition | None:
    """A condition as it was given, parsed; None if it has no predicates."""
    if isinstance(source, str):
        return parse(source)
    if not isinstance(source, TableRow):
        return source
    given = source.column[source.row].as_py()
    if not isinstance(given, str):
        return condition_of(given, schema)
    return parse(given, limit=None)  # a condition built by a program may be longer as text


def condition_of(
    predicates: Sequence[Mapping[str, Any] | None], schema: Schema
) -> Condition | None:
    """The conjunction of the predicates; None for an empty list, which matches every event."""
    parts = tuple(_predicate(given, schema) for given in predicates)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(parts)


def _predicate(given: Mapping[str, Any] | None, schema: Schema) -> Predicate:
    if given is None:
        raise ConditionError("a predicate is null")
    attribute, comparator = given["attribute"], given["comparator"]
    if attribute is None or comparator is None:
        raise ConditionError("a predicate needs an attribute and a comparator")
    comparator = SYNONYMS.get(comparator, comparator)
    value, text = given.get("value"), given.get("text")
    if comparator == "between" or comparator in LISTS:
        raise ConditionError(
            f"{comparator!r} takes several values; a predicate of a table has one",
            hint="write a condition in text, or a range as two predicates",
        )
    if comparator not in COMPARATORS:
        raise ConditionError(
            f"unknown comparator {comparator!r}", hint="known: " + ", ".join(COMPARATORS)
        )
    if value is not None and text is not None:
        raise ConditionError(
            f"the predicate on {attribute!r} has a value and a text; one of them must be null"
        )
    constant = value if text is None else text
    if comparator in STATES:
        return Predicate(attribute, comparator, constant)
    if constant is None:
        raise ConditionError(f"the predicate on {attribute!r} has neither a value nor a text")
    return Predicate(attribute, comparator, _constant(constant, attribute, schema))


def _constant(given: float | str, attribute: str, schema: Schema) -> Constant:
    domain = schema.attributes.get(attribute)
    if domain is not None and domain.kind == "boolean" and given in ("true", "false"):
        return given == "true"
    if isinstance(given, float) and given.is_integer() and abs(given) < 2**63:
        return int(given)
    return given
