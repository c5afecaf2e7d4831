"""The NumPy yardstick: the brute force that a careful programmer writes in an afternoon.

It is not a straw man. Constants become ranks, so that bounds are columns of narrow integers. An
event compares the most selective columns with all subscriptions, and masks in place, without new
memory. When few subscriptions are left, it compares each further column only with those.
`Yardstick` has two columns for each attribute. With thousands of attributes these would take
gigabytes, so `WideYardstick` has three columns for the first predicate of each subscription, three
for the second, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.errors import TamisError

Rows = NDArray[np.int64]
Narrow = NDArray[np.unsignedinteger]
_SAMPLE = 32  # events that decide the order of attributes
_FEW_LEFT = 1 / 16  # of the subscriptions: from here on, gathering costs less than masking
_WIDE = 64  # attributes; with more, most of each column would be empty


class _Scale(NamedTuple):
    """The ranks of one attribute: 0 is null, 2i + 2 is constant i, odd numbers lie between."""

    name: str
    constants: NDArray[Any]  # doubles or texts, ascending

    @property
    def top(self) -> int:
        return 2 * len(self.constants) + 1


class _Bounds(NamedTuple):
    """The bounds of some subscriptions, `rows`, on one attribute; `hole` is the rank of `!=`.

    Bounds start above 0, so null fails. No value has the rank `top + 1`, which means no hole.
    """

    scale: _Scale
    rows: Rows
    low: Rows
    high: Rows
    hole: Rows | None


class _AttributeColumn(NamedTuple):
    """The bounds of all subscriptions on one attribute; all ranks where there is no predicate."""

    scale: _Scale
    low: Narrow
    high: Narrow
    hole: Narrow | None


class Yardstick:
    """Brute force over a table of `predicates` with the six plain comparators."""

    def __init__(self, subscriptions: pa.Table, events: pa.Table) -> None:
        """`events` are a sample that decides the order of the attributes."""
        self.size = subscriptions.num_rows
        self._columns = [_column(each, self.size) for each in _bounds(subscriptions)]
        ranks = self.encode(events.slice(0, _SAMPLE))
        self._mask, self._holds = np.empty((2, self.size), np.bool_)
        passed = [
            np.mean([self._all_inside([(column, rank)]).mean() for rank in of])
            for column, of in zip(self._columns, ranks.T, strict=True)
        ]
        order = np.argsort(passed)
        self._columns = [self._columns[at] for at in order.tolist()]
        left = np.cumprod(np.array(passed)[order])  # as if attributes were independent
        self._masked = 1 + int((left[:-1] > _FEW_LEFT).sum())

    def encode(self, events: pa.Table) -> NDArray[np.int64]:
        """Events as rows of ranks. Events of matchers are encoded beforehand as well."""
        return np.stack([_ranks(column.scale, events) for column in self._columns], axis=1)

    def match(self, event: NDArray[np.int64]) -> Rows:
        """The rows of the subscriptions that match an encoded event."""
        compared = list(zip(self._columns, event.tolist(), strict=True))
        left = np.flatnonzero(self._all_inside(compared[: self._masked]))
        for column, rank in compared[self._masked :]:
            left = left.compress(self._inside(column, rank, left))
        return left

    def _all_inside(self, compared: Sequence[tuple[_AttributeColumn, int]]) -> NDArray[np.bool_]:
        """A mask of the subscriptions that accept these ranks. The next call overwrites it."""
        mask, holds = self._mask, self._holds
        mask.fill(True)
        for column, rank in compared:
            # The rank has the type of the column, or NumPy would widen the whole column.
            value = column.low.dtype.type(rank)
            mask &= np.less_equal(column.low, value, out=holds)
            mask &= np.greater_equal(column.high, value, out=holds)
            if column.hole is not None:
                mask &= np.not_equal(column.hole, value, out=holds)
        return mask

    @staticmethod
    def _inside(column: _AttributeColumn, rank: int, rows: Rows) -> NDArray[np.bool_]:
        value = column.low.dtype.type(rank)
        inside = column.low.take(rows) <= value
        inside &= column.high.take(rows) >= value
        if column.hole is not None:
            inside &= column.hole.take(rows) != value
        return inside


class _PredicateColumn(NamedTuple):
    """The k-th predicate of all subscriptions. A subscription with fewer accepts anything."""

    attribute: NDArray[np.intp]
    low: Narrow
    high: Narrow
    hole: Narrow | None


class WideYardstick(Yardstick):
    """Brute force for many attributes: the most selective predicate of each subscription first.

    A subscription is a row of predicates, ordered by selectivity. An event is an array of ranks by
    attribute; a column of attributes gathers the ranks to compare. Attributes are machine words,
    because every gather would widen narrower ones, which more than doubles its time.
    """

    def __init__(self, subscriptions: pa.Table, events: pa.Table) -> None:
        """`events` are a sample that decides the order of the predicates."""
        self.size = subscriptions.num_rows
        bounds = list(_bounds(subscriptions))
        self._scales = [each.scale for each in bounds]
        self._top = max((scale.top for scale in self._scales), default=0)
        self._places = list(self._laid_out(bounds, events)) if bounds else []

    def encode(self, events: pa.Table) -> NDArray[np.int64]:
        """Events as ranks by attribute. The last column stands for no attribute."""
        kind = np.min_scalar_type(self._top + 1)
        found = np.zeros((events.num_rows, len(self._scales) + 1), kind)
        for at, scale in enumerate(self._scales):
            found[:, at] = _ranks(scale, events)
        return found

    def match(self, event: NDArray[np.int64]) -> Rows:
        """The rows of the subscriptions that match an encoded event."""
        left: Rows | None = None
        for place in self._places:
            here = place if left is None else _picked(place, left)
            ranks = event.take(here.attribute)
            inside = (here.low <= ranks) & (ranks <= here.high)
            if here.hole is not None:
                inside &= here.hole != ranks
            left = np.flatnonzero(inside) if left is None else left[np.flatnonzero(inside)]
        return np.arange(self.size) if left is None else left

    def _laid_out(self, bounds: Sequence[_Bounds], events: pa.Table) -> Iterator[_PredicateColumn]:
        attribute = np.repeat(np.arange(len(bounds)), [len(each.rows) for each in bounds])
        row, low, high = (
            np.concatenate(part)
            for part in zip(*((each.rows, each.low, each.high) for each in bounds), strict=True)
        )
        hole = np.concatenate([_holes(each, self._top + 1) for each in bounds])
        share = (self.encode(events)[:, :-1] > 0).mean(axis=0)
        tops = np.array([scale.top for scale in self._scales])
        # Assumes that all ranks are equally likely, which orders well enough.
        chance = share[attribute] * (high - low + 1) / tops[attribute]
        order = np.lexsort((chance, row))
        row = row[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        kind = np.min_scalar_type(self._top + 1)
        for number in range(int(place.max()) + 1):
            here = order[place == number]
            who = row[place == number]
            some = bool((hole[here] <= self._top).any())
            yield _PredicateColumn(
                _full(self.size, len(bounds), who, attribute[here], np.dtype(np.intp)),
                _full(self.size, 0, who, low[here], kind),
                _full(self.size, self._top, who, high[here], kind),
                _full(self.size, self._top + 1, who, hole[here], kind) if some else None,
            )


def make_yardstick(subscriptions: pa.Table, events: pa.Table) -> Yardstick:
    """The yardstick that suits the number of attributes."""
    names = pc.count_distinct(_flat(subscriptions).column("predicate.attribute")).as_py()
    return (WideYardstick if names > _WIDE else Yardstick)(subscriptions, events)


def _flat(subscriptions: pa.Table) -> pa.Table:
    """All predicates in one column."""
    lists = subscriptions.column("predicates")
    return pa.table({"predicate": pc.list_flatten(lists)}).flatten()


def _bounds(subscriptions: pa.Table) -> Iterator[_Bounds]:
    """The bounds on each attribute, by name."""
    flat = _flat(subscriptions)
    lengths = pc.list_value_length(subscriptions.column("predicates")).to_numpy()
    owner = np.repeat(np.arange(len(lengths)), lengths)
    names, name = _coded(flat.column("predicate.attribute"))
    signs, sign = _coded(flat.column("predicate.comparator"))
    by_name = np.argsort(name, kind="stable")
    starts = np.searchsorted(name[by_name], np.arange(len(names) + 1)).tolist()
    for at in sorted(range(len(names)), key=names.__getitem__):
        mine = by_name[starts[at] : starts[at + 1]]
        given = flat.select(["predicate.value", "predicate.text"]).take(pa.array(mine))
        masks = {signs[code]: sign[mine] == code for code in np.unique(sign[mine]).tolist()}
        yield _bounds_of(names[at], given, owner[mine], masks)


def _coded(column: pa.ChunkedArray) -> tuple[list[str], Rows]:
    """The distinct texts of a column, and the index of each row's text."""
    encoded = column.combine_chunks().dictionary_encode()
    words: list[str] = encoded.dictionary.to_pylist()
    return words, np.asarray(encoded.indices.to_numpy())


