"""Changes that are broken off, by Ctrl-C or for lack of memory, lose nothing and double nothing."""

from __future__ import annotations

import pickle
from concurrent.futures import CancelledError, Future, wait
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


def _filled(monkeypatch: pytest.MonkeyPatch) -> Tamis:
    monkeypatch.setattr(module, "_AT_ONCE", 0)  # even so few are moved step by step
    matcher = Tamis()
    rows = [[(0, 0, 0, i % VALUES, i % VALUES)] for i in range(MANY)]
    matcher.add(np.arange(MANY), from_rows(rows))
    return matcher


def _event(value: int) -> EventBatch:
    pairs = Pairs(np.array([0, 1]), np.array([0], np.int32), np.array([value]))
    return EventBatch(1, pairs=pairs)


def _whole(matcher: Tamis) -> None:
    matcher.settle()
    for value in range(VALUES):
        found = sorted(matcher.match(_event(value)).slots.tolist())
        assert found == [slot for slot in matcher.clauses.live_slots() if slot % VALUES == value]
    matcher.check()


def _moving(matcher: Tamis) -> None:
    matcher.match(_event(7))
    matcher._plan()
    assert matcher._planning is not None
    wait([matcher._planning])
    matcher.match(_event(7))
    assert matcher._next is not None


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["insert_all", "remove_all"])
@pytest.mark.parametrize("doing", ["match", "add", "remove"])
def test_a_move_that_is_broken_off(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], step: str, doing: str
) -> None:
    matcher = _filled(monkeypatch)
    _moving(matcher)

    def fails(*_: Any) -> Any:
        raise kind

    def do() -> None:
        if doing == "match":
            matcher.match(_event(7))
        elif doing == "add":
            matcher.add(np.array([MANY]), from_rows([[(0, 0, 0, 0, 0)]]))
        else:
            matcher.remove(np.array([3]))

    with monkeypatch.context() as patched:
        patched.setattr(module, step, fails)
        with pytest.raises(kind):
            do()
    _whole(matcher)
    do()
    _whole(matcher)


def test_a_new_plan_that_cannot_be_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = _filled(monkeypatch)
    matcher.match(_event(7))
    matcher._plan()
    assert matcher._planning is not None
    wait([matcher._planning])

    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(np, "concatenate", fails)
        with pytest.raises(MemoryError):
            matcher.match(_event(7))
    _whole(matcher)


def test_a_plan_that_cannot_be_made_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = _filled(monkeypatch)
    matcher.match(_event(7))

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(module, "lay_out", fails)
        matcher._plan()
        assert matcher._planning is not None
        wait([matcher._planning])
    _whole(matcher)


def test_a_change_that_is_broken_off_while_a_plan_is_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = _filled(monkeypatch)
    matcher.match(_event(7))
    matcher._plan()

    def fails(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "remove_all", fails)
        with pytest.raises(KeyboardInterrupt):
            matcher.remove(np.array([3]))
    _whole(matcher)


def test_a_process_that_is_forked_while_a_plan_is_made_makes_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = _filled(monkeypatch)
    matcher.match(_event(7))
    matcher._plan()
    assert matcher._planning is not None
    matcher._planning = Future()  # as a child sees it: nobody works on it
    matcher._workers._process = -1
    matcher.settle()
    _whole(matcher)


def test_what_comes_out_of_a_pickle_in_shared_memory_may_be_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = _filled(monkeypatch)
    matcher.match(_event(7))
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
