"""The map of tuples behaves as a dict with counted keys would."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tamis.index.tuple_map import TupleMap

Int64s = NDArray[np.int64]


def _flat(tuples: list[tuple[int, ...]]) -> tuple[Int64s, Int64s]:
    starts = np.cumsum([0, *(len(t) for t in tuples)])
    return starts, np.array([v for t in tuples for v in t], np.int64)


def test_equal_tuples_have_one_id_until_the_last_use_is_given_back() -> None:
    chance = random.Random(1)
    tuples, uses, ids = TupleMap(), Counter[tuple[int, ...]](), dict[tuple[int, ...], int]()
    for _ in range(300):
        many = chance.choice([1, 1, 5, 300])
        if chance.random() < 0.55:
            drawn = [
                tuple(chance.choice([-(2**63), -1, 0, 1, 2**63 - 1, 7]) for _ in range(size))
                for size in chance.choices(range(5), k=many)
            ]
            found, fresh = tuples.add(*_flat(drawn))
            for one, id in zip(drawn, found.tolist(), strict=True):
                assert (id in fresh) == (one not in ids or ids[one] in fresh)
                assert ids.setdefault(one, id) == id
            uses.update(drawn)
        elif uses:
            drawn = chance.sample(list(uses.elements()), min(many, uses.total()))
            gone = tuples.remove(tuples.find(*_flat(drawn)))
            uses -= Counter(drawn)
            lost = {one for one in drawn if one not in uses}
            assert sorted(gone.tolist()) == sorted(ids.pop(one) for one in lost)
        tuples.check()
        assert len(tuples) == len(uses)
        assert tuples.find(*_flat(list(ids))).tolist() == list(ids.values())


def test_tuples_that_hash_alike_are_told_apart() -> None:
    # 31 bits of hash: among 300,000 tuples some twenty pairs share all of them.
    values = np.arange(600_000)
    tuples = TupleMap()
    ids, fresh = tuples.add(np.arange(0, 600_001, 2), values)
    marks = tuples.view.cells[tuples.view.cells >= 0] >> 32
    assert len(np.unique(marks)) < len(marks), "no two hash alike: the test tests nothing"
    assert len(np.unique(ids)) == len(fresh) == 300_000


def test_memory_is_given_back() -> None:
    tuples = TupleMap()
    ids, _ = tuples.add(np.arange(0, 30_001, 3), np.arange(30_000))
    full = tuples.nbytes
    tuples.remove(ids[10:])
    tuples.check()
    assert tuples.nbytes < full / 2
    assert (tuples.find(np.arange(0, 31, 3), np.arange(30)) == ids[:10]).all()
