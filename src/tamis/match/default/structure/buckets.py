"""Buckets: slots by key, where a key is a value, a run of cells, or a combination of values.

A key belongs to a *scheme*, which defines its parts. Scheme `8 a + g` is attribute a at grain g:
grain 0 is the value itself, higher grains are wider and wider runs of cells. Schemes from
`COMBINED` on are combinations of attributes. Keys are hashed and compared in full, so different
keys never share a bucket. A bucket is a run of entries in one pool. A full run moves to one of
double size, and its old place is reused.

An entry holds the slot and two other constraints of the clause, as cells. These decide most clauses
without a read of the clause itself, which is elsewhere in memory.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.growth import grown
from tamis.index.kernel import inlined, kernel

ENTRY = 3  # words: slot and kind, two constraints
ALL, TWO, MORE = 0, 1, 2  # the clause is decided by: the key; the two constraints; verification
NOTHING = -1  # no constraint
GRAINS = 8
COMBINED = 1 << 40
BUCKET = 4  # words: scheme, value or its offset, offset of the entries, size and capacity
VALUES_SHIFT = 48  # the first word has the scheme and, above this bit, the key's number of values
VALUES = 3  # maximum values of a key
CLASSES = 40  # sizes of runs
POOL_TOP, VALUES_TOP, KEYS, LIVE, SEED = range(5)  # positions in `head`
_MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


class Buckets(NamedTuple):
    """The arrays, as kernels see them. `key` is 0 in a free cell of the hash table."""

    key: Int64s
    bucket: Int64s
    pool: Int64s
    values: Int64s
    free: Int64s
    head: Int64s


def no_buckets() -> Buckets:
    """An empty table with capacity for a few buckets."""
    return Buckets(
        np.zeros(16, np.int64),
        np.zeros(16 * BUCKET, np.int64),
        np.zeros(64 * ENTRY, np.int64),
        np.zeros(64, np.int64),
        np.full(CLASSES, -1, np.int64),
        np.array([0, 0, 0, 0, seed()], np.int64),
    )


def seed() -> int:
    """A secret seed for the hash, so that nobody can choose values that all collide."""
    return secrets.randbits(62)


def with_room(buckets: Buckets, keys: int, entries: int, values: int) -> Buckets:
    """The table with capacity for more keys, pool entries, and values.

    If the hash table has to grow, empty buckets are dropped.
    """
    key, bucket, pool, stored, free, head = buckets
    if 2 * (int(head[KEYS]) + keys) > len(key):
        used = _used(buckets.key, buckets.bucket)
        size = 16
        while size < 3 * (used + keys):
            size *= 2
        key, bucket = np.zeros(size, np.int64), np.zeros(size * BUCKET, np.int64)
        stored = np.empty(len(stored), np.int64)
        _rehash(buckets, key, bucket, stored)
    pool = grown(pool, ENTRY * (int(head[POOL_TOP]) + entries))
    stored = grown(stored, int(head[VALUES_TOP]) + values)
    return Buckets(key, bucket, pool, stored, free, head)


@inlined
def first_hash(scheme: int, seed: int) -> int:
    """The hash of a key without values."""
    return (scheme + 1) * _MULTIPLIER ^ seed


@inlined
def next_hash(hash: int, value: int) -> int:
    """Add one value to the hash.

    Codes of decimals differ only in their upper bits, codes of labels in the middle bits. The table
    uses the lower bits, so every input bit must affect every output bit (the SplitMix64 finaliser).
    """
    mixed = hash * _MULTIPLIER + value
    mixed = (mixed ^ ((mixed >> 30) & 0x3FFFFFFFF)) * _FIRST
    mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return mixed ^ ((mixed >> 31) & 0x1FFFFFFFF)


@inlined
def last_hash(hash: int) -> int:
    """The final hash. It is never 0, because 0 marks a free cell."""
    return hash if hash != 0 else 1


@kernel
def _used(key: Int64s, bucket: Int64s) -> int:
    """The number of non-empty buckets."""
    many = 0
    for i in range(len(key)):
        many += key[i] != 0 and bucket[BUCKET * i + 3] >> 8 > 0
    return many


@kernel
def _rehash(old: Buckets, key: Int64s, bucket: Int64s, stored: Int64s) -> None:
    """Move the non-empty buckets and their values to a new table. Free the runs of the others."""
    mask = len(key) - 1
    old.head[KEYS] = 0
    old.head[VALUES_TOP] = 0
    for i in range(len(old.key)):
        if old.key[i] == 0:
            continue
        from_ = BUCKET * i
        start = old.bucket[from_ + 2]
        if old.bucket[from_ + 3] >> 8 == 0:
            grade = old.bucket[from_ + 3] & 0xFF
            if grade == 0:
                continue
            old.pool[ENTRY * start] = old.free[grade]
            old.free[grade] = start
            continue
        at = old.key[i] & mask
        while key[at] != 0:
            at = (at + 1) & mask
        key[at] = old.key[i]
        for j in range(BUCKET):
            bucket[BUCKET * at + j] = old.bucket[from_ + j]
        many = old.bucket[from_] >> VALUES_SHIFT
        if many > 1:
            to = old.head[VALUES_TOP]
            for j in range(many):
                stored[to + j] = old.values[old.bucket[from_ + 1] + j]
            bucket[BUCKET * at + 1] = to
            old.head[VALUES_TOP] += many
        old.head[KEYS] += 1


@inlined
def find(
    key: Int64s, bucket: Int64s, stored: Int64s, hash: int, scheme: int, values: Int64s, many: int
) -> int:
    """The position of a key's bucket, or -1. The key's values are `values[:many]`."""
    mask = len(key) - 1
    at = hash & mask
    while key[at] != 0:
        if key[at] == hash and bucket[BUCKET * at] == scheme | (many << VALUES_SHIFT):
            if many == 1:
                if bucket[BUCKET * at + 1] == values[0]:
                    return at
            else:
                same = True
                offset = bucket[BUCKET * at + 1]
                for i in range(many):
                    same &= stored[offset + i] == values[i]
                if same:
                    return at
        at = (at + 1) & mask
    return -1


@inlined
def put(
    buckets: Buckets,
    hash: int,
    scheme: int,
    values: Int64s,
    many: int,
    word: int,
    one: int,
    two: int,
    place_of: Int64s,
) -> int:
    """Add an entry to a key's bucket. Returns its place in the pool, or -1 if the pool is full.

    There must be capacity for one more key and its values. Updates `place_of` of moved entries.
    """
    key, bucket, pool, stored, free, head = buckets
    at = find(key, bucket, stored, hash, scheme, values, many)
    if at < 0:
        mask = len(key) - 1
        at = hash & mask
        while key[at] != 0:
            at = (at + 1) & mask
        key[at] = hash
        bucket[BUCKET * at] = scheme | (many << VALUES_SHIFT)
        if many == 1:
            bucket[BUCKET * at + 1] = values[0]
        else:
            bucket[BUCKET * at + 1] = head[VALUES_TOP]
            for i in range(many):
                stored[head[VALUES_TOP] + i] = values[i]
            head[VALUES_TOP] += many
        bucket[BUCKET * at + 2] = -1
        bucket[BUCKET * at + 3] = 0
        head[KEYS] += 1
    start = bucket[BUCKET * at + 2]
    size = bucket[BUCKET * at + 3] >> 8
    grade = bucket[BUCKET * at + 3] & 0xFF  # capacity for 2^(grade - 1) entries
    capacity = (1 << grade) >> 1
    if size == capacity:
        grade += 1
        wider = _take(free, head, pool, grade)
        if wider < 0:
            return -1
        for i in range(ENTRY * size):
            pool[ENTRY * wider + i] = pool[ENTRY * start + i]
        for i in range(wider, wider + size):
            if not is_copy(pool[ENTRY * i]):
                place_of[slot_in(pool[ENTRY * i])] = i
        if start >= 0:
            pool[ENTRY * start] = free[grade - 1]
            free[grade - 1] = start
        start = wider
        bucket[BUCKET * at + 2] = start
    place = start + size
    pool[ENTRY * place] = word
    pool[ENTRY * place + 1] = one
    pool[ENTRY * place + 2] = two
    bucket[BUCKET * at + 3] = ((size + 1) << 8) | grade
    head[LIVE] += 1
    return int(place)


@inlined
def _take(free: Int64s, head: Int64s, pool: Int64s, grade: int) -> int:
    """Take a run of 2^(grade - 1) entries, or -1. A free run's first word links to the next."""
    if free[grade] >= 0:
        start = free[grade]
        free[grade] = pool[ENTRY * start]
        return int(start)
    capacity = (1 << grade) >> 1
    if ENTRY * (head[POOL_TOP] + capacity) > len(pool):
        return -1
    start = head[POOL_TOP]
    head[POOL_TOP] += capacity
    return int(start)


