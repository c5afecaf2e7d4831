"""Plain NumPy matching of bulk tables, predicate by predicate, to count workloads by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_COMPARE = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Predicates:
    """The predicates of a subscriptions table, flat, with the number of their subscription."""

    def __init__(self, subscriptions: pa.Table) -> None:
        lists = subscriptions["predicates"].combine_chunks()
        self.lengths = pc.list_value_length(lists).to_numpy()
        self.owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        flat = pc.list_flatten(lists)
        self.attribute = pc.struct_field(flat, "attribute").dictionary_encode()
        self.comparator = pc.struct_field(flat, "comparator").to_numpy(zero_copy_only=False)
        self.value = pc.struct_field(flat, "value")
        self.text = pc.struct_field(flat, "text")

    @property
    def names(self) -> npt.NDArray[np.object_]:
        return np.asarray(self.attribute.to_numpy(zero_copy_only=False))


def _numbers(column: pa.Array, texts: dict[str, int]) -> npt.NDArray[np.float64]:
    """A column as doubles, NaN where null; texts by their code, which only `=` may compare."""
    if pa.types.is_string(column.type):
        codes = [None if t is None else texts.setdefault(t, len(texts)) for t in column.to_pylist()]
        column = pa.array(codes, pa.float64())
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))


def matches(subscriptions: pa.Table, events: pa.Table) -> Iterator[npt.NDArray[np.bool_]]:
    """For each event, which subscriptions it matches. A missing value satisfies nothing."""
    predicates = Predicates(subscriptions)
    texts: dict[str, int] = {}
    constant = _numbers(predicates.value, texts)
    if predicates.text.null_count < len(predicates.text):
        coded = _numbers(predicates.text, texts)
        constant = np.where(np.isnan(constant), coded, constant)

    names = predicates.attribute.dictionary.to_pylist()
    missing = pa.nulls(events.num_rows, pa.float64())
    columns = [events[n].combine_chunks() if n in events.column_names else missing for n in names]
    values = np.stack([_numbers(column, texts) for column in columns], axis=1)

    attribute = predicates.attribute.indices.to_numpy()
    groups: list[tuple[Any, Any, Any, Any]] = []
    for comparator, compare in _COMPARE.items():
        here = np.flatnonzero(predicates.comparator == comparator)
        groups.append((compare, attribute[here], constant[here], predicates.owner[here]))
    for event in values:
        bound = ~np.isnan(event)
        matched = np.ones(len(predicates.lengths), dtype=np.bool_)
        for compare, at, against, owner in groups:
            matched[owner[~(compare(event[at], against) & bound[at])]] = False
        yield matched


def match_rate(subscriptions: pa.Table, events: pa.Table) -> float:
    """Share of the subscriptions that an event matches, in the mean."""
    return float(np.mean([matched.mean() for matched in matches(subscriptions, events)]))