def _bounds_of(
    name: str, given: pa.Table, owner: Rows, masks: dict[str, NDArray[np.bool_]]
) -> _Bounds:
    constants, index = np.unique(_constants(name, given), return_inverse=True)
    rank = 2 * index + 2
    top = 2 * len(constants) + 1
    rows, who = np.unique(owner, return_inverse=True)
    low, high = np.ones(len(rows), np.int64), np.full(len(rows), top)
    hole: Rows | None = None
    for comparator, here in masks.items():
        if comparator == "!=":
            hole = np.full(len(rows), top + 1)
            if len(np.unique(who[here])) < len(who[here]):
                raise TamisError(f"the yardstick takes one != on {name!r} for each subscription")
            hole[who[here]] = rank[here]
        elif comparator not in ("=", "<", "<=", ">", ">="):
            raise TamisError(f"the yardstick has no comparator {comparator!r}")
        if comparator in ("=", ">=", ">"):
            np.maximum.at(low, who[here], rank[here] + (comparator == ">"))
        if comparator in ("=", "<=", "<"):
            np.minimum.at(high, who[here], rank[here] - (comparator == "<"))
    return _Bounds(_Scale(name, constants), rows, low, high, hole)


def _constants(name: str, given: pa.Table) -> NDArray[Any]:
    texts = given.column("predicate.text")
    if texts.null_count == len(texts):
        return np.asarray(given.column("predicate.value").to_numpy())
    if texts.null_count == 0:
        return np.asarray(texts.to_numpy(), np.str_)
    raise TamisError(f"the yardstick takes {name!r} as numbers or as text, not both")


