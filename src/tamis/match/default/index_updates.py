"""Insert clauses into an index, which grows as needed, and remove them."""

from __future__ import annotations

from tamis.errors import SavedIndexError
from tamis.files.arrays import Int64s
from tamis.index.growth import grown
from tamis.match.default.passes.batch_pass import insert_framed, take_out_framed
from tamis.match.default.passes.frame import Framed
from tamis.match.default.structure.buckets import ENTRY, with_room
from tamis.match.default.structure.family import LIVE, Family, family_with_room
from tamis.match.default.structure.insertion import NO_ENTRIES, NO_KEYS, NO_PLACES
from tamis.match.default.structure.packed_clauses import PackedClauses
from tamis.match.default.structure.routes import SPARSE, RoutedIndex

_MORE = 64  # keys and values that the next clause may need


def insert_all(
    framed: Framed[RoutedIndex], clauses: PackedClauses, slots: Int64s
) -> Framed[RoutedIndex]:
    """The index with the clauses of these slots added. They must be in the clause table."""
    index = framed.record
    top = len(clauses.where)  # not the highest slot: that takes as long as a small insertion
    if top > len(index.kind):
        index = index._replace(
            kind=grown(index.kind, top),
            scheme=grown(index.scheme, top),
            place=grown(index.place, top),
        )
    done = 0
    while True:
        if index is not framed.record:
            framed = Framed(index)
        done, full = insert_framed(framed.frame, clauses, slots, done)
        if not full:
            return framed
        left = len(slots) - done
        if full == NO_KEYS:
            # Many clauses share a key: doubling takes far less memory than a key for each.
            index = index._replace(buckets=with_room(index.buckets, _MORE, 0, _MORE))
        elif full == NO_ENTRIES:
            more = max(64, left, len(index.buckets.pool) // ENTRY)  # a long run may need to double
            index = index._replace(buckets=with_room(index.buckets, 0, more, 0))
        elif full == NO_PLACES + SPARSE:
            index = index._replace(sparse=_more(index.sparse, left))
        else:
            index = index._replace(dense=_more(index.dense, left))


def remove_all(framed: Framed[RoutedIndex], clauses: PackedClauses, slots: Int64s) -> None:
    """Remove the clauses of these slots from the index. They are still in the clause table."""
    if len(slots) and not take_out_framed(framed.frame, clauses, slots):
        raise SavedIndexError(
            "the saved index is inconsistent: a clause is not under its key; the index is built "
            "again from the clauses"
        )


def _more(family: Family, left: int) -> Family:
    return family_with_room(family, min(left, max(512, int(family.head[LIVE]))))
