"""The NumPy yardstick: what a careful programmer writes in an afternoon, to measure by.

It is no straw man. Constants become ranks, so that the bounds of an attribute are two columns of
the narrowest integers that hold them. An event looks at the most selective attribute first for all
subscriptions, and at each further attribute only for those still left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import TamisError

Rows = NDArray[np.int64]
Narrow = NDArray[np.unsignedinteger]
_SAMPLE = 32  # events by which attributes are put in order


class _Column(NamedTuple):
    """Bounds of one attribute by subscription; `hole` is the rank that `!=` rules out.

    Ranks: 0 is null, 2i + 2 is constant i, odd numbers are what lies between constants. Whoever
    does not constrain the attribute accepts 0 as well; all others start above it, so null fails.
    """

    name: str
    constants: NDArray[np.float64] | NDArray[np.str_]
    low: Narrow
    high: Narrow
    hole: Narrow | None


class Yardstick:
    """Brute force over a bulk table of `predicates` with the six plain comparators."""

    def __init__(self, subscriptions: pa.Table, events: pa.Table) -> None:
        """`events` are a sample by which the attributes are ordered."""
        lists = subscriptions.column("predicates")
        lengths = pc.list_value_length(lists).to_numpy()
        flat = pa.table({"predicate": pc.list_flatten(lists)}).flatten()
        owner = np.repeat(np.arange(len(lengths)), lengths)
        names = np.asarray(flat.column("predicate.attribute").to_numpy(), np.str_)
        comparators = np.asarray(flat.column("predicate.comparator").to_numpy(), np.str_)
        self.size = len(lengths)
        self._columns = [
            _column(name, flat, np.flatnonzero(names == name), owner, comparators, self.size)
            for name in np.unique(names).tolist()
        ]
        ranks = self.encode(events.slice(0, _SAMPLE))
        passed = [
            np.mean([self._inside(column, rank, slice(None)).mean() for rank in of])
            for column, of in zip(self._columns, ranks.T, strict=True)
        ]
        self._columns = [self._columns[at] for at in np.argsort(passed).tolist()]

    def encode(self, events: pa.Table) -> NDArray[np.int64]:
        """Events as ranks, a row each; done beforehand, as it is for the matchers."""
        return np.stack([_ranks(column, events) for column in self._columns], axis=1)

    def match(self, event: NDArray[np.int64]) -> Rows:
        """The rows of the subscriptions that one encoded event satisfies."""
        first, *others = zip(self._columns, event.tolist(), strict=True)
        left = np.flatnonzero(self._inside(first[0], first[1], slice(None)))
        for column, rank in others:
            left = left[np.flatnonzero(self._inside(column, rank, left))]
        return left

    @staticmethod
    def _inside(column: _Column, rank: int, rows: Rows | slice) -> NDArray[np.bool_]:
        # The rank in the column's own type: otherwise NumPy would widen the whole column.
        value = column.low.dtype.type(rank)
        inside: NDArray[np.bool_] = (column.low[rows] <= value) & (value <= column.high[rows])
        if column.hole is not None:
            inside &= column.hole[rows] != value
        return inside


def _column(
    name: str,
    flat: pa.Table,
    mine: Rows,
    owner: Rows,
    comparators: NDArray[np.str_],
    size: int,
) -> _Column:
    texts = flat.column("predicate.text").take(pa.array(mine))
    if texts.null_count == len(texts):
        given = flat.column("predicate.value").take(pa.array(mine)).to_numpy()
    elif texts.null_count == 0:
        given = np.asarray(texts.to_numpy(), np.str_)
    else:
        raise TamisError(f"the yardstick takes {name!r} as numbers or as text, not as both")
    constants, index = np.unique(given, return_inverse=True)
    top = 2 * len(constants) + 1
    rank = 2 * index + 2
    nothing = top + 1  # a hole where no value ever lies
    kind = np.min_scalar_type(nothing)
    low, high = np.zeros(size, kind), np.full(size, top, kind)
    hole: Narrow | None = None
    np.maximum.at(low, owner[mine], np.ones(len(mine), kind))
    for comparator in np.unique(comparators[mine]).tolist():
        here = comparators[mine] == comparator
        who, at = owner[mine][here], rank[here].astype(kind)
        if comparator == "!=":
            hole = np.full(size, nothing, kind)
            if len(np.unique(who)) < len(who):
                raise TamisError(f"the yardstick takes one != a subscription, as to {name!r}")
            hole[who] = at
        elif comparator not in ("=", "<", "<=", ">", ">="):
            raise TamisError(f"the yardstick has no comparator {comparator!r}")
        if comparator in ("=", ">=", ">"):
            np.maximum.at(low, who, at + kind.type(comparator == ">"))
        if comparator in ("=", "<=", "<"):
            np.minimum.at(high, who, at - kind.type(comparator == "<"))
    return _Column(name, constants, low, high, hole)


def _ranks(column: _Column, events: pa.Table) -> NDArray[np.int64]:
    ranks = np.zeros(events.num_rows, np.int64)
    if column.name not in events.column_names:
        return ranks
    given = events.column(column.name)
    bound = np.flatnonzero(np.asarray(given.is_valid().to_numpy()))
    values = pc.drop_null(given).to_numpy()
    if column.constants.dtype.kind == "U":
        values = np.asarray(values, np.str_)
    at = np.searchsorted(column.constants, values)
    known = np.minimum(at, len(column.constants) - 1)
    ranks[bound] = np.where(column.constants[known] == values, 2 * known + 2, 2 * at + 1)
    return ranks
