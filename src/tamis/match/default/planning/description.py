"""The description of a plan: actual counts and expected costs.

Clauses, buckets and bytes are counted. Costs come from the same function that made the decisions,
for all clauses or, if there are very many, for a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MatcherError
from tamis.files.arrays import Bools, Floats, Int64s, flatten
from tamis.index.clauses import ClauseStorage
from tamis.index.kernel import kernel
from tamis.match.default.planning.choices import choices, place_of
from tamis.match.default.planning.survey import Expected, expect
from tamis.match.default.structure import routes
from tamis.match.default.structure.buckets import (
    COMBINED,
    ENTRY,
    GRAINS,
    VALUES_SHIFT,
    is_copy,
    run_of,
)
from tamis.match.default.structure.cells import ValueCells, cell_of
from tamis.match.default.structure.family import LIVE, Family, blocks_of
from tamis.match.default.structure.routes import WHOLE, RoutedIndex, shift_of, trimmed
from tamis.match.plan import (
    ANY,
    CELLS,
    COMBINATION,
    DENSE,
    SPARSE,
    VALUE,
    BitmapColumn,
    Cut,
    Plan,
    Route,
)

# In the order of the positions in `routes`.
_STEPS = ("probe", "visit", "verify", "line", "check", "bit", "sparse_lines", "dense_lines",
          "dense_from")  # fmt: skip


def describe_plan(
    clauses: ClauseStorage,
    indexes: Sequence[RoutedIndex],
    events: int,
    nbytes: int,
    slots: Int64s | None,
    lines: int,
) -> Plan:
    """The plan of a matcher with one index, or two while clauses move from the first to the last.

    `events` is the number of events the plan is based on. `slots` are the clauses to explain
    individually. `lines` is the maximum number of other entries of each kind; with 0, nothing is
    counted.
    """
    if not indexes and len(clauses):
        raise MatcherError(
            "there is no plan yet: clauses are laid out when the first events are matched"
        )
    found: list[Route] = []
    cuts: tuple[Cut, ...] = ()
    matches, moving = 0.0, 0
    for index in indexes if lines else ():
        live = np.flatnonzero(index.kind != routes.NOWHERE)
        older = index is not indexes[-1]
        expected = expect(index, clauses, live)
        found += [replace(each, older=older) for each in _routes(index, expected, lines)]
        matches += expected.scale * float(expected.likely.sum())
        moving += len(live) if older else 0
        cuts = tuple(_cuts(index.cells, expected, lines))
    keyed = [each for each in found if each.sort not in (SPARSE, DENSE)]
    return Plan(
        clauses=len(clauses),
        events=events,
        moving=moving,
        bytes=nbytes,
        table_bytes=clauses.nbytes,
        look_ups=float(sum(each.look_ups for each in keyed)),
        met=float(sum(each.met for each in found)),
        matches=matches,
        ns=float(sum(each.ns for each in found)),
        routes=tuple(found),
        cuts=cuts,
        costs=_costs(indexes[-1]) if indexes else {},
        choices=() if slots is None else choices(clauses, indexes, slots),
    )


def _costs(index: RoutedIndex) -> dict[str, float]:
    """The costs behind the index. Infinite ones mark unused steps; JSON cannot express them."""
    named = zip(_STEPS, index.costs.tolist(), strict=True)
    return {name: cost for name, cost in named if isfinite(cost)}


# -- routes ----------------------------------------------------------------------------------------


def _routes(index: RoutedIndex, expected: Expected, lines: int) -> Iterator[Route]:
    keys = _keys(index, expected)
    grain = np.where(keys.scheme < COMBINED, keys.scheme % GRAINS, -1)
    cells = (grain > 0) & (grain < WHOLE)
    sorts = {VALUE: grain == 0, CELLS: cells, ANY: grain == WHOLE, COMBINATION: grain < 0}
    for sort, mine in sorts.items():
        yield from _lines(index, keys, np.flatnonzero(mine), sort, lines)
    small = trimmed(index)
    for sort, kind, family in (
        (SPARSE, routes.SPARSE, small.sparse),
        (DENSE, routes.DENSE, small.dense),
    ):
        if family.head[LIVE]:
            yield _family(index.cells, family, sort, expected, expected.kind == kind)


class _RouteKeys(NamedTuple):
    """Per scheme: its contents and its costs."""

    scheme: Int64s
    parts: Int64s  # buckets
    clauses: Int64s
    entries: Int64s
    bytes: Int64s
    look_ups: Floats
    met: Floats
    ns: Floats
    in_family: Floats

    def line(self, some: Int64s, sort: str, attributes: tuple[int, ...], cells: int) -> Route:
        """Some schemes, summed up in one route."""
        names = ("clauses", "parts", "entries", "bytes", "look_ups", "met", "ns")
        sums: dict[str, Any] = {name: getattr(self, name)[some].sum().item() for name in names}
        return Route(
            sort=sort,
            attributes=attributes,
            cells=cells,
            together=len(some),
            saved_ns=float(self.in_family[some].sum()) - sums["ns"],
            **sums,
        )


def _keys(index: RoutedIndex, expected: Expected) -> _RouteKeys:
    buckets, schemes = index.buckets, index.schemes
    size = len(buckets.key)
    scheme, clauses, entries = (np.zeros(size, np.int64) for _ in range(3))
    met = np.zeros(size)
    _count(index, scheme, clauses, entries, met)
    used = np.flatnonzero(entries)
    # Looking up a key costs time even if its bucket has become empty.
    grains = [GRAINS * np.flatnonzero(schemes.used >> g & 1) + g for g in range(WHOLE + 1)]
    combined = COMBINED + np.arange(len(schemes.start) - 1)
    names, which = np.unique(np.concatenate([scheme[used], *grains, combined]), return_inverse=True)
    which, many = which[: len(used)], len(names)
    keyed = np.flatnonzero(expected.kind == routes.BUCKET)
    at = np.searchsorted(names, expected.scheme[keyed])
    look_ups, looking = _look_ups(index, names)
    there = np.bincount(which, minlength=many)
    values = np.zeros(many, np.int64)
    values[names >= COMBINED] = np.diff(schemes.start)  # a single value is stored in the bucket
    words = 1 + len(buckets.bucket) // size + values
    lying = _sums(which, entries[used], many).astype(np.int64)
    return _RouteKeys(
        names,
        there,
        _sums(which, clauses[used], many).astype(np.int64),
        lying,
        8 * (ENTRY * lying + words * there),
        look_ups,
        _sums(which, met[used], many),
        expected.scale * _sums(at, expected.cost[keyed], many) + looking,
        expected.scale * _sums(at, expected.in_family[keyed], many),
    )


def _sums(which: Int64s, of: NDArray[Any], many: int) -> Floats:
    return np.asarray(np.bincount(which, of, many), np.float64)


def _look_ups(index: RoutedIndex, names: Int64s) -> tuple[Floats, Floats]:
    """How often the keys of each scheme are looked up, and the cost, whether found or not."""
    schemes, bound, costs = index.schemes, index.cells.bound, index.costs
    single = names < COMBINED
    often, considered = np.zeros(len(names)), np.zeros(len(names))
    often[single] = bound[names[single] // GRAINS]
    if not single.all():
        each = bound[schemes.attribute]
        often[~single] = np.multiply.reduceat(each, schemes.start[:-1])
        considered[~single] = np.minimum.reduceat(each, schemes.start[:-1])
    return often, costs[routes.PROBE] * often + costs[routes.VISIT] * considered


@kernel
def _count(
    index: RoutedIndex, scheme: Int64s, clauses: Int64s, entries: Int64s, met: Floats
) -> None:
    """For each bucket: its scheme, clauses, entries, and the expected entries met per event."""
    cells, schemes = index.cells, index.schemes
    start, cuts, bound, below, single = (
        cells.start, cells.cuts, cells.bound, cells.below, cells.single,
    )  # fmt: skip
    key, bucket, pool, stored = index.buckets[:4]
    words = len(bucket) // len(key)
    for i in range(len(key)):
        if key[i] == 0:
            continue
        what, value = bucket[words * i], bucket[words * i + 1]
        bare = what & ((1 << VALUES_SHIFT) - 1)
        scheme[i] = bare
        first, size = run_of(bucket, i)
        entries[i] = size
        for at in range(first, first + size):
            clauses[i] += not is_copy(pool[ENTRY * at])
        often = 1.0
        if bare >= COMBINED:
            begin = schemes.start[bare - COMBINED]
            for j in range(what >> VALUES_SHIFT):
                a = schemes.attribute[begin + j]
                cell = cell_of(start, cuts, a, stored[value + j])
                often *= bound[a] * single[start[a] + a + cell]
        else:
            a, grain = bare // GRAINS, bare % GRAINS
            often = bound[a]
            if grain == 0:
                often *= single[start[a] + a + cell_of(start, cuts, a, value)]
            elif grain < WHOLE:
                node = start[a] + 2 * a
                past = min((value + 1) << shift_of(grain), start[a + 1] - start[a] + 1)
                often *= below[node + past] - below[node + (value << shift_of(grain))]
        met[i] = often * size


def _lines(
    index: RoutedIndex, keys: _RouteKeys, mine: Int64s, sort: str, lines: int
) -> Iterator[Route]:
    """The schemes of one sort. Those with the most clauses get a route each."""
    order = mine[np.argsort(-keys.clauses[mine], kind="stable")]
    alone, rest = split(order, lines)
    for at in alone.tolist():
        _, attributes, cells = place_of(index, routes.BUCKET, int(keys.scheme[at]))
        yield keys.line(np.array([at]), sort, attributes, cells)
    if len(rest):
        yield keys.line(rest, sort, (), 0)


def split(order: Int64s, lines: int) -> tuple[Int64s, Int64s]:
    """The first few, and the others. A single other joins the first: it takes one line anyway."""
    return (order, order[:0]) if len(order) <= lines + 1 else (order[:lines], order[lines:])


def _family(cells: ValueCells, family: Family, sort: str, expected: Expected, mine: Bools) -> Route:
    clauses, blocks = int(family.head[LIVE]), blocks_of(family)
    real = np.flatnonzero(family.attribute >= 0)
    rows = np.diff(family.base)
    return Route(
        sort=sort,
        clauses=clauses,
        parts=blocks,
        entries=clauses,
        bytes=sum(part.nbytes for part in flatten(family).values()),
        look_ups=float(blocks * len(family.attribute)),
        met=expected.scale * float(expected.reached[mine].sum()),
        ns=expected.scale * float(expected.cost[mine].sum()),
        columns=tuple(
            BitmapColumn(a, int(rows[k]), float(cells.bound[a]))
            for k, a in zip(real.tolist(), family.attribute[real].tolist(), strict=True)
        ),
    )


# -- cells -----------------------------------------------------------------------------------------


def _cuts(cells: ValueCells, expected: Expected, lines: int) -> Iterable[Cut]:
    used = np.flatnonzero(expected.intervals)
    alone, rest = split(used[np.argsort(-expected.intervals[used], kind="stable")], lines)
    for a in alone.tolist():
        yield _cut(cells, expected, np.array([a]), a)
    if len(rest):
        yield _cut(cells, expected, rest, None)


def _cut(cells: ValueCells, expected: Expected, some: Int64s, attribute: int | None) -> Cut:
    intervals = int(expected.intervals[some].sum())
    return Cut(
        attribute,
        len(some),
        float(cells.bound[some].mean()),
        round(expected.scale * intervals),
        int(np.diff(cells.start)[some].sum()) + len(some),
        int(np.diff(cells.row_start)[some].sum()) + len(some),
        int(expected.exact[some].sum()) / intervals,
    )
