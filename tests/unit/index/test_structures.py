"""The array structures that matchers share behave as plain dicts and lists would."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tamis.index.ordered_lists import OrderedLists, bisect_left, bisect_right
from tamis.index.pair_map import PairMap, find
from tamis.index.postings import Postings
from tamis.index.slot_set import SlotSet


def _ints(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


@pytest.mark.parametrize("step", [None, 3])
def test_postings_hold_what_was_added_and_not_removed(step: int | None) -> None:
    chance = random.Random(1)
    postings, plain = Postings(step=step), {i: Counter[int]() for i in range(40)}
    for _ in range(300):
        many = chance.choice([1, 1, 1, 7, 200])
        if chance.random() < 0.6 or not postings.total:
            lists = [chance.randrange(40) for _ in range(many)]
            slots = [chance.randrange(1000) for _ in range(many)]
            postings.append(_ints(lists), _ints(slots))
            for at, slot in zip(lists, slots, strict=True):
                plain[at][slot] += 1
        else:
            held = [(at, slot) for at, slots in plain.items() for slot in slots.elements()]
            gone = chance.sample(held, min(many, len(held)))
            postings.remove(_ints([at for at, _ in gone]), _ints([slot for _, slot in gone]))
            for at, slot in gone:
                plain[at][slot] -= 1
        postings.check()
    for at, counted in plain.items():
        assert Counter(postings.items(at)[0].tolist()) == +counted
    assert postings.total == sum(sum(counted.values()) for counted in plain.values())


def test_postings_give_memory_back_when_lists_empty() -> None:
    postings = Postings()
    lists = _ints([i % 10 for i in range(50_000)])
    postings.append(lists, np.arange(50_000))
    full = postings.nbytes
    postings.remove(lists, np.arange(50_000))
    assert postings.nbytes < full / 10


def test_removing_a_slot_that_is_not_there_is_refused() -> None:
    postings = Postings()
    postings.append(_ints([2]), _ints([5]))
    with pytest.raises(AssertionError, match="slot 6 is not in list 2"):
        postings.remove(_ints([2]), _ints([6]))


def test_ordered_lists_stay_sorted() -> None:
    chance = random.Random(2)
    ordered = OrderedLists()
    plain: dict[int, list[tuple[int, int]]] = {i: [] for i in range(12)}
    for _ in range(300):
        many = chance.choice([1, 1, 3, 60])
        if chance.random() < 0.6 or not ordered.total:
            items = [
                (
                    chance.randrange(12),
                    chance.choice([-(2**63), 2**63 - 1, chance.randrange(50)]),
                    i,
                )
                for i in range(many)
            ]
            ordered.add(*(_ints(list(column)) for column in zip(*items, strict=True)))
            for at, key, value in items:
                plain[at].append((key, value))
        else:
            held = [(at, *pair) for at, pairs in plain.items() for pair in pairs]
            gone = chance.sample(held, min(many, len(held)))
            ordered.remove(*(_ints(list(column)) for column in zip(*gone, strict=True)))
            for at, key, value in gone:
                plain[at].remove((key, value))
        ordered.check()
    for at, pairs in plain.items():
        keys, values = ordered.items(at)
        found = list(zip(keys.tolist(), values.tolist(), strict=True))
        assert Counter(found) == Counter(pairs)
        assert keys.tolist() == sorted(keys.tolist())


def test_bisection_finds_the_ends_of_a_run() -> None:
    keys = _ints([1, 3, 3, 3, 7])
    for key in range(9):
        assert bisect_left(keys, 0, 5, key) == np.searchsorted(keys, key, "left")
        assert bisect_right(keys, 0, 5, key) == np.searchsorted(keys, key, "right")


def test_the_map_agrees_with_a_dict() -> None:
    chance = random.Random(3)
    pairs, plain = PairMap(), dict[tuple[int, int], int]()
    ends = [-(2**63), -1, 0, 1, 2**63 - 1]
    for _ in range(400):
        many = chance.choice([1, 1, 5, 100])
        if chance.random() < 0.6 or not plain:
            keys = [(chance.randrange(5), chance.choice([*ends, *range(200)])) for _ in range(many)]
            values = [chance.randrange(10**6) for _ in keys]
            pairs.put(_ints([a for a, _ in keys]), _ints([b for _, b in keys]), _ints(values))
            plain.update(zip(keys, values, strict=True))
        else:
            gone = chance.sample(sorted(plain), min(many, len(plain)))
            pairs.pop(_ints([a for a, _ in gone]), _ints([b for _, b in gone]))
            for key in gone:
                del plain[key]
        pairs.check()
        assert len(pairs) == len(plain)
    for a in range(5):
        for b in [*ends, *range(200)]:
            assert find(pairs.cells, a, b) == plain.get((a, b), -1)


def test_a_slot_set_agrees_with_a_set() -> None:
    chance = random.Random(4)
    slots, plain = SlotSet(), set[int]()
    for _ in range(300):
        fresh = [s for s in chance.sample(range(200), 12) if s not in plain]
        slots.add(_ints(fresh))
        plain.update(fresh)
        most = chance.choice([5, 5, 5, 60])
        gone = chance.sample(sorted(plain), chance.randint(0, min(most, len(plain))))
        slots.remove(_ints(gone))
        plain.difference_update(gone)
        slots.check()
        assert set(slots.slots.tolist()) == plain
        assert len(slots) == len(plain)
