"""The NumPy yardstick: what a careful programmer writes in an afternoon, to measure by.

It is no straw man. Constants become ranks, so that bounds are columns of the narrowest integers
that hold them; an event looks at what is most selective first. As long as many subscriptions are
left, all are compared and masked in place, without new memory; at anything further it looks only
for those still left. There are two forms. `Yardstick` has two columns for
each attribute. With thousands of attributes those would be gigabytes that say nothing, so
`WideYardstick` has three for the first predicate of each subscription, three for the second, …
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
_SAMPLE = 32  # events by which attributes are put in order
_MASKED = 1 / 16  # share of subscriptions left from which on it is cheaper to gather those
_WIDE = 64  # attributes; beyond, most of a column for each would say nothing


class _Scale(NamedTuple):
    """The ranks of one attribute: 0 is null, 2i + 2 is constant i, odd numbers lie between."""

    name: str
    constants: NDArray[Any]  # doubles or texts, ascending

    @property
    def top(self) -> int:
        return 2 * len(self.constants) + 1


class _Bounds(NamedTuple):
    """What some subscriptions, `rows`, ask of one attribute; `hole` is the rank `!=` rules out.

    Bounds start above 0, so null fails. No value has the rank `top + 1`: a hole there is none.
    """

    scale: _Scale
    rows: Rows
    low: Rows
    high: Rows
    hole: Rows | None


class _Column(NamedTuple):
    """The bounds of one attribute for every subscription: all ranks where it asks nothing."""

    scale: _Scale
    low: Narrow
    high: Narrow
    hole: Narrow | None


class Yardstick:
    """Brute force over a bulk table of `predicates` with the six plain comparators."""

    def __init__(self, subscriptions: pa.Table, events: pa.Table) -> None:
        """`events` are a sample by which the attributes are ordered."""
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
        left = np.cumprod(np.array(passed)[order])  # as if one had nothing to do with another
        self._masked = 1 + int((left[:-1] > _MASKED).sum())

    def encode(self, events: pa.Table) -> NDArray[np.int64]:
        """Events as ranks, a row each; done beforehand, as it is for the matchers."""
        return np.stack([_ranks(column.scale, events) for column in self._columns], axis=1)

    def match(self, event: NDArray[np.int64]) -> Rows:
        """The rows of the subscriptions that one encoded event satisfies."""
        asked = list(zip(self._columns, event.tolist(), strict=True))
        left = np.flatnonzero(self._all_inside(asked[: self._masked]))
        for column, rank in asked[self._masked :]:
            left = left.compress(self._inside(column, rank, left))
        return left

    def _all_inside(self, asked: Sequence[tuple[_Column, int]]) -> NDArray[np.bool_]:
        """Of all subscriptions, those that accept these ranks; in memory that is used again."""
        mask, holds = self._mask, self._holds
        mask.fill(True)
        for column, rank in asked:
            # The rank in the column's own type: otherwise NumPy would widen the whole column.
            value = column.low.dtype.type(rank)
            mask &= np.less_equal(column.low, value, out=holds)
            mask &= np.greater_equal(column.high, value, out=holds)
            if column.hole is not None:
                mask &= np.not_equal(column.hole, value, out=holds)
        return mask

    @staticmethod
    def _inside(column: _Column, rank: int, rows: Rows) -> NDArray[np.bool_]:
        value = column.low.dtype.type(rank)
        inside = column.low.take(rows) <= value
        inside &= column.high.take(rows) >= value
        if column.hole is not None:
            inside &= column.hole.take(rows) != value
        return inside


class _Place(NamedTuple):
    """The k-th predicate of every subscription; whoever has fewer accepts anything there."""

    attribute: NDArray[np.intp]
    low: Narrow
    high: Narrow
    hole: Narrow | None


class WideYardstick(Yardstick):
    """The same for many attributes: the most selective predicate of each subscription first.

    A subscription is a row of predicates, by how likely they are to hold; an event is an array of
    ranks by attribute, from which a column of attributes gathers what to compare. Attributes are
    kept as machine words: narrower ones would be widened again by every gather, which more than
    doubles its time.
    """

    def __init__(self, subscriptions: pa.Table, events: pa.Table) -> None:
        """`events` are a sample by which the predicates are ordered."""
        self.size = subscriptions.num_rows
        bounds = list(_bounds(subscriptions))
        self._scales = [each.scale for each in bounds]
        self._top = max((scale.top for scale in self._scales), default=0)
        self._places = list(self._laid_out(bounds, events)) if bounds else []

    def encode(self, events: pa.Table) -> NDArray[np.int64]:
        """Events as ranks by attribute. The last stands for no attribute and is never bound."""
        kind = np.min_scalar_type(self._top + 1)
        found = np.zeros((events.num_rows, len(self._scales) + 1), kind)
        for at, scale in enumerate(self._scales):
            found[:, at] = _ranks(scale, events)
        return found

    def match(self, event: NDArray[np.int64]) -> Rows:
        """The rows of the subscriptions that one encoded event satisfies."""
        left: Rows | None = None
        for place in self._places:
            here = place if left is None else _picked(place, left)
            ranks = event.take(here.attribute)
            inside = (here.low <= ranks) & (ranks <= here.high)
            if here.hole is not None:
                inside &= here.hole != ranks
            left = np.flatnonzero(inside) if left is None else left[np.flatnonzero(inside)]
        return np.arange(self.size) if left is None else left

    def _laid_out(self, bounds: Sequence[_Bounds], events: pa.Table) -> Iterator[_Place]:
        attribute = np.repeat(np.arange(len(bounds)), [len(each.rows) for each in bounds])
        row, low, high = (
            np.concatenate(part)
            for part in zip(*((each.rows, each.low, each.high) for each in bounds), strict=True)
        )
        hole = np.concatenate([_holes(each, self._top + 1) for each in bounds])
        share = (self.encode(events)[:, :-1] > 0).mean(axis=0)
        tops = np.array([scale.top for scale in self._scales])
        # As if every rank were as likely as any other: that orders well enough.
        chance = share[attribute] * (high - low + 1) / tops[attribute]
        order = np.lexsort((chance, row))
        row = row[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        kind = np.min_scalar_type(self._top + 1)
        for number in range(int(place.max()) + 1):
            here = order[place == number]
            who = row[place == number]
            some = bool((hole[here] <= self._top).any())
            yield _Place(
                _full(self.size, len(bounds), who, attribute[here], np.dtype(np.intp)),
                _full(self.size, 0, who, low[here], kind),
                _full(self.size, self._top, who, high[here], kind),
                _full(self.size, self._top + 1, who, hole[here], kind) if some else None,
            )


def make_yardstick(subscriptions: pa.Table, events: pa.Table) -> Yardstick:
    """The form that suits the number of attributes."""
    names = pc.count_distinct(_flat(subscriptions).column("predicate.attribute")).as_py()
    return (WideYardstick if names > _WIDE else Yardstick)(subscriptions, events)


def _flat(subscriptions: pa.Table) -> pa.Table:
    """All predicates, one below the other."""
    lists = subscriptions.column("predicates")
    return pa.table({"predicate": pc.list_flatten(lists)}).flatten()


def _bounds(subscriptions: pa.Table) -> Iterator[_Bounds]:
    """What is asked of each attribute, by name."""
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
        asked = {signs[code]: sign[mine] == code for code in np.unique(sign[mine]).tolist()}
        yield _bounds_of(names[at], given, owner[mine], asked)


def _coded(column: pa.ChunkedArray) -> tuple[list[str], Rows]:
    """The distinct texts of a column, and which one each row has."""
    encoded = column.combine_chunks().dictionary_encode()
    words: list[str] = encoded.dictionary.to_pylist()
    return words, np.asarray(encoded.indices.to_numpy())


def _bounds_of(
    name: str, given: pa.Table, owner: Rows, asked: dict[str, NDArray[np.bool_]]
) -> _Bounds:
    constants, index = np.unique(_constants(name, given), return_inverse=True)
    rank = 2 * index + 2
    top = 2 * len(constants) + 1
    rows, who = np.unique(owner, return_inverse=True)
    low, high = np.ones(len(rows), np.int64), np.full(len(rows), top)
    hole: Rows | None = None
    for comparator, here in asked.items():
        if comparator == "!=":
            hole = np.full(len(rows), top + 1)
            if len(np.unique(who[here])) < len(who[here]):
                raise TamisError(f"the yardstick takes one != a subscription, as to {name!r}")
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
    raise TamisError(f"the yardstick takes {name!r} as numbers or as text, not as both")


def _column(bounds: _Bounds, size: int) -> _Column:
    scale, rows, low, high, hole = bounds
    kind = np.min_scalar_type(scale.top + 1)
    return _Column(
        scale,
        _full(size, 0, rows, low, kind),
        _full(size, scale.top, rows, high, kind),
        None if hole is None else _full(size, scale.top + 1, rows, hole, kind),
    )


def _holes(bounds: _Bounds, nowhere: int) -> Rows:
    """The holes of one attribute among those of others, which have ranks of their own."""
    if bounds.hole is None:
        return np.full(len(bounds.rows), nowhere)
    return np.where(bounds.hole > bounds.scale.top, nowhere, bounds.hole)


def _full(size: int, usual: int, rows: Rows, values: Rows, kind: np.dtype[Any]) -> NDArray[Any]:
    """A column of `usual`, but for some rows."""
    made = np.full(size, usual, kind)
    made[rows] = values
    return made


def _picked(place: _Place, rows: Rows) -> _Place:
    attribute, low, high, hole = place
    picked = None if hole is None else hole.take(rows)
    return _Place(attribute.take(rows), low.take(rows), high.take(rows), picked)


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
