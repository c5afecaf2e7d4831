"""Clauses clustered by their equalities: one look-up finds the clauses an event satisfies.

The *schema* of a clause is the set of attributes on which it has an equality. Clauses with the same
schema form a cluster; within a cluster, clauses with the same values share a *key*. An event binds
all attributes of some schemas. One look-up per such schema finds the clauses whose equalities all
hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int32s, Int64s, offsets, runs
from tamis.index.blocks import Lists
from tamis.index.elementary_predicates import ElementaryPredicates
from tamis.index.growth import HoldsArrays, ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.postings import Postings
from tamis.index.tuple_map import TupleMap, Tuples, find_in

_LOOK_UP = 8  # one random key look-up costs as much as scanning 8 keys
_ENUMERATED = 16  # attributes of an event at most, if all their subsets are wanted: 65,535 look-ups
_SUBSET = 4  # looking up one subset of the event's attributes costs as much as testing 4 schemas


class Clusters(NamedTuple):
    """View for kernels.

    A schema is the tuple of its attributes, ascending. A key is the schema's id followed by the
    values in that order. Each schema is listed under one of its attributes.
    """

    schemas: Tuples
    keys: Tuples
    keys_top: int
    listed: Lists
    listed_schemas: Int32s
    uses: Int64s  # by attribute: number of schemas with it
    lists: Lists
    slots: Int32s  # list i has the slots of key i


class EqualityClusters(HoldsArrays):
    """Slots by schema and key. add, remove O(equalities), find O(schemas that the event binds)."""

    def clear(self) -> None:
        self.schemas = TupleMap()
        self.keys = TupleMap()
        self._listed = Postings()
        self._under = np.zeros(0, np.int64)  # by schema: the attribute it is listed under
        self._uses = np.zeros(0, np.int64)
        self._postings = Postings()

    def __len__(self) -> int:
        """The number of slots."""
        return self._postings.total

    @property
    def view(self) -> Clusters:
        """The arrays for kernels."""
        return Clusters(
            self.schemas.view,
            self.keys.view,
            self.keys.top,
            self._listed.lists,
            self._listed.slots,
            self._uses,
            self._postings.lists,
            self._postings.slots,
        )

    def add(self, slots: Int64s, found: ElementaryPredicates, keyed: Bools) -> Bools:
        """Add the clauses with `keyed` predicates (see `key_predicates`); returns their mask."""
        starts, attributes, values, has = _keys(found, keyed)
        schemas, fresh = self.schemas.add(starts, attributes)
        self._list(fresh)
        keys, _ = self.keys.add(*_with_schema(starts, schemas, values))
        self._postings.append(keys, slots[has])
        return has

    def remove(self, slots: Int64s, found: ElementaryPredicates, keyed: Bools) -> Bools:
        """Remove the clauses with keyed predicates; returns their mask."""
        starts, attributes, values, has = _keys(found, keyed)
        schemas = self.schemas.find(starts, attributes)
        keys = self.keys.find(*_with_schema(starts, schemas, values))
        self._postings.remove(keys, slots[has])
        self.keys.remove(keys)
        which, clauses = np.unique(schemas, return_counts=True)
        self._unlist(which[self.schemas.view.uses[which] == clauses])
        self.schemas.remove(schemas)
        return has

    def check(self) -> None:
        """Raise if the maps, the lists and the counts disagree."""
        for part in (self.schemas, self.keys, self._listed, self._postings):
            part.check()
        schemas, keys = self.schemas.view, self.keys.view
        assert self._listed.total == len(self.schemas)
        uses = np.zeros(len(self._uses), np.int64)
        clauses = np.zeros(self.schemas.top, np.int64)
        for id in np.flatnonzero(schemas.size[: self.schemas.top] >= 0).tolist():
            attributes = schemas.values[schemas.start[id] : schemas.start[id] + schemas.size[id]]
            assert (np.diff(attributes) > 0).all(), "the attributes of a schema ascend"
            assert self._under[id] in attributes
            assert id in self._listed.items(int(self._under[id]))[0]
            uses[attributes] += 1
        assert (uses == self._uses).all()
        for id in np.flatnonzero(keys.size[: self.keys.top] >= 0).tolist():
            schema = keys.values[keys.start[id]]
            assert keys.size[id] == schemas.size[schema] + 1
            assert keys.uses[id] == self._postings.size[id]
            clauses[schema] += keys.uses[id]
        assert (clauses == schemas.uses[: self.schemas.top]).all()

    def _list(self, fresh: Int64s) -> None:
        """List each new schema under its attribute that occurs in the fewest schemas."""
        if not len(fresh):
            return
        owner, attributes = self._attributes(fresh)
        self._uses = grown(self._uses, int(attributes.max()) + 1)
        self._under = grown(self._under, self.schemas.top)
        np.add.at(self._uses, attributes, 1)
        order = np.lexsort((self._uses[attributes], owner))
        first = np.searchsorted(owner, np.arange(len(fresh)))
        self._under[fresh] = attributes[order][first]
        self._listed.append(self._under[fresh], fresh)

    def _unlist(self, gone: Int64s) -> None:
        if not len(gone):
            return
        np.subtract.at(self._uses, self._attributes(gone)[1], 1)
        self._listed.remove(self._under[gone], gone)

    def _attributes(self, ids: Int64s) -> tuple[Int64s, Int64s]:
        """The attributes of some schemas, and the position in `ids` that each belongs to."""
        view = self.schemas.view
        _, places = runs(view.start[ids], view.size[ids])
        return np.repeat(np.arange(len(ids)), view.size[ids]), view.values[places]


def _keys(found: ElementaryPredicates, keyed: Bools) -> tuple[Int64s, Int64s, Int64s, Bools]:
    """Starts, attributes and values of the keyed predicates, and which clauses have any."""
    starts = offsets(keyed)[found.starts]
    has = np.diff(starts) > 0
    starts = np.append(0, starts[1:][has])
    return starts, found.attribute[keyed].astype(np.int64), found.constant[keyed], has


def _with_schema(starts: Int64s, schemas: Int64s, values: Int64s) -> tuple[Int64s, Int64s]:
    """The key tuples: each clause's schema followed by its values."""
    number = np.arange(len(starts))
    keys = np.empty(len(schemas) + len(values), np.int64)
    keys[starts[:-1] + number[:-1]] = schemas
    keys[np.arange(len(values)) + np.repeat(number[:-1], np.diff(starts)) + 1] = values
    return starts + number, keys


