"""Threads that match at once, step by step; `test_many_callers` tries what comes of it."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from tamis import Engine, Operator, Schema
from tamis.encode.batch import EventBatch
from tamis.engine import engine_lock
from tamis.engine.change_matcher import change_matcher
from tamis.engine.engine_lock import ALONE, CHANGED, CLOSING, OPEN
from tamis.errors import EngineError
from tamis.match.answers import Matches
from tamis.match.default.readers import TamisReader
from tamis.model.operator import Signature
from tests.unit.engine.interrupting import interrupt

ATTRIBUTES = {"n": "integer", "s": "text", "when": "timestamp"}
SCHEMA = Schema.from_dict({"attributes": ATTRIBUTES})
LISTS = {"e": {"kind": "structs", "attributes": {"n": "integer"}}}
WITH_LISTS = Schema.from_dict({"attributes": {**ATTRIBUTES, **LISTS}})
EVENT = {"n": 1, "s": "abc"}
BATCH = [EVENT, {"n": 7, "s": "x"}, {"n": 3}]
EVERY = Operator(lambda n: True, Signature("every", (), ("n",)), run="here")


def _engine(**options: Any) -> Engine:
    engine = Engine(SCHEMA, operators=EVERY, **options)
    engine.subscribe("n = 1", id="one")
    engine.subscribe("n < 5 or n = 7", id=2)
    engine.subscribe('s like "%b%"', id="pattern")
    engine.match_batch(BATCH * 300)  # enough for a plan that stays
    for _ in range(3):
        assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
        assert engine.match_batch(BATCH).total == 5
    assert engine._lock.state == OPEN
    return engine


def _in_thread(do: Callable[[], Any]) -> Callable[[], Any]:
    """Start something in another thread. The function that is returned waits for its result."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(do())
        except BaseException as why:  # noqa: BLE001 - raised where it is waited for
            found.append(why)

    thread = Thread(target=run, daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(60)
        assert found, "it waits for somebody who does not come"
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]

    return result


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@contextmanager
def _in_the_middle(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> Iterator[None]:
    """Do something in the middle of each batch."""
    find = TamisReader.find

    def stops(self: TamisReader, batch: EventBatch) -> Matches:
        do()
        return find(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(TamisReader, "find", stops)
        yield


def test_two_threads_match_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, both = _engine(), Barrier(2)
    with _in_the_middle(monkeypatch, lambda: both.wait(60)):
        answers = [_in_thread(lambda: engine.match_batch(BATCH)) for _ in range(2)]
        assert [answer().total for answer in answers] == [5, 5]


def test_a_change_waits_for_the_batch_that_has_begun_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, begun, go = _engine(), Event(), Event()
    order: list[str] = []

    def waits() -> None:
        if not begun.is_set():
            begun.set()
            go.wait(60)
            order.append("first batch")

    def match(name: str) -> list[Any]:
        found = engine.match_batch(BATCH)
        order.append(name)
        return found[0]

    def subscribe() -> None:
        engine.subscribe("n > 0", id=3)
        order.append("change")

    with _in_the_middle(monkeypatch, waits):
        first = _in_thread(lambda: match("answer"))
        assert begun.wait(60)
        change = _in_thread(subscribe)
        _until(lambda: engine._lock.state == CLOSING)
        second = _in_thread(lambda: match("second batch"))
        go.set()
        assert sorted(first(), key=str) == [2, "one", "pattern"]
        change()
        assert sorted(second(), key=str) == [2, 3, "one", "pattern"]
    assert order[0] == "first batch"
    assert order.index("change") < order.index("second batch")


def test_the_state_is_looked_at_once_more_in_the_seat() -> None:
    engine = _engine()
    lock = engine._lock
    engine.match(EVENT)
    seat, turn = lock.here.seat, lock.here.seat.turn

    class Late:
        """Somebody closes the seats between the first look and the turn."""

        def __enter__(self) -> None:
            turn.acquire()
            lock.state = CLOSING

        def __exit__(self, *_: object) -> None:
            turn.release()

        def _is_owned(self) -> bool:
            return bool(turn._is_owned())

    for call in (lambda: engine._shared.match(EVENT), lambda: engine._shared.match_batch(BATCH)):
        assert call() is not None
        seat.turn = Late()
        assert call() is None
        seat.turn, lock.state = turn, OPEN


def test_answers_have_their_ids_in_common() -> None:
    engine = _engine()
    found = engine.match_batch(BATCH)
    assert found._ids is engine._lock.kept
    del found
    assert _in_thread(lambda: engine.match_batch(BATCH))()._ids is engine._lock.kept
    engine.unsubscribe(2)
    assert engine._lock.kept is None, "nobody needs a copy of the ids"


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("every()", False),
        ("when < now", False),
        ('s ends with "c"', True),
        ("n = 1 and n in (1, 2)", True),
    ],
)
def test_what_only_one_thread_may_match(condition: str, kept: bool) -> None:
    engine = _engine()
    assert engine._lock.state == OPEN
    engine.subscribe(condition, id="more")
    engine.match(EVENT)
    assert engine._lock.state == (OPEN if kept else ALONE)
    engine.unsubscribe("more")
    engine.match(EVENT)
    assert engine._lock.state == OPEN
    change_matcher(engine, "counting-bit")
    assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
    assert engine._lock.state == ALONE
    change_matcher(engine, "tamis")
    assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
    assert engine.match_batch(BATCH).total == 5
    assert engine._lock.state == OPEN
    engine.extend(WITH_LISTS)
    assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
    assert engine._lock.state == ALONE


