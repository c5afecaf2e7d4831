"""Buckets beside a plain dict of lists."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.typing import NDArray

from tamis.match.default.structure.buckets import (
    ALL,
    COMBINED,
    ENTRY,
    GRAINS,
    KEYS,
    LIVE,
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
    kind_in,
    last_hash,
    next_hash,
    no_buckets,
    put,
    run_of,
    slot_in,
    with_room,
)

Int64s = NDArray[np.int64]
Key = tuple[int, tuple[int, ...]]
"""scheme, values"""
Entry = tuple[int, int, bool, int, int]
"""slot, kind, copy, and two constraints"""
LOWEST, HIGHEST = -(2**63), 2**63 - 1
SLOTS = 20_000
KEYS_THERE: list[Key] = [
    *((GRAINS * a + grain, (value,)) for a in (0, 1) for grain in (0, 1) for value in (0, 1, -1)),
    (0, (LOWEST,)),
    (0, (HIGHEST,)),
    *((COMBINED, (one, two)) for one in (0, 1) for two in (0, 1)),
    (COMBINED + 1, (0, 1)),
    *((COMBINED + 2, (0, 0, three)) for three in (0, 1)),
]


def true_hash(key: Key) -> int:
    hash = first_hash(key[0], 9)
    for value in key[1]:
        hash = next_hash(hash, value)
    return last_hash(hash)


class Held:
    """Buckets as a dict would be: keys to lists of entries. `hash_of` may be as bad as it likes."""

    def __init__(self, hashes: int | None) -> None:
        self.buckets = no_buckets()
        self.place_of = np.full(SLOTS, -1, np.int64)
        self.hashes = hashes  # so few different ones, or the true ones

    def hash_of(self, key: Key) -> int:
        return true_hash(key) if self.hashes is None else 1 + hash(key) % self.hashes

    def reserve(self, keys: int, entries: int, values: int) -> None:
        self.buckets = with_room(self.buckets, keys, entries, values)

    def add(self, key: Key, entry: Entry) -> None:
        scheme, values = key
        slot, kind, copy, one, two = entry
        if 2 * (self.buckets.head[KEYS] + 1) > len(self.buckets.key):
            self.reserve(1, 0, 0)
        self.reserve(0, 0, len(values))
        while True:
            place = put(
                self.buckets, self.hash_of(key), scheme, np.array(values), len(values),
                entry_word(slot, kind, copy), one, two, self.place_of,
            )  # fmt: skip
            if place >= 0:
                break
            self.reserve(0, len(self.buckets.pool) // 3, 0)
        if not copy:
            self.place_of[slot] = place

    def at(self, key: Key) -> int:
        table, bucket, _, stored, _, _ = self.buckets
        values = np.array(key[1])
        return find(table, bucket, stored, self.hash_of(key), key[0], values, len(values))

    def entries(self, key: Key) -> list[Entry]:
        at = self.at(key)
        if at < 0:
            return []
        start, size = run_of(self.buckets.bucket, at)
        return [self.entry(place) for place in range(start, start + size)]

    def entry(self, place: int) -> Entry:
        word, one, two = self.buckets.pool[ENTRY * place : ENTRY * place + ENTRY].tolist()
        return slot_in(word), kind_in(word), is_copy(word), one, two

    def remove(self, key: Key, entry: Entry) -> None:
        _, bucket, pool, _, _, head = self.buckets
        at = self.at(key)
        place = int(self.place_of[entry[0]])
        if entry[2]:
            start, _ = run_of(bucket, at)
            place = start + self.entries(key).index(entry)
        drop(bucket, pool, head, at, place, self.place_of)


kinds = st.sampled_from([ALL, TWO, MORE])
constraints = st.sampled_from([NOTHING, constraint_word(0, -5, 7), constraint_word(9, 3, 32_768)])


class BucketsMachine(RuleBasedStateMachine):
    """Entries come and go; every key has the entries that a dict would have."""

    hashes: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.held = Held(self.hashes)
        self.model: dict[Key, list[Entry]] = {key: [] for key in KEYS_THERE}
        self.fresh = 0

    @rule(
        keys=st.lists(st.sampled_from(KEYS_THERE), min_size=1, max_size=4, unique=True),
        kind=kinds, one=constraints, two=constraints, many=st.sampled_from([1, 1, 3, 20]),
    )  # fmt: skip
    def add(self, keys: list[Key], kind: int, one: int, two: int, many: int) -> None:
        """A slot under some keys, all but the first of them copies; so many slots alike."""
        for _ in range(many):
            for number, key in enumerate(keys):
                entry = (self.fresh, kind, number > 0, one, two)
                self.held.add(key, entry)
                self.model[key].append(entry)
            self.fresh += 1

    @precondition(lambda self: any(self.model.values()))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([key for key in KEYS_THERE if self.model[key]]))
        entry = data.draw(st.sampled_from(self.model[key]))
        self.held.remove(key, entry)
        self.model[key].remove(entry)

    @rule(key=st.sampled_from(KEYS_THERE))
    def empty(self, key: Key) -> None:
        for entry in self.model[key][::-1]:
            self.held.remove(key, entry)
        self.model[key] = []

    @rule(keys=st.sampled_from([0, 1, 40]), entries=st.integers(0, 80), values=st.integers(0, 80))
    def reserve(self, keys: int, entries: int, values: int) -> None:
        before = self.held.buckets
        self.held.reserve(keys, entries, values)
        if self.held.buckets.key is not before.key:
            live = sum(1 for entries in self.model.values() if entries)
            assert self.held.buckets.head[KEYS] == live, "empty buckets are left out"

    @invariant()
    def keys_have_their_entries(self) -> None:
        for key, entries in self.model.items():
            assert Counter(self.held.entries(key)) == Counter(entries)
        total = sum(map(len, self.model.values()))
        assert self.held.buckets.head[LIVE] == total

    @invariant()
    def places_are_known(self) -> None:
        for entries in self.model.values():
            for entry in entries:
                if not entry[2]:
                    assert self.held.entry(int(self.held.place_of[entry[0]])) == entry


class CollidingMachine(BucketsMachine):
    """The same where all keys have one of two hashes."""

    hashes = 2


TestBuckets = BucketsMachine.TestCase
TestBuckets.settings = settings(max_examples=50, stateful_step_count=20)
TestColliding = CollidingMachine.TestCase
TestColliding.settings = settings(max_examples=50, stateful_step_count=20)


def test_keys_that_differ_in_one_thing_only_have_different_hashes() -> None:
    hashes = [true_hash(key) for key in KEYS_THERE]
    assert len(set(hashes)) == len(KEYS_THERE)
    assert true_hash((COMBINED, (1, 2))) != true_hash((COMBINED, (2, 1)))
    assert last_hash(0) == 1, "0 stands for no key"


@pytest.mark.parametrize("what", ["numbers", "below zero", "labels", "decimals", "cents"])
def test_hashes_spread(what: str) -> None:
    """Codes do not crowd together in the table, whatever they are codes of."""
    many = np.arange(4096)
    codes = {
        "numbers": many,
        "below zero": -many,
        "labels": many << 32,  # texts are dealt labels far apart
        "decimals": many.astype(np.float64).view(np.int64),
        "cents": (many / 100).view(np.int64),
    }[what]
    for scheme in (0, 8, COMBINED):
        places = Counter(true_hash((scheme, (code,))) & 8191 for code in codes.tolist())
        assert len(places) > 2700, "4096 keys thrown at 8192 places meet some 3223 of them"
        assert max(places.values()) <= 12


def filled(keys: int, each: int) -> Held:
    held = Held(None)
    for number in range(keys * each):
        held.add((0, (number % keys,)), (number, ALL, False, NOTHING, NOTHING))
    return held


def slots(held: Held, key: Key) -> set[int]:
    return {entry[0] for entry in held.entries(key)}


def test_growth_keeps_everything() -> None:
    held = filled(keys=300, each=20)
    for key in range(300):
        assert slots(held, (0, (key,))) == set(range(key, 6000, 300))
    assert held.entries((0, (300,))) == []
    assert held.buckets.head[KEYS] == 300
    assert len(held.buckets.key) >= 2 * 300


def test_runs_that_are_left_are_used_again() -> None:
    held = filled(keys=50, each=16)
    sizes = []
    for turn in range(8):
        for number in range(50 * 16):
            old, new = ((0, (number % 50 + 50 * at,)) for at in (turn, turn + 1))
            held.remove(old, (number, ALL, False, NOTHING, NOTHING))
            held.add(new, (number, ALL, False, NOTHING, NOTHING))
        assert slots(held, (0, (50 * turn + 50,))) == set(range(0, 800, 50))
        sizes.append((len(held.buckets.pool), len(held.buckets.key)))
    assert sizes[2:] == [sizes[2]] * 6, "churn does not grow them for ever"


def test_values_of_combinations_that_are_gone_make_room() -> None:
    held = Held(None)
    entry = (1, ALL, False, NOTHING, NOTHING)
    for turn in range(500):
        key = (COMBINED, (turn, -turn, 7))
        held.add(key, entry)
        assert held.entries(key) == [entry]
        held.remove(key, entry)
    assert len(held.buckets.key) == len(no_buckets().key)
    assert len(held.buckets.values) == len(no_buckets().values)
    assert held.buckets.head[VALUES_TOP] <= 3 * len(held.buckets.key)


def test_a_full_pool_says_so_and_changes_nothing_but_the_key() -> None:
    held = filled(keys=1, each=32)
    before = slots(held, (0, (0,)))
    buckets = held.buckets._replace(pool=held.buckets.pool[: ENTRY * 64].copy())
    for _ in range(2):
        place = put(
            buckets, true_hash((0, (0,))), 0, np.array([0]), 1,
            entry_word(999, ALL, False), NOTHING, NOTHING, held.place_of,
        )  # fmt: skip
        assert place == -1
    assert buckets.head[LIVE] == 32
    held.buckets = buckets
    assert slots(held, (0, (0,))) == before
    held.add((0, (0,)), (999, ALL, False, NOTHING, NOTHING))
    assert slots(held, (0, (0,))) == before | {999}
    assert [held.entry(int(held.place_of[slot]))[0] for slot in [*range(32), 999]] == [
        *range(32),
        999,
    ]


@pytest.mark.parametrize("copy", [False, True])
def test_an_entry_word_says_what_was_put_in(copy: bool) -> None:
    for slot in (0, 1, 2**31 - 1):
        for kind in (ALL, TWO, MORE):
            word = entry_word(slot, kind, copy)
            assert (slot_in(word), kind_in(word), is_copy(word)) == (slot, kind, copy)


def test_room_is_given_as_promised() -> None:
    held = filled(keys=7, each=3)
    grown: Buckets = with_room(held.buckets, 1000, 2000, 3000)
    assert 2 * (grown.head[KEYS] + 1000) <= len(grown.key)
    assert len(grown.pool) >= ENTRY * 2000
    assert len(grown.values) >= 3000
    assert with_room(grown, 10, 10, 10)[:4] == grown[:4], "what is enough is left as it is"


def test_hashes_begin_with_a_secret() -> None:
    """Values that meet in one table are apart in another: nobody can choose such values."""
    first, second = (int(no_buckets().head[SEED]) for _ in range(2))
    assert first != second
    mask = 255
    values = range(100_000)

    def place(value: int, seed: int) -> int:
        return int(last_hash(next_hash(first_hash(0, seed), value))) & mask

    meeting = [value for value in values if place(value, first) == 7]
    assert len(meeting) > 200
    assert len({place(value, second) for value in meeting}) > 100
