"""Match a batch of events against the buckets: each event looks up only its own keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import inlined, kernel
from tamis.match.default.passes.event_arrays import (
    PROBES,
    VISITS,
    Binding,
    Doubts,
    Events,
    bind,
    unbind,
)
from tamis.match.default.passes.vector import WORDS, prefetch
from tamis.match.default.structure.buckets import (
    ALL,
    BUCKET,
    COMBINED,
    ENTRY,
    GRAINS,
    LIVE,
    MORE,
    NOTHING,
    SEED,
    VALUES,
    VALUES_SHIFT,
    Buckets,
    find,
    first_hash,
    kind_in,
    last_hash,
    next_hash,
    run_of,
    slot_in,
)
from tamis.match.default.structure.routes import WHOLE, Schemes, shift_of

_TOGETHER = 16  # events processed together
_CHOICES = 1024  # maximum keys of an event for one combination; above, all buckets are visited
_FAILS, _MAY_HOLD, _HOLDS = range(3)
_FETCHED = 32  # maximum cache lines of a run to prefetch


@kernel
def pass_buckets(
    events: Events,
    buckets: Buckets,
    schemes: Schemes,
    binding: Binding,
    keys: Keys,
    out: Int32s,
    counts: Int64s,
    doubts: Doubts,
) -> int:
    """The matching slots from buckets, event by event, and pairs to be verified.

    Memory latency dominates: looking up a key is a cache miss, and so is a run of entries. So a few
    events are processed together. All their keys are prefetched, then all their runs, and both are
    in the cache when they are needed.

    Returns the number of slots; -1 if `out` is too short, -2 if `doubts` is, -3 if `keys` is.
    """
    bucket, pool = buckets.bucket, buckets.pool
    starts, attribute, _, cell, several = events
    span, here = binding
    at_key, owner = keys.at, keys.event
    found = 0
    for first in range(0, len(starts) - 1, _TOGETHER):
        last = min(first + _TOGETHER, len(starts) - 1)
        many = _look_up(events, first, last, buckets, schemes, binding, keys, doubts.many)
        if many < 0:
            return -3
        i = 0
        for e in range(first, last):
            before = found
            begin = i
            most = 0
            while i < many and owner[i] == e:
                if at_key[i] < 0:
                    most += buckets.head[LIVE]
                else:
                    most += bucket[BUCKET * at_key[i] + 3] >> 8
                i += 1
            if found + most > len(out):
                return -1
            if doubts.many[0] + most > len(doubts.event):
                return -2
            doubts.many[VISITS] += most
            if most == 0:
                counts[e] = 0
                continue
            bind(attribute, cell, starts[e], starts[e + 1], span, here)
            for j in range(begin, i):
                if at_key[j] < 0:
                    scheme = COMBINED - 1 - at_key[j]
                    found = _visit_all(buckets, scheme, e, here, out, found, doubts)
                else:
                    start, size = run_of(bucket, at_key[j])
                    found = _visit(pool, start, size, e, several[e] != 0, here, out, found, doubts)
            unbind(attribute, starts[e], starts[e + 1], span, here)
            counts[e] = found - before
    return found


class Keys(NamedTuple):
    """Scratch space for the keys of a few events: the bucket and the event of each key."""

    at: Int64s
    event: Int32s
    hash: Int64s
    scheme: Int64s
    values: Int64s  # three per key


@kernel
def _look_up(
    events: Events,
    first: int,
    last: int,
    buckets: Buckets,
    schemes: Schemes,
    binding: Binding,
    keys: Keys,
    work: Int64s,
) -> int:
    """Find the buckets of a few events' keys. Returns their number, or -1 if `keys` is full."""
    starts, attribute, code, cell, _ = events
    _, used_grains, combination, member, pivot, combined = schemes
    key, bucket, pool, stored, _, head = buckets
    seed = head[SEED]
    at_key, owner, hashes, of_scheme, values = keys
    span, here = binding
    turn = np.zeros(VALUES, np.int32)
    mask = len(key) - 1
    many = 0
    for e in range(first, last):
        bind(attribute, cell, starts[e], starts[e + 1], span, here)
        for pair in range(starts[e], starts[e + 1]):
            a = attribute[pair]
            if a >= len(used_grains):
                continue
            fresh = pair == span[2 * a]
            used = used_grains[a]
            if many + GRAINS > len(at_key):
                unbind(attribute, starts[e], starts[e + 1], span, here)
                return -1
            grain = 0
            while used >> grain:
                if used >> grain & 1 and (grain < WHOLE or fresh):
                    value = int(code[pair]) if grain == 0 else 0
                    if 0 < grain < WHOLE:
                        value = int(cell[pair] - 1) >> shift_of(grain)
                    values[VALUES * many] = value
                    scheme = GRAINS * a + grain
                    hash = last_hash(next_hash(first_hash(scheme, seed), value))
                    hashes[many], of_scheme[many], owner[many] = hash, scheme, e
                    prefetch(key, hash & mask)
                    prefetch(bucket, BUCKET * (hash & mask))
                    many += 1
                grain += 1
            if not fresh:
                continue
            for i in range(pivot[a], pivot[a + 1]):
                begin, end = combination[combined[i]], combination[combined[i] + 1]
                bound = True
                choices = 1
                for j in range(begin, end):
                    bound &= span[2 * member[j]] < span[2 * member[j] + 1]
                    turn[j - begin] = span[2 * member[j]]
                    choices *= span[2 * member[j] + 1] - span[2 * member[j]]
                if choices > _CHOICES:
                    if many == len(at_key):
                        unbind(attribute, starts[e], starts[e + 1], span, here)
                        return -1
                    of_scheme[many], owner[many] = -1 - combined[i], e
                    many += 1
                    continue
                while bound:
                    if many == len(at_key):
                        unbind(attribute, starts[e], starts[e + 1], span, here)
                        return -1
                    scheme = COMBINED + combined[i]
                    hash = first_hash(scheme, seed)
                    for j in range(end - begin):
                        values[VALUES * many + j] = code[turn[j]]
                        hash = next_hash(hash, code[turn[j]])
                    hash = last_hash(hash)
                    hashes[many], of_scheme[many], owner[many] = hash, scheme, e
                    prefetch(key, hash & mask)
                    prefetch(bucket, BUCKET * (hash & mask))
                    many += 1
                    bound = _next_choice(turn, member, begin, end, span)
        unbind(attribute, starts[e], starts[e + 1], span, here)
    work[PROBES] += many
    met = 0
    for i in range(many):
        scheme = of_scheme[i]
        if scheme < 0:
            at_key[met] = scheme
            owner[met] = owner[i]
            met += 1
            continue
        size = 1
        if scheme >= COMBINED:
            size = combination[scheme - COMBINED + 1] - combination[scheme - COMBINED]
        mine = values[VALUES * i : VALUES * i + VALUES]
        at = find(key, bucket, stored, hashes[i], scheme, mine, size)
        if at >= 0:
            at_key[met] = at
            owner[met] = owner[i]
            met += 1
            start, length = run_of(bucket, at)
            word = ENTRY * start
            for _ in range(min(ENTRY * length // WORDS + 1, _FETCHED)):
                prefetch(pool, word)
                word += WORDS
    return met


@inlined
def _next_choice(turn: Int32s, member: Int64s, first: int, last: int, span: Int32s) -> bool:
    """Advance to the next choice of one value per attribute, like an odometer. False at the end."""
    j = 0
    while j < last - first:
        turn[j] += 1
        if turn[j] < span[2 * member[first + j] + 1]:
            break
        turn[j] = span[2 * member[first + j]]
        j += 1
    return j < last - first


@kernel
def _visit(
    pool: Int64s,
    start: int,
    size: int,
    e: int,
    several: bool,
    here: Int32s,
    out: Int32s,
    found: int,
    doubts: Doubts,
) -> int:
    """Visit a run of entries: write the slots of clauses that hold, and pairs to be verified.

    Most entries fail at their first constraint, so an early exit pays off (2 ns per entry;
    branch-free code takes 5).
    """
    event, slots, _, many = doubts
    doubtful = many[0]
    for i in range(ENTRY * start, ENTRY * (start + size), ENTRY):
        word = pool[i]
        kind = kind_in(word)
        sure = kind != MORE and not several  # with several values it may be found twice
        if kind != ALL:
            first = _compare(pool[i + 1], here)
            if first == _FAILS:
                continue
            second = _compare(pool[i + 2], here)
            if second == _FAILS:
                continue
            sure = sure and first == _HOLDS and second == _HOLDS
        if sure:
            out[found] = slot_in(word)
            found += 1
        else:
            event[doubtful] = e
            slots[doubtful] = slot_in(word)
            doubtful += 1
    many[0] = doubtful
    return found


@kernel
def _visit_all(
    buckets: Buckets, scheme: int, e: int, here: Int32s, out: Int32s, found: int, doubts: Doubts
) -> int:
    """Visit all buckets of a combination, for an event with too many keys to look up.

    Three attributes with a thousand values each make a billion keys. All candidates are verified,
    as always for events with several values.
    """
    key, bucket, pool = buckets.key, buckets.bucket, buckets.pool
    for at in range(len(key)):
        if key[at] != 0 and bucket[BUCKET * at] & ((1 << VALUES_SHIFT) - 1) == scheme:
            start, size = run_of(bucket, at)
            found = _visit(pool, start, size, e, True, here, out, found, doubts)
    return found


@inlined
def _compare(constraint: int, here: Int32s) -> int:
    """Compare the constraint of an entry with the event's cells."""
    verdict = _HOLDS
    if constraint != NOTHING:
        value = here[constraint & 0xFFFF]
        low = (((constraint >> 16) & 0xFFFF) ^ 0x8000) - 0x8000
        high = constraint >> 32
        if value == 0 or (value > 0 and (value < low or value > high)):
            verdict = _FAILS
        elif value < 0 or value in (low, high):
            verdict = _MAY_HOLD
    return verdict
