"""From NumPy columns to the Arrow tables that an engine loads.

Subscriptions: `id` and `predicates`, a list of (attribute, comparator, value, text) of which
exactly one of value and text is set. A range is two predicates. Events: a column per attribute,
null where an event does not bind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workload.draw import Bools, Floats, Ints

COMPARATORS = ("=", "!=", "<", "<=", ">", ">=")
EQ, NE, LT, LE, GT, GE = range(len(COMPARATORS))

PREDICATE = pa.struct(
    [
        ("attribute", pa.string()),
        ("comparator", pa.string()),
        ("value", pa.float64()),
        ("text", pa.string()),
    ]
)
SUBSCRIPTIONS_SCHEMA = pa.schema([("id", pa.int64()), ("predicates", pa.list_(PREDICATE))])


def words(codes: Ints, vocabulary: Sequence[str], absent: Bools | None = None) -> pa.Array:
    """The strings that `codes` number, null where `absent`."""
    # Narrow codes: for tens of millions of predicates the indexes are most of the memory.
    narrow = np.int8 if len(vocabulary) <= np.iinfo(np.int8).max else np.int32
    indices = pa.array(codes.astype(narrow), mask=absent)
    encoded = pa.DictionaryArray.from_arrays(indices, pa.array(vocabulary, pa.string()))
    return encoded.dictionary_decode()


def keep(texts: pa.Array, kept: Bools) -> pa.Array:
    """The texts, null where they are not kept."""
    kept_or_null: pa.Array = pc.if_else(pa.array(kept), texts, pa.scalar(None, pa.string()))
    return kept_or_null


def joined(separator: str, *columns: pa.Array | str) -> pa.Array:
    """The columns' texts, row by row, with the separator between those that are not null."""
    texts: pa.Array = pc.binary_join_element_wise(*columns, separator, null_handling="skip")
    return texts


def conditions_table(conditions: pa.Array) -> pa.Table:
    """A table of subscriptions from conditions in text, with the ids 0, 1, 2, …"""
    return pa.table({"id": np.arange(len(conditions), dtype=np.int64), "condition": conditions})


def moments(start: datetime, minutes: Ints) -> pa.Array:
    """Times so many minutes after the start."""
    begin = np.datetime64(start.replace(tzinfo=None), "us")
    return pa.array(begin + minutes.astype("timedelta64[m]"), pa.timestamp("us", tz="UTC"))


def subscriptions_table(
    lengths: Ints,
    names: Sequence[str],
    attribute: Ints,
    comparator: Ints,
    value: Floats,
    text: tuple[Ints, Sequence[str]] | None = None,
) -> pa.Table:
    """A table of subscriptions with `lengths[i]` predicates each and the ids 0, 1, 2, …

    The other columns hold all predicates, one after the other: `attribute` indexes `names`,
    `comparator` indexes `COMPARATORS`. `text` is codes and their vocabulary, with -1 where a
    predicate compares a number; where it is 0 or more, `value` is ignored.
    """
    count = len(value)
    if text is None:
        values, texts = pa.array(value), pa.nulls(count, pa.string())
    else:
        codes, vocabulary = text
        is_text = codes >= 0
        values = pa.array(value, mask=is_text)
        texts = words(np.where(is_text, codes, 0), vocabulary, absent=~is_text)
    predicates = pa.StructArray.from_arrays(
        [words(attribute, names), words(comparator, COMPARATORS), values, texts],
        fields=list(PREDICATE),
    )
    lists = pa.ListArray.from_arrays(_offsets(lengths), predicates)
    return pa.Table.from_arrays(
        [pa.array(np.arange(len(lengths), dtype=np.int64)), lists], schema=SUBSCRIPTIONS_SCHEMA
    )


def _offsets(lengths: Ints) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def conditions(subscriptions: pa.Table) -> pa.Array:
    """The subscriptions of a table as conditions in text. Each has at least one predicate.

    Numbers are written so that the same doubles are read again. Texts must not have quotes or
    backslashes; the workloads have none.
    """
    lists = subscriptions.column("predicates").combine_chunks()
    assert isinstance(lists, pa.ListArray)
    structs = lists.flatten()
    assert isinstance(structs, pa.StructArray)
    attribute, comparator, value, text = structs.flatten()
    quoted = pc.binary_join_element_wise('"', text, '"', "")  # null where the text is
    constant = pc.coalesce(quoted, value.cast(pa.string()))
    predicates = pc.binary_join_element_wise(attribute, comparator, constant, " ")
    lengths = np.asarray(lists.value_lengths().to_numpy())
    return pc.binary_join(ragged(lengths, predicates), " and ")


def ragged(lengths: Ints, values: pa.Array, absent: Bools | None = None) -> pa.Array:
    """Lists of `lengths[i]` values each, null where `absent` (`lengths` is 0 there)."""
    mask = None if absent is None else pa.array(absent)
    return pa.ListArray.from_arrays(_offsets(lengths), values, mask=mask)


def events_table(columns: Mapping[str, Any]) -> pa.Table:
    """A table of events from NumPy or Arrow columns; integers become int64."""
    arrays = [
        pa.array(column.astype(np.int64))
        if isinstance(column, np.ndarray) and np.issubdtype(column.dtype, np.integer)
        else pa.array(column)
        for column in columns.values()
    ]
    return pa.table(arrays, names=list(columns))


def as_dicts(events: pa.Table) -> list[dict[str, Any]]:
    """Events as dictionaries, as a publisher would send them in JSON.

    Attributes that an event does not bind are left out; timestamps are ISO 8601 text.
    """
    return [
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in row.items()
            if value is not None
        }
        for row in events.to_pylist()
    ]