@kernel
def partial(
    clusters: Clusters,
    attribute: Int32s,
    code: Int64s,
    event: tuple[int, int],
    bound: tuple[Int64s, Int64s],
    found: Int64s,
    subsets: bool,
) -> tuple[Int64s, int, int]:
    """The keys that one event satisfies, each once; they cover all clauses whose equalities hold.

    The event's pairs are `event[0]:event[1]`; its values of attribute a are
    `bound[0][a]:bound[1][a]`. Returns an array of keys (`found` if it is large enough), the number
    of keys in it, and the number of schemas and keys looked up. `subsets` looks up every subset of
    the event's attributes, if there are at most `_ENUMERATED`, and then every key.
    """
    names = np.empty(event[1] - event[0], np.int64)
    many = 0
    tests = 0
    several = False
    for at in range(event[0], event[1]):
        a = attribute[at]
        if not subsets and (a >= len(clusters.uses) or clusters.uses[a] == 0):
            continue
        if many > 0 and names[many - 1] == a:
            several = True
            continue
        names[many] = a
        many += 1
        if a < len(clusters.listed.size):
            tests += clusters.listed.size[a]
    names = names[:many]
    subsets = subsets and many <= _ENUMERATED
    if subsets or (many < 32 and (_SUBSET << many) < tests):
        schemas = _by_subset(clusters.schemas, names)
        tests = (1 << many) - 1
    else:
        listed = clusters.listed, clusters.listed_schemas
        schemas = _by_test(clusters.schemas, listed, names, tests, bound)
    # Each combination of the event's values is one look-up in a schema.
    combinations = float(len(schemas))
    if several:
        combinations = _combinations(clusters.schemas, schemas, bound)
    if combinations * _LOOK_UP > clusters.keys_top and (several or not subsets):
        found, keys = _by_walk(
            clusters.schemas, clusters.keys, clusters.keys_top, code, bound, found
        )
        return found, keys, tests + clusters.keys_top
    found, keys = _by_key(clusters.schemas, clusters.keys, schemas, code, bound, found)
    if several and keys > 1:  # an event may have the same value twice
        ordered = np.sort(found[:keys])
        keys = 1
        for i in range(1, len(ordered)):
            if ordered[i] != ordered[i - 1]:
                ordered[keys] = ordered[i]
                keys += 1
        found[:keys] = ordered[:keys]
    return found, keys, tests + int(combinations)