def test_each_living_thread_has_a_seat_of_its_own() -> None:
    engine, together = _engine(), Barrier(3)

    def match() -> object:
        together.wait(60)
        assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
        together.wait(60)
        return engine._lock.here.seat

    for _ in range(5):
        seats = [each() for each in [_in_thread(match) for _ in range(3)]]
        seats.append(engine._lock.here.seat)
        assert len(set(map(id, seats))) == 4
    assert len(engine._lock.seats) == 4, "threads that have ended leave their seats to others"


def test_more_threads_than_seats_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_lock, "_SEATS", 2)
    engine, together = _engine(), Barrier(5)

    def match() -> None:
        together.wait(60)
        for _ in range(50):
            assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
            assert engine.match_batch(BATCH).total == 5
        together.wait(60)

    for each in [_in_thread(match) for _ in range(5)]:
        each()
    assert len(engine._lock.seats) == 2


def test_work_is_counted_once() -> None:
    engine = _engine()
    engine.matcher.tally.reset()
    for _ in range(20):
        engine.match(EVENT)
        _in_thread(lambda: [engine.match(EVENT), engine.match_batch(BATCH)])()
    assert engine.matcher.tally.events == engine.matcher.tally.events == 20 * 5
    engine.subscribe("n = 9")
    copy = pickle.loads(pickle.dumps(engine))
    assert copy.matcher.tally.events == engine.matcher.tally.events == 20 * 5


