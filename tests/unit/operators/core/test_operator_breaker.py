"""Faults count against the constants that had them; an operator that is down is recognised."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from tamis import Engine, Schema, operator
from tamis.model.operator import Fault
from tamis.operators import Operator, Runner
from tamis.operators.operator_breaker import OperatorBreaker
from tests.unit.operators.core.worker_probes import kinds

SCHEMA = Schema.from_dict({"attributes": {"origin": "text", "flight": "integer"}})
MILES = {("JFK", "SFO"): 2586, ("EWR", "SFO"): 2565, ("LGA", "SFO"): 2580}


@operator(reads=("origin",), arguments={"place": "text"}, gives={"miles": "number"}, run="here")
def distant(origin: str, place: str) -> int:
    return MILES[origin, place]


@operator(
    reads=("origin",),
    arguments={"place": "text"},
    gives={"miles": "number"},
    run="here",
    batch="pairs",
)
def farOfMany(origin: list[str], place: list[str]) -> list[int]:  # noqa: N802
    return [MILES[each] for each in zip(origin, place, strict=True)]


@pytest.mark.parametrize("name", ["distant", "farOfMany"])
@pytest.mark.parametrize("bad", [1, 20])
@pytest.mark.parametrize("first", [True, False])
def test_a_bad_constant_silences_its_own_subscription_only(
    name: str, bad: int, first: bool
) -> None:
    engine = Engine(SCHEMA, operators=[distant, farOfMany])
    wrong = [f"{name}(X{number:02}, ?d) and ?d > 100" for number in range(bad)]
    right = [f"{name}(SFO, ?d) and ?d > {limit}" for limit in (2000, 2570)]
    for text in [*wrong, *right] if first else [*right, *wrong]:
        engine.subscribe(text, id=text)
    events = [{"origin": ["JFK", "EWR"][number % 2], "flight": number} for number in range(40)]
    found = [set(ids) for ids in engine.match_batch(events)]
    found += [set(engine.match(event)) for event in events]
    assert found == [set(right), {right[0]}] * 40
    count = engine.report()[name]
    assert len(count.constants) == bad
    assert set(count.constants) == {f'{name}("X{number:02}", ?miles)' for number in range(bad)}
    worst = count.constants[f'{name}("X00", ?miles)']
    assert worst.faults == 80
    assert worst.last is not None
    assert worst.last.startswith("raised: KeyError: (")
    assert worst.set_aside_for is not None
    assert count.set_aside_for is None
    if bad == 1:
        assert f'  {name}("X00", ?miles): 80 faults; set aside for another ' in str(count)


def _down(keys: list[str], *, trusted: bool, seconds: float = 0.0) -> tuple[int, OperatorBreaker]:
    """How many calls of a thousand rounds reach an operator that is down."""
    breaker, reached = OperatorBreaker(5, 30, 600), 0
    for key in keys if trusted else ():
        breaker.answered(key)
    for _ in range(1000):
        for key in keys:
            entered = breaker.enter(key, 0)
            if not isinstance(entered, Fault):
                reached += 1
                breaker.failed(key, entered, "raised: no", 0, seconds)
    return reached, breaker


def test_an_operator_that_is_down_is_set_aside_after_few_calls() -> None:
    keys = [f"k{number}" for number in range(1000)]
    reached, breaker = _down(keys, trusted=True)
    assert reached == 5
    assert breaker.pause_left(0) == 30
    refused = breaker.enter("new", 0)
    assert isinstance(refused, Fault)
    assert "after 5 calls that used to be answered, the last: raised: no" in refused.reason
    # One call tries; an answer ends the pause, for the constants that did not fail themselves.
    entered = breaker.enter("new", 30)
    assert not isinstance(entered, Fault)
    assert isinstance(breaker.enter("k900", 30), Fault)
    breaker.answered("new")
    assert not isinstance(breaker.enter("k900", 30), Fault)


def test_constants_that_never_were_answered_are_tried_once_if_that_is_fast() -> None:
    keys = [f"k{number}" for number in range(1000)]
    reached, breaker = _down(keys, trusted=False)
    assert reached == 1004, "any of them may be right; four failed before the fifth"
    assert not isinstance(breaker.enter("right", 0), Fault)
    reached, breaker = _down(keys, trusted=False, seconds=1.0)
    assert reached == 5, "a timeout each would take too long"
    refused = breaker.enter("right", 0)
    assert isinstance(refused, Fault)
    assert "after faults with 5 different constants" in refused.reason
    assert not isinstance(breaker.enter("right", 30), Fault), "it has its turn"


def test_trusted_constants_are_called_whatever_others_do() -> None:
    keys = [f"k{number}" for number in range(1000)]
    breaker = OperatorBreaker(5, 30, 600)
    breaker.answered("right")
    for key in keys:
        entered = breaker.enter(key, 0)
        if not isinstance(entered, Fault):
            breaker.failed(key, entered, "timeout: no", 0, 1.0)
    assert breaker.trusts("right")
    assert not isinstance(breaker.enter("right", 0), Fault)
    assert breaker.pause_left(0, "right") is None
    breaker.answered("right")
    assert set(breaker.pauses(0)) <= set(keys)


def test_constants_with_an_answer_now_and_then_are_called() -> None:
    breaker = OperatorBreaker(3, 30, 600)
    for number in range(50):
        key = f"k{number % 5}"
        entered = breaker.enter(key, 0)
        assert not isinstance(entered, Fault)
        if number % 15 == 0:
            breaker.failed(key, entered, "raised: no", 0, 0.0)
        else:
            breaker.answered(key)


def test_constants_that_hang_do_not_take_others_with_them() -> None:
    stop = Event()

    def waits(n: int, key: str) -> bool:
        return not key.startswith("bad") or stop.wait(60)

    made = operator(name="waits", reads=("n",), arguments={"key": "text"}, timeout=0.5)(waits)
    with Runner(left=2) as runner:
        assert kinds(runner.call(made, [(1,)], ("good",))) == ["answered"]
        for number in range(4):
            (bad,) = kinds(runner.call(made, [(1,)], (f"bad{number}",)))
            assert bad == ("timeout" if number < 2 else "set aside"), "two calls hang"
            assert kinds(runner.call(made, [(1,)], ("good",))) == ["answered"]
        stop.set()


def test_an_event_waits_once_for_constants_that_hang_and_still_calls_those_it_trusts() -> None:
    ended = Event()

    def waits(flight: int, key: str) -> bool:
        return ended.wait(60) if key.startswith("bad") else True

    made: Operator = operator(
        name="waitsToo", reads=("flight",), arguments={"key": "text"}, timeout=0.5
    )(waits)
    engine = Engine(SCHEMA, operators=made, scheduler="naive")
    engine.subscribe("waitsToo(good)", id="good")
    assert engine.match({"flight": 1}) == ["good"]
    engine.unsubscribe("good")
    for number in range(3):
        engine.subscribe(f"waitsToo(bad{number})", id=number)
    engine.subscribe("waitsToo(good)", id="good")
    found: list[list[Any]] = [engine.match({"flight": number}) for number in (7, 8)]
    ended.set()
    assert found == [["good"]] * 2
    count = engine.report()["waitsToo"]
    assert (count.timeouts, count.calls) == (6, 5)
