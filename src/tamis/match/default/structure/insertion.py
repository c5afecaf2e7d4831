"""Insert clauses where their route says, and remove them again."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Floats, Int64s
from tamis.index.clauses import SOME
from tamis.index.kernel import inlined, kernel
from tamis.match.default.structure.buckets import (
    ALL,
    COMBINED,
    ENTRY,
    GRAINS,
    KEYS,
    MORE,
    NOTHING,
    SEED,
    TWO,
    VALUES_TOP,
    Buckets,
    constraint_word,
    drop,
    entry_word,
    find,
    first_hash,
    is_copy,
    last_hash,
    next_hash,
    put,
    run_of,
    slot_in,
)
from tamis.match.default.structure.family import (
    FREE,
    TOP,
    leave_place,
    lower_lane,
    take_place,
    upper_lane,
    write,
)
from tamis.match.default.structure.packed_clauses import ROW, PackedClauses
from tamis.match.default.structure.routes import (
    BUCKET,
    COPIES,
    DENSE,
    NOWHERE,
    SCHEME,
    SPARSE,
    TERM,
    TERM_SHIFT,
    TERMS,
    WHOLE,
    RoutedIndex,
    Schemes,
    choose,
    describe,
    point,
    shift_of,
)

NO_KEYS, NO_ENTRIES, NO_PLACES = 1, 2, 3  # what ran out during insertion; add the kind to the last


@inlined
def _entry(
    start: Int64s,
    cuts: Int64s,
    width: int,
    rows: Int64s,
    info: Int64s,
    chance: Floats,
    terms: int,
    keyed: Int64s,
) -> tuple[int, int, int]:
    """The kind of an entry and its two constraints. The key covers the terms marked in `keyed`."""
    one, two = NOTHING, NOTHING
    best, second = -1, -1
    rest = 0
    for t in range(min(terms, TERMS)):
        if keyed[t]:
            continue
        rest += 1
        simple = info[TERM * t + 1] == SOME and info[TERM * t + 3] == 1
        if not simple or info[TERM * t] >= min(width, 0xFFFF):
            continue
        if best < 0 or chance[t] < chance[best]:
            best, second = t, best
        elif second < 0 or chance[t] < chance[second]:
            second = t
    if best >= 0:
        one = _constraint(start, cuts, rows, info, best)
    if second >= 0:
        two = _constraint(start, cuts, rows, info, second)
    stored = (best >= 0) + (second >= 0)
    kind = TWO if rest else ALL
    if terms > TERMS or stored < rest:
        kind = MORE
    return kind, one, two


@inlined
def _constraint(start: Int64s, cuts: Int64s, rows: Int64s, info: Int64s, t: int) -> int:
    a, row = info[TERM * t], info[TERM * t + 2]
    low = lower_lane(start, cuts, a, rows[row + 1])
    high = upper_lane(start, cuts, a, rows[row + 2])
    return constraint_word(a, low, high)


@inlined
def keys_of(
    schemes: Schemes,
    rows: Int64s,
    info: Int64s,
    terms: int,
    scheme: int,
    values: Int64s,
    keyed: Int64s,
) -> tuple[int, int]:
    """The keys of a clause under a scheme. Returns their number, and the values per key (`many`).

    The values of key i are `values[i * many : (i + 1) * many]`. `keyed` marks the terms that the
    key fully expresses. The number is 0 if the clause cannot have the scheme: a forged index.
    """
    for t in range(TERMS):
        keyed[t] = 0
    bare = scheme & SCHEME
    copies, many = 1, 1
    if bare >= COMBINED:
        if bare - COMBINED + 1 >= len(schemes.start):
            return 0, 0
        first, last = schemes.start[bare - COMBINED], schemes.start[bare - COMBINED + 1]
        for i in range(first, last):
            t = point(rows, info, min(terms, TERMS), schemes.attribute[i])
            if t < 0:
                return 0, 0
            values[i - first] = rows[info[TERM * t + 2] + 1]
            keyed[t] = 1
        many = last - first
    else:
        t = scheme >> TERM_SHIFT
        if not 0 <= t < min(terms, TERMS):
            return 0, 0
        row, grain = info[TERM * t + 2], bare % GRAINS
        values[0] = 0
        if grain == 0:
            keyed[t] = 1
            copies = info[TERM * t + 3]
            if copies > COPIES:
                return 0, 0
            for i in range(copies):
                values[i] = rows[row + ROW * i + 1]
        elif grain < WHOLE:
            shift = shift_of(grain)
            first, last = info[TERM * t + 4] >> shift, info[TERM * t + 5] >> shift
            copies = last - first + 1
            if not 0 < copies <= COPIES:
                return 0, 0
            for i in range(copies):
                values[i] = first + i
    return copies, many


@inlined
def hash_of(scheme: int, values: Int64s, many: int, seed: int) -> int:
    """The hash of a key."""
    hash = first_hash(scheme, seed)
    for i in range(many):
        hash = next_hash(hash, values[i])
    return last_hash(hash)


@kernel
def insert(
    index: RoutedIndex, clauses: PackedClauses, slots: Int64s, begin: int
) -> tuple[int, int]:
    """Route and insert clauses, starting with `slots[begin]`.

    Returns the number inserted and, if that is not all, which structure is full.
    """
    info, chance = np.empty(TERM * TERMS, np.int64), np.empty(2 * TERMS)
    values, keyed = np.empty(2 * COPIES, np.int64), np.zeros(TERMS, np.int64)
    where, rows = clauses
    cells, schemes, buckets = index.cells, index.schemes, index.buckets
    costs, bound, row_start, row_cuts = index.costs, cells.bound, cells.row_start, cells.row_cuts
    start, cuts, columns = cells.start, cells.cuts, (index.sparse.column_of, index.dense.column_of)
    head, key_room, value_room = buckets.head, len(buckets.key), len(buckets.values)
    place_of, kind_of, scheme_of, used = index.place, index.kind, index.scheme, schemes.used
    for i in range(begin, len(slots)):
        slot = slots[i]
        terms = describe(cells, where, rows, slot, info, chance)
        kind, scheme, _, _ = choose(
            schemes, costs, bound, row_start, row_cuts, columns, rows, info, chance, terms
        )
        if kind == BUCKET:
            if 2 * (head[KEYS] + COPIES) > key_room:
                return i, NO_KEYS
            if head[VALUES_TOP] + COPIES > value_room:
                return i, NO_KEYS
            copies, many = keys_of(schemes, rows, info, terms, scheme, values, keyed)
            sort, one, two = _entry(start, cuts, len(bound), rows, info, chance, terms, keyed)
            bare = scheme & SCHEME
            for copy in range(copies):
                key = values[copy * many : copy * many + many]
                word = entry_word(slot, sort, copy > 0)
                place = put(
                    buckets, hash_of(bare, key, many, head[SEED]), bare, key, many,
                    word, one, two, place_of,
                )  # fmt: skip
                if place < 0:
                    _take_out(buckets, place_of, bare, values, copy, many, slot)
                    return i, NO_ENTRIES
                if copy == 0:
                    place_of[slot] = place
            if bare < COMBINED:
                used[bare // GRAINS] |= 1 << (bare % GRAINS)
            scheme_of[slot] = scheme
        else:
            family = index.dense if kind == DENSE else index.sparse
            if family.head[FREE] < 0 and family.head[TOP] >= len(family.slot_of):
                return i, NO_PLACES + kind
            place = take_place(family.slot_of, family.head)
            write(family, cells, where, rows, place, slot)
            place_of[slot] = place
        kind_of[slot] = kind
    return len(slots), 0


@kernel
def _take_out(
    buckets: Buckets,
    place_of: Int64s,
    scheme: int,
    values: Int64s,
    copies: int,
    many: int,
    slot: int,
) -> bool:
    """Remove the entries of a slot from the buckets of its keys; False if one is not there."""
    key, bucket, pool, stored, _, head = buckets
    for copy in range(copies):
        mine = values[copy * many : copy * many + many]
        hash = hash_of(scheme, mine, many, head[SEED])
        at = find(key, bucket, stored, hash, scheme, mine, many)
        if at < 0:
            return False
        place = place_of[slot]
        start, size = run_of(bucket, at)
        if copy > 0:
            place = start
            while place < start + size and (
                slot_in(pool[ENTRY * place]) != slot or not is_copy(pool[ENTRY * place])
            ):
                place += 1
        if not start <= place < start + size or slot_in(pool[ENTRY * place]) != slot:
            return False
        drop(bucket, pool, head, at, place, place_of)
    return copies > 0


@kernel
def take_out(index: RoutedIndex, clauses: PackedClauses, slots: Int64s) -> bool:
    """Remove clauses, which must still be in the clause table; False if an entry is not there."""
    info, chance = np.empty(TERM * TERMS, np.int64), np.empty(2 * TERMS)
    values, keyed = np.empty(2 * COPIES, np.int64), np.zeros(TERMS, np.int64)
    for slot in slots:
        if index.kind[slot] == SPARSE:
            leave_place(index.sparse, index.place[slot])
        elif index.kind[slot] == DENSE:
            leave_place(index.dense, index.place[slot])
        elif index.kind[slot] == BUCKET:
            terms = describe(index.cells, clauses.where, clauses.rows, slot, info, chance)
            scheme = index.scheme[slot]
            copies, many = keys_of(index.schemes, clauses.rows, info, terms, scheme, values, keyed)
            bare = scheme & SCHEME
            if not _take_out(index.buckets, index.place, bare, values, copies, many, slot):
                return False
        index.kind[slot] = NOWHERE
    return True