@inlined
def drop(bucket: Int64s, pool: Int64s, head: Int64s, at: int, place: int, place_of: Int64s) -> None:
    """Remove an entry from a bucket. The last entry takes its place."""
    start, size = run_of(bucket, at)
    last = start + size - 1
    for i in range(ENTRY):
        pool[ENTRY * place + i] = pool[ENTRY * last + i]
    if place != last and not is_copy(pool[ENTRY * place]):
        place_of[slot_in(pool[ENTRY * place])] = place
    bucket[BUCKET * at + 3] -= 1 << 8
    head[LIVE] -= 1


@inlined
def entry_word(slot: int, kind: int, copy: bool) -> int:
    """The first word of an entry. If a slot has several entries, all but one are copies."""
    return slot | (kind << 32) | ((1 << 40) if copy else 0)


@inlined
def slot_in(word: int) -> int:
    """The slot of an entry."""
    return word & 0xFFFFFFFF


@inlined
def kind_in(word: int) -> int:
    """The kind of an entry."""
    return (word >> 32) & 0xFF


@inlined
def is_copy(word: int) -> bool:
    """Whether the entry is a copy: the first entry of its slot is elsewhere."""
    return (word >> 40) & 1 == 1


@inlined
def constraint_word(attribute: int, low: int, high: int) -> int:
    """A constraint as stored in an entry. The bounds are lanes (see `family.lower_lane`)."""
    return attribute | ((low & 0xFFFF) << 16) | (high << 32)


@inlined
def run_of(bucket: Int64s, at: int) -> tuple[int, int]:
    """The start and the number of a bucket's entries."""
    return bucket[BUCKET * at + 2], bucket[BUCKET * at + 3] >> 8