@kernel
def _by_subset(schemas: Tuples, names: Int64s) -> Int64s:
    """The schemas that equal a subset of an event's attributes."""
    many = len(names)
    cells, start, sizes, values = schemas.cells, schemas.start, schemas.size, schemas.values
    found = np.empty((1 << many) - 1, np.int64)
    subset = np.empty(many, np.int64)
    n = 0
    for bits in range(1, 1 << many):
        size = 0
        for k in range(many):
            subset[size] = names[k]
            size += (bits >> k) & 1
        id = find_in(cells, start, sizes, values, subset, size)
        if id >= 0:
            found[n] = id
            n += 1
    return found[:n]


@kernel
def _by_test(
    schemas: Tuples,
    listed: tuple[Lists, Int32s],
    names: Int64s,
    tests: int,
    bound: tuple[Int64s, Int64s],
) -> Int64s:
    """The schemas, listed under an event's attributes, whose attributes the event all binds."""
    first, last = bound
    lists, ids = listed
    start, sizes, values = schemas.start, schemas.size, schemas.values
    found = np.empty(tests, np.int64)
    n = 0
    for name in names:
        if name >= len(lists.size):
            continue
        for place in range(lists.start[name], lists.start[name] + lists.size[name]):
            id = ids[place]
            k = start[id]
            end = k + sizes[id]
            while k < end and first[values[k]] < last[values[k]]:
                k += 1
            found[n] = id
            n += k == end
    return found[:n]


@kernel
def _combinations(schemas: Tuples, which: Int64s, bound: tuple[Int64s, Int64s]) -> float:
    """The number of keys an event's values form in some schemas; a float, since it may be huge."""
    first, last = bound
    start, sizes, attributes = schemas.start, schemas.size, schemas.values
    total = 0.0
    for schema in which:
        product = 1.0
        for k in range(start[schema], start[schema] + sizes[schema]):
            product *= last[attributes[k]] - first[attributes[k]]
        total += product
    return total


@kernel
def _by_key(
    schemas: Tuples,
    keys: Tuples,
    which: Int64s,
    code: Int64s,
    bound: tuple[Int64s, Int64s],
    found: Int64s,
) -> tuple[Int64s, int]:
    """The keys that the event's values form in some schemas, whose attributes it binds."""
    first, last = bound
    begins, lengths, attributes = schemas.start, schemas.size, schemas.values
    cells, start, sizes, values = keys.cells, keys.start, keys.size, keys.values
    widest = 0
    for schema in which:
        widest = max(widest, lengths[schema])
    key = np.empty(widest + 1, np.int64)
    chosen = np.empty(widest, np.int64)
    n = 0
    for schema in which:
        begin, size = begins[schema], lengths[schema]
        key[0] = schema
        for k in range(size):
            chosen[k] = first[attributes[begin + k]]
            key[k + 1] = code[chosen[k]]
        k = 0
        while k >= 0:
            id = find_in(cells, start, sizes, values, key, size + 1)
            if id >= 0:
                found = ensure_capacity(found, n, 1)
                found[n] = id
                n += 1
            k = size - 1
            while k >= 0:  # next combination: advance the last value that can advance
                a = attributes[begin + k]
                chosen[k] += 1
                if chosen[k] < last[a]:
                    key[k + 1] = code[chosen[k]]
                    break
                chosen[k] = first[a]
                key[k + 1] = code[chosen[k]]
                k -= 1
    return found, n


@kernel
def _by_walk(
    schemas: Tuples,
    keys: Tuples,
    top: int,
    code: Int64s,
    bound: tuple[Int64s, Int64s],
    found: Int64s,
) -> tuple[Int64s, int]:
    """Test every key in memory order, for an event that would look up most of them."""
    first, last = bound
    begin, attributes = schemas.start, schemas.values
    start, sizes, values = keys.start, keys.size, keys.values
    n = 0
    found = ensure_capacity(found, 0, top)
    for id in range(top):
        if sizes[id] < 0:
            continue
        k = begin[values[start[id]]]
        ok = True
        for value in range(start[id] + 1, start[id] + sizes[id]):
            a = attributes[k]
            ok = False
            for at in range(first[a], last[a]):
                ok |= code[at] == values[value]
            if not ok:
                break
            k += 1
        found[n] = id
        n += ok
    return found, n
