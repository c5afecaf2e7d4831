"""A dict that is made when it is needed is a dict."""

from __future__ import annotations

import pickle
from threading import Barrier
from time import sleep

from tamis.engine.lazy_dict import LazyDict
from tests.running import in_threads


def test_its_size_is_known_before_it_is_made() -> None:
    made: list[int] = []

    def make() -> dict[str, int]:
        made.append(1)
        return {"a": 1, "b": 2}

    later = LazyDict(make, 2)
    assert len(later) == 2
    assert later
    assert not made
    assert later.find("a") == 1
    assert later.find("c") is None
    assert "b" in later
    assert list(later) == ["a", "b"]
    later["c"] = 3
    later.put_all([("d", 4), ("a", 0)])
    del later["b"]
    assert later.pop("c") == 3
    assert dict(later) == {"a": 0, "d": 4}
    assert len(later) == 2
    assert made == [1]


def test_without_a_function_it_is_empty_and_it_is_pickled_as_what_it_holds() -> None:
    later: LazyDict[str, int] = LazyDict()
    assert not later
    assert "a" not in later
    later["a"] = 1
    assert dict(later) == {"a": 1}
    later = LazyDict(lambda: {"a": 1}, 1)
    assert dict(pickle.loads(pickle.dumps(later))) == {"a": 1}


def test_two_threads_write_to_one() -> None:
    start = Barrier(2)

    def make() -> dict[int, int]:
        sleep(0.05)
        return {0: 0}

    later = LazyDict(make, 1)

    def write(key: int) -> None:
        start.wait()
        later[key] = key

    in_threads(write, [(1,), (2,)])
    assert dict(later) == {0: 0, 1: 1, 2: 2}
