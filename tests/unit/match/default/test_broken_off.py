"""Changes that are broken off, by Ctrl-C or for lack of memory, lose nothing and double nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pytest

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import from_rows
from tamis.match.default import matcher as module
from tamis.match.default.matcher import Tamis
from tamis.match.default.workers import _Together

MANY, VALUES = 2000, 50


@pytest.fixture
def matcher(monkeypatch: pytest.MonkeyPatch) -> Tamis:
    monkeypatch.setattr(module, "_AT_ONCE", 0)  # even so few are moved step by step
    made = Tamis()
    rows = [[(0, 0, 0, i % VALUES, i % VALUES)] for i in range(MANY)]
    made.add(np.arange(MANY), from_rows(rows))
    made.match(_event(7))
    return made


@contextmanager
def _broken(where: Any, step: str, kind: type[BaseException]) -> Iterator[None]:
    """A step raises, in the body."""

    def fails(*_: Any, **__: Any) -> Any:
        raise kind

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(where, step, fails)
        yield


def _event(value: int) -> EventBatch:
    pairs = Pairs(np.array([0, 1]), np.array([0], np.int32), np.array([value]))
    return EventBatch(1, pairs=pairs)


def _whole(matcher: Tamis) -> None:
    matcher.settle()
    for value in range(VALUES):
        found = sorted(matcher.match(_event(value)).slots.tolist())
        assert found == [slot for slot in matcher.clauses.live_slots() if slot % VALUES == value]
    matcher.check()


def _planned(matcher: Tamis) -> None:
    """A plan is made, and not yet taken over."""
    matcher._plan()
    assert matcher._planning is not None
    wait([matcher._planning])


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["insert_all", "remove_all"])
@pytest.mark.parametrize("doing", ["match", "add", "remove"])
def test_a_move_that_is_broken_off(
    matcher: Tamis, kind: type[BaseException], step: str, doing: str
) -> None:
    _planned(matcher)
    matcher.match(_event(7))
    assert matcher._next is not None

    def do() -> None:
        if doing == "match":
            matcher.match(_event(7))
        elif doing == "add":
            matcher.add(np.array([MANY]), from_rows([[(0, 0, 0, 0, 0)]]))
        else:
            matcher.remove(np.array([3]))

    with _broken(module, step, kind), pytest.raises(kind):
        do()
    _whole(matcher)
    do()
    _whole(matcher)


def test_a_new_plan_that_cannot_be_taken_over(matcher: Tamis) -> None:
    _planned(matcher)
    with _broken(np, "concatenate", MemoryError), pytest.raises(MemoryError):
        matcher.match(_event(7))
    _whole(matcher)


def test_a_plan_that_cannot_be_made_leaves_the_old_one(matcher: Tamis) -> None:
    with _broken(module, "lay_out", MemoryError):
        _planned(matcher)
    _whole(matcher)


def test_a_change_that_is_broken_off_while_a_plan_is_being_made(matcher: Tamis) -> None:
    matcher._plan()
    with _broken(module, "remove_all", KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        matcher.remove(np.array([3]))
    _whole(matcher)


def test_a_process_that_is_forked_while_a_plan_is_made_makes_its_own(matcher: Tamis) -> None:
    matcher._plan()
    assert matcher._planning is not None
    matcher._planning = Future()  # as a child sees it: nobody works on it
    matcher._workers._process = -1
    matcher.settle()
    _whole(matcher)


def test_what_comes_out_of_a_pickle_in_shared_memory_may_be_changed(matcher: Tamis) -> None:
    buffers: list[pickle.PickleBuffer] = []
    kept = pickle.dumps(matcher, protocol=5, buffer_callback=buffers.append)
    shared = [bytes(each.raw()) for each in buffers]  # cannot be written to
    assert shared
    again: Tamis = pickle.loads(kept, buffers=shared)
    again.remove(np.array([3, 57]))
    again.add(np.array([3]), from_rows([[(0, 0, 0, 3, 3)]]))
    _whole(again)
    _whole(matcher)


def test_a_call_that_is_broken_off_waits_for_its_threads_and_begins_no_more() -> None:
    """The next call uses the rooms of those still at work."""
    together, begun, go = _Together(), Event(), Event()
    done: list[str] = []

    def slow() -> None:
        begun.set()
        go.wait(10)
        done.append("slow")

    worker = Thread(target=together.do, args=(slow,))
    worker.start()
    assert begun.wait(10)
    Timer(0.05, go.set).start()
    together.end()
    assert done == ["slow"]
    with pytest.raises(CancelledError):
        together.do(lambda: done.append("late"))
    assert done == ["slow"]
    worker.join()