SUBSCRIBE: Callable[[Engine], object] = lambda engine: engine.subscribe("n = 2")  # noqa: E731
CALLS: list[Callable[[Engine], object]] = [
    lambda engine: engine.match(EVENT),
    lambda engine: engine.match_json(json.dumps(EVENT)),
    lambda engine: engine.match_batch(BATCH),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("changed", [False, True])
def test_an_interrupt_leaves_the_seats_free(
    call: Callable[[Engine], object], changed: bool
) -> None:
    engine = _engine()

    def do() -> None:
        if changed:
            engine.unsubscribe(2)
            engine.subscribe("n < 5 or n = 7", id=2)
        call(engine)

    steps = interrupt(do, 1 << 60)
    for after in range(1, steps, max(1, steps // 150)):
        interrupt(do, after)
        if 2 not in engine:
            engine.subscribe("n < 5 or n = 7", id=2)
        assert not engine._lock.is_mine
        others = [
            _in_thread(lambda: engine.match_batch(BATCH).total),
            _in_thread(lambda: engine.subscribe("n > 100", id="other")),
        ]
        assert [each() for each in others] == [5, "other"], f"bytecode {after}"
        engine.unsubscribe("other")
        assert sorted(engine.match(EVENT), key=str) == [2, "one", "pattern"]
    engine.check()


def test_an_interrupt_while_waiting_for_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, begun, go = _engine(), Event(), Event()

    def waits() -> None:
        if not begun.is_set():
            begun.set()
            go.wait(60)

    with _in_the_middle(monkeypatch, waits):
        first = _in_thread(lambda: engine.match_batch(BATCH)[0])
        assert begun.wait(60)
        with monkeypatch.context() as patch:
            patch.setattr(engine._lock, "seats", _Interrupted())
            with pytest.raises(KeyboardInterrupt):
                engine.unsubscribe("one")
        assert engine._lock.state == CLOSING
        change = _in_thread(lambda: engine.unsubscribe("one"))
        go.set()
        assert sorted(first(), key=str) == [2, "one", "pattern"], "the match is still under way"
        change()
    assert sorted(engine.match(EVENT), key=str) == [2, "pattern"]


class _Interrupted:
    def __iter__(self) -> Iterator[Any]:
        raise KeyboardInterrupt


def test_a_finalizer_uses_the_engine_in_the_middle_of_a_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = _engine()
    more = iter(range(100, 200))

    def finalizer() -> None:
        engine.subscribe("n < 5", id=next(more))
        assert 2 in engine.match(EVENT)

    with _in_the_middle(monkeypatch, finalizer):
        assert {2, "one"} <= set(engine.match_batch(BATCH)[0])
        assert engine._lock.state in (CHANGED, CLOSING)
    _in_thread(lambda: engine.unsubscribe(100))()
    assert sorted(engine.match(EVENT), key=str)[-3:] == [2, "one", "pattern"]
    engine.check()


class _Meddling(Mapping[str, Any]):
    """An event that does something when it is read."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do = do

    def __getitem__(self, name: str) -> Any:
        return EVENT[name]

    def __iter__(self) -> Iterator[str]:
        self._do()
        return iter(EVENT)

    def __len__(self) -> int:
        return len(EVENT)


def test_an_event_changes_the_engine_when_it_is_read() -> None:
    def leave_one() -> None:
        for id in engine.ids()[1:]:
            engine.unsubscribe(id)
        assert engine.match(EVENT) == ["one"]

    def leave_none() -> None:
        if "one" in engine:
            engine.unsubscribe("one")

    engine = _engine()
    assert engine.match(_Meddling(leave_one)) == ["one"]
    assert engine.match(_Meddling(leave_none)) == []
    assert engine.match(EVENT) == []
    engine = _engine()
    assert [*engine.match_batch([_Meddling(leave_one)])] == [["one"]]
    assert [*engine.match_batch([_Meddling(leave_none)])] == [[]]
    engine.check()


def test_a_finalizer_does_not_wait_for_somebody_who_waits_for_its_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = _engine()
    change: list[Callable[[], Any]] = []

    def finalizer() -> None:
        if not change:
            change.append(_in_thread(lambda: engine.unsubscribe("one")))
            _until(lambda: engine._lock.state == CLOSING)
            with pytest.raises(EngineError, match="another thread is about to change the engine"):
                engine.unsubscribe(2)

    with _in_the_middle(monkeypatch, finalizer):
        assert sorted(engine.match_batch(BATCH)[0], key=str) == [2, "one", "pattern"]
    change[0]()
    assert sorted(engine.match(EVENT), key=str) == [2, "pattern"]


def test_a_fork_in_the_middle_of_a_match_raises_in_the_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, idle = _engine(), _engine()
    begun, go = Event(), Event()

    def waits() -> None:
        begun.set()
        go.wait(60)

    with _in_the_middle(monkeypatch, waits):
        first = _in_thread(lambda: engine.match_batch(BATCH)[0])
        assert begun.wait(60)
        child = os.fork()
        if not child:
            refused = 0
            for call in (*CALLS, SUBSCRIBE):
                try:
                    call(engine)
                except EngineError as why:
                    refused += "forked while another thread used the engine" in str(why)
            fine = refused == 4 and sorted(idle.match(EVENT), key=str) == [2, "one", "pattern"]
            os._exit(0 if fine else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        go.set()
        assert sorted(first(), key=str) == [2, "one", "pattern"]
    assert engine.subscribe("n = 2", id=3) == 3


def test_a_copy_has_seats_of_its_own() -> None:
    engine = _engine()
    copy = pickle.loads(pickle.dumps(engine))
    engine.unsubscribe("one")
    found = _in_thread(lambda: copy.match(EVENT))()
    assert sorted(found, key=str) == [2, "one", "pattern"]
    assert sorted(engine.match(EVENT), key=str) == [2, "pattern"]
