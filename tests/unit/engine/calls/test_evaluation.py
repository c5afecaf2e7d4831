"""What an event costs beyond its operators: of all that hangs on a call, only what survived."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from tamis import Engine, Operator, Schema
from tamis.engine.calls import event_calls
from tamis.engine.calls.clause_calls import CallPredicate, ClauseCalls
from tamis.engine.compiled_condition import parse_calls
from tamis.model.operator import Parameter, Signature

SCHEMA = Schema.from_dict({"attributes": {"a": "integer", "b": "integer"}})
NUMBER = (Parameter("n", "number", True),)


def _operator(name: str, function: Callable[[int], Any], **more: Any) -> Operator:
    return Operator(function, Signature(name, NUMBER, ("a",)), run="here", **more)


GIVES = _operator("gives", lambda a: list(range(a, a + 100)))


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[CallPredicate]:
    """The predicates that are asked one by one, in turn."""
    found: list[CallPredicate] = []
    for name in ("holds", "bindings"):
        real = getattr(CallPredicate, name)

        def counted(self: CallPredicate, *given: Any, _real: Any = real) -> Any:
            found.append(self)
            return _real(self, *given)

        monkeypatch.setattr(CallPredicate, name, counted)
    return found


def _learned(engine: Engine) -> int:
    return engine.calls.scheduler.statistics.learned


@pytest.mark.parametrize("form", ["?n > {i}", "?n != {i}", "?n * 2 > {i}", "?n = {i}"])
@pytest.mark.parametrize("scheduler", ["adaptive", "naive"])
def test_only_what_survivors_ask_is_decided(
    form: str, scheduler: str, decided: list[CallPredicate]
) -> None:
    engine = Engine(SCHEMA, operators=GIVES, scheduler=scheduler)
    for i in range(300):
        engine.subscribe(f"b = {i} and gives(?n) and {form.format(i=i)}", id=i)
    assert engine.match({"a": 290, "b": 295}) == [295]
    assert len(decided) == 1, "one survivor"
    assert _learned(engine) == 1
    decided.clear()
    batch = [{"a": 290, "b": b} for b in range(280, 296)]
    found = [list(ids) for ids in engine.match_batch(batch)]
    assert found[10:] == [[b] for b in range(290, 296)]
    assert len(decided) == len(batch)
    engine.calls.scheduler.check()


def test_where_many_survive_those_that_are_asked_alone_are_asked_and_no_others(
    decided: list[CallPredicate],
) -> None:
    engine = Engine(SCHEMA, operators=GIVES)
    for i in range(400):
        form = "?n > {}" if i % 2 else "?n * 2 > {}"
        engine.subscribe(f"b >= {i} and gives(?n) and {form.format(i)}", id=i)
    found = engine.match({"a": 50, "b": 99})
    assert sorted(found) == list(range(100))
    assert len(decided) == 50, "those with arithmetic; the others all at once"
    assert _learned(engine) == 100
    decided.clear()
    assert sorted(engine.match({"a": -1000, "b": 5})) == []
    assert len(decided) == 6


@pytest.mark.parametrize("fault", [False, True])
def test_faults_and_what_is_not_bound_are_told_to_survivors_only(fault: bool) -> None:
    def fails(a: int) -> list[int]:
        raise ValueError("no")

    engine = Engine(SCHEMA, operators=_operator("fails", fails))
    for i in range(100):
        engine.subscribe(f"b <= {i} and fails(?n) and ?n > {i}", id=i)
        engine.subscribe(f"b <= {i} and fails(?n) and ?n > {i} or b = 99", id=100 + i)
    event = {"a": 1, "b": 98} if fault else {"b": 98}
    assert engine.match(event) == []
    assert _learned(engine) == (2 if fault else 0)


# -- clauses of which an alternative has matched ---------------------------------------------------

MANY = _operator("many", lambda a: list(range(1000)))


@pytest.mark.parametrize("scheduler", ["adaptive", "naive", "sub-order"])
@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_joined_for_a_subscription_that_has_matched(
    scheduler: str, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[ClauseCalls] = []
    real = ClauseCalls.holds

    def counted(self: ClauseCalls, *given: Any) -> bool:
        joined.append(self)
        return real(self, *given)

    monkeypatch.setattr(ClauseCalls, "holds", counted)
    engine = Engine(SCHEMA, operators=MANY, scheduler=scheduler)
    ways = ["many(?x) and ?x = 3", "many(?x) and many(?y) and ?x + ?y < 0"]
    engine.subscribe(" or ".join(reversed(ways) if turned else ways), id=1)
    assert engine.match({"a": 1}) == [1]
    assert not joined
    assert engine.report().given_up == 0
    engine.subscribe("many(?x) and many(?y) and ?x + ?y < ?x or many(?y) and many(?z) and ?y < ?z")
    assert len(engine.match({"a": 1})) == 2
    assert 1 <= len(joined) <= 2


# -- what a call costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["adaptive", "naive", "sub-order"])
def test_a_new_limit_on_a_call_is_taken_to_cost_what_the_call_does(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def dear(a: int) -> list[int]:
        now[0] += 0.005
        return [a]

    monkeypatch.setattr(event_calls, "perf_counter", lambda: now[0])
    engine = Engine(SCHEMA, operators=_operator("dear", dear, cost=0.01), scheduler=scheduler)
    for limit in range(3):
        engine.subscribe(f"b = {limit} and dear(?n) and ?n > {limit}", id=limit)
    statistics = engine.calls.scheduler.statistics
    for a in range(60):
        engine.match({"a": a, "b": 0})
    cost = statistics.cost[0]
    assert 4.5 < cost < 5, "as measured, not as declared"
    engine.subscribe("dear(?n) and ?n > 0.5", id=3)
    assert statistics.cost[3] == cost
    engine.match({"a": 100, "b": 1})
    assert statistics.cost[1] == statistics.cost[3] >= cost, "it was never needed before"
    for id in range(4):
        engine.unsubscribe(id)
    engine.subscribe("dear(?n) and ?n > 7")
    assert engine.calls.scheduler.statistics.cost[0] == 0.01, "another call, for all that is known"


def test_the_number_of_a_call_is_used_again_without_its_cost() -> None:
    one, other = _operator("one", lambda a: [a]), _operator("other", lambda a: [a])
    dear = _operator("dear", lambda a: [a], cost=55.0)
    engine = Engine(SCHEMA, operators=[one, other, dear])
    engine.subscribe("other(?n) and ?n > 100", id="stays")
    engine.subscribe("one(?n) and ?n > 1", id="goes")
    for _ in range(9):
        engine.match({"a": 1})
    engine.unsubscribe("goes")
    engine.subscribe("dear(?n) and ?n > 1")
    engine.subscribe("dear(?n) and ?n > 2")
    assert engine.calls.scheduler.statistics.cost[1:3].tolist() == [55.0, 55.0]


# -- calls that are not tried ----------------------------------------------------------------------


def test_calls_that_are_not_tried_since_the_operator_hung_are_counted() -> None:
    stop = Event()

    def hangs(a: int, k: int) -> bool:
        return stop.wait(60)

    signature = Signature("hangs", (Parameter("k", "number", False),), ("a",))
    engine = Engine(SCHEMA, operators=Operator(hangs, signature, timeout=0.05))
    for k in range(4):
        engine.subscribe(f"hangs({k})", id=k)
    assert engine.match({"a": 1}) == []
    stop.set()
    count = engine.report()["hangs"]
    assert (count.events, count.calls, count.timeouts, count.set_aside) == (4, 1, 4, 0)
    assert count.last == "timeout: it hung for this event before"


# -- many rows -------------------------------------------------------------------------------------


def test_rows_are_looked_at_until_one_fits() -> None:
    looked: list[int] = []

    class Row(tuple[int, ...]):
        def __getitem__(self, at: Any) -> Any:
            looked.append(1)
            return super().__getitem__(at)

    signature = Signature("gives", NUMBER, ("a",))
    rows = tuple(Row((n,)) for n in range(1000))
    for text, most in (("?n != 0", 2), ("?n > 3", 5), ("?n + 0 = 7", 8), ("?n >= 0", 1)):
        looked.clear()
        (asking,) = parse_calls(f"gives(?n) and {text}").calls
        assert asking.predicate.holds(signature, rows)
        assert len(looked) <= most
        assert asking.predicate.bindings(signature, rows)