def _column(bounds: _Bounds, size: int) -> _AttributeColumn:
    scale, rows, low, high, hole = bounds
    kind = np.min_scalar_type(scale.top + 1)
    return _AttributeColumn(
        scale,
        _full(size, 0, rows, low, kind),
        _full(size, scale.top, rows, high, kind),
        None if hole is None else _full(size, scale.top + 1, rows, hole, kind),
    )


def _holes(bounds: _Bounds, nowhere: int) -> Rows:
    """The holes of one attribute. `nowhere` is a rank that no attribute has."""
    if bounds.hole is None:
        return np.full(len(bounds.rows), nowhere)
    return np.where(bounds.hole > bounds.scale.top, nowhere, bounds.hole)


def _full(size: int, default: int, rows: Rows, values: Rows, kind: np.dtype[Any]) -> NDArray[Any]:
    """A column of `default`, with `values` in some rows."""
    made = np.full(size, default, kind)
    made[rows] = values
    return made


def _picked(place: _PredicateColumn, rows: Rows) -> _PredicateColumn:
    attribute, low, high, hole = place
    picked = None if hole is None else hole.take(rows)
    return _PredicateColumn(attribute.take(rows), low.take(rows), high.take(rows), picked)


def _ranks(scale: _Scale, events: pa.Table) -> NDArray[np.int64]:
    ranks = np.zeros(events.num_rows, np.int64)
    place = events.schema.get_field_index(scale.name)
    if place < 0:
        return ranks
    given = events.column(place)
    bound = np.flatnonzero(np.asarray(given.is_valid().to_numpy()))
    values = pc.drop_null(given).to_numpy()
    if scale.constants.dtype.kind == "U":
        values = np.asarray(values, np.str_)
    at = np.searchsorted(scale.constants, values)
    known = np.minimum(at, len(scale.constants) - 1)
    ranks[bound] = np.where(scale.constants[known] == values, 2 * known + 2, 2 * at + 1)
    return ranks
