"""Engines whose conditions call operators, against the definition of truth."""

from __future__ import annotations

import pickle
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Operator, Schema, TamisError, operator, schedulers
from tamis.errors import ConditionError, NeverTrueError
from tamis.model.operator import Signature
from tamis.model.printer import to_text
from tamis.testing import operator_cases as cases
from tamis.testing.operator_checks import compare_schedulers
from tests.schemas import one_type
from tests.unit.engine.calls.filled import EVENTS, expected, filled, patient


@pytest.mark.parametrize("name", schedulers())
def test_answers_are_those_of_the_definition(name: str) -> None:
    found = compare_schedulers(60, seed=3, names=(name,))
    assert found.disagreements == 0
    assert found.matches > 50


@pytest.fixture
def engine() -> Engine:
    return Engine(cases.SCHEMA, operators=cases.OPERATORS)


def test_bits_batches_single_events_and_explanations_agree() -> None:
    engine, live = filled()
    right = [expected(live, event) for event in EVENTS]
    assert any(right)
    assert [set(answer) for answer in engine.match_batch(EVENTS)] == right
    assert [set(engine.match(event)) for event in EVENTS] == right
    bits = engine.match_bitmap(EVENTS)
    assert [set(bits[at]) for at in range(len(EVENTS))] == right
    part = engine.encode(EVENTS)[5:9]
    assert [set(answer) for answer in engine.match_batch(part)] == right[5:9]
    for event, ids in zip(EVENTS[:8], right, strict=False):
        for id in live:
            assert bool(engine.explain(id, event)) == (id in ids)


def test_bits_of_a_batch_without_candidates() -> None:
    @operator(reads=("name",), run="here")
    def long(name: str) -> bool:
        return len(name) > 2

    schema = Schema.from_dict(one_type("e", {"name": "text", "price": "integer"}))
    with Engine(schema, operators=[long]) as engine:
        engine.subscribe("price < 5 and long()", id=1)
        assert engine.match_bitmap([{"price": 9, "name": "oak"}]).counts().tolist() == [0]
        assert engine.match_bitmap([{"price": 1, "name": "oak"}]).counts().tolist() == [1]


def test_events_from_arrow_are_read_where_an_operator_asks() -> None:
    @operator(reads=("picture",), gives={"n": "number"}, run="here")
    def size(picture: bytes) -> int:
        return len(picture)

    schema = Schema.from_dict({"attributes": {"price": "integer", "picture": "opaque"}})
    engine = Engine(schema, operators=[size])
    engine.subscribe("size(?n) and ?n > 2 and price < 5", id="large")
    table = pa.table({"price": [1, 1, 9, 1], "picture": [b"abc", b"a", b"abcd", None]})
    assert list(engine.match_batch(table)) == [["large"], [], [], []]
    assert engine.report()["size"].events == 2, "not where the price or the picture rules it out"


def test_subscriptions_come_and_go() -> None:
    engine, live = filled(20)
    chance = random.Random(1)
    while live:
        for id in chance.sample(sorted(live), min(4, len(live))):
            engine.unsubscribe(id)
            del live[id]
        engine.check()
        engine.calls.scheduler.check()
        event = chance.choice(EVENTS)
        assert set(engine.match(event)) == expected(live, event)
    assert len(engine.calls) == len(engine.calls.predicates) == 0


def test_saved_opened_and_pickled(tmp_path: Path) -> None:
    engine, live = filled()
    right = [expected(live, event) for event in EVENTS]
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved", operators=cases.OPERATORS)
    again: Engine = pickle.loads(pickle.dumps(engine))
    for each in (patient(opened), patient(again)):
        assert [set(answer) for answer in each.match_batch(EVENTS)] == right
        each.unsubscribe(0)
        assert 0 not in {id for answer in each.match_batch(EVENTS) for id in answer}
    with pytest.raises(TamisError, match="operator"):
        Engine.open(tmp_path / "saved")


def test_a_table_of_conditions_with_operators(engine: Engine) -> None:
    _, live = filled()
    table = pa.table({"id": list(live), "condition": [to_text(each) for each in live.values()]})
    patient(engine).subscribe_table(table)
    assert [set(answer) for answer in engine.match_batch(EVENTS)] == [
        expected(live, event) for event in EVENTS
    ]
    wrong = pa.table({"id": [100, 101], "condition": ["price < 3", "nothing(3)"]})
    with pytest.raises(ConditionError, match="row 1: unknown operator 'nothing'"):
        engine.subscribe_table(wrong)
    assert 100 not in engine


def test_equal_calls_are_evaluated_once_whatever_their_variables_are_called(engine: Engine) -> None:
    for text in (
        "one(a, ?x) and ?x > 1",
        "one(a, ?people) and ?people < 2",
        "one(a, 2) and price < 20",
        "not one(a, ?y) and one(b, ?y)",
    ):
        engine.subscribe(text)
    assert len(engine.calls.predicates) == 5  # with two limits, with 2, without, and the one of b
    event = cases.event(random.Random(2))
    event["seen"] |= {"one a": [1, 2, 3], "one b": [3, 4]}
    assert sorted(engine.match(event)) == [0, 1, 2, 3]
    assert engine.report()["one"].events == 2, "one of a, one of b"


def test_a_constraint_on_one_call_rules_out_before_others_are_evaluated() -> None:
    engine = Engine(cases.SCHEMA, operators=cases.OPERATORS, scheduler="naive")
    for limit in range(10):
        engine.subscribe(f"one(a, ?x) and ?x > {limit} and one(b, ?y) and one(c, ?z) and ?y > ?z")
    seen = {"one a": [0], "one b": [2], "one c": [1]}
    event = {"price": 1, "seen": seen}
    assert engine.match(event) == []
    assert engine.report()["one"].events == 1, "no value of a is above 0"
    seen["one a"] = [5, 3]
    assert sorted(engine.match(event)) == [0, 1, 2, 3, 4]
    assert engine.report()["one"].events == 4


def test_what_ordinary_predicates_rule_out_is_not_evaluated(engine: Engine) -> None:
    engine.subscribe("price < 3 and flag(a)")
    engine.subscribe("price >= 3 or flag(b)")
    seen = {"flag a": True, "flag b": True}
    assert engine.match({"price": 5, "seen": seen}) == [1]
    assert engine.report()["flag"].events == 0
    assert sorted(engine.match({"price": 1, "seen": seen})) == [0, 1]
    assert engine.report()["flag"].events == 2


def test_a_batch_operator_is_called_once_for_the_events_that_want_it() -> None:
    calls: list[int] = []

    def long(seen: list[Any]) -> list[bool]:
        calls.append(len(seen))
        return [bool(each) for each in seen]

    signature = Signature("long", (), ("seen",))
    engine = Engine(cases.SCHEMA, operators=[Operator(long, signature, run="here", batch=True)])
    engine.subscribe("long() and price < 5")
    events = [{"price": number % 10, "seen": {"x": number}} for number in range(40)]
    assert [len(answer) for answer in engine.match_batch(events)] == [
        int(number % 10 < 5) for number in range(40)
    ]
    assert calls == [20]


def test_faults_make_their_own_subscriptions_fail_and_are_reported(engine: Engine) -> None:
    for text in ("flag(a)", "not flag(a)", "flag(a) or flag(b)", "flag(b)", "price < 20"):
        engine.subscribe(text)
    event = {"price": 1, "seen": {"flag a": "fails", "flag b": True}}
    assert sorted(engine.match(event)) == [2, 3, 4]
    assert engine.report()["flag"].raised == 1
    assert "RuntimeError: flag a fails" in str(engine.report())


def test_a_hanging_operator_delays_events_by_its_timeout_and_is_set_aside() -> None:
    def hangs(seen: Any) -> bool:
        time.sleep(1e6)
        return True

    signature = Signature("hangs", (), ("seen",))
    engine = Engine(
        cases.SCHEMA, operators=[Operator(hangs, signature, timeout=0.1), *cases.OPERATORS]
    )
    engine.subscribe("hangs()", id="never")
    engine.subscribe("flag(a)", id="flagged")
    for _ in range(8):
        assert engine.match({"price": 1, "seen": {"flag a": True}}) == ["flagged"]
    count = engine.report()["hangs"]
    assert (count.timeouts, count.set_aside) == (5, 3)


def test_what_is_refused(engine: Engine) -> None:
    with pytest.raises(NeverTrueError, match="never true: flag"):
        engine.subscribe("price < 3 and flag(a) and not flag(a)")
    engine.subscribe("one(a, ?x) and not one(b, ?x)")
    assert engine.condition(0) == "one(a, ?x) and not one(b, ?x)"
    with pytest.raises(TamisError, match="adaptive"):
        Engine(cases.SCHEMA, scheduler="adaptiv")


BOOLEANS = ("every(true) and every(1)", "every(1) and every(1.0)", "every(?x) and one(b, ?x)")
OVERFLOWS = ("every(?h) and ?h * ?h > 1", "every(?h) and not ?h * ?h > 1")


@pytest.mark.parametrize(
    ("texts", "given", "other", "wanted"),
    [
        (BOOLEANS, [1], [True], [1]),
        (BOOLEANS, [True], [1], []),
        (BOOLEANS, [True, 1], [1.0], [0, 1, 2]),
        (OVERFLOWS, [1e308], [], []),
        (OVERFLOWS, [3], [], [0]),
    ],
)
def test_values_of_odd_kinds(
    engine: Engine, texts: tuple[str, ...], given: list[Any], other: list[Any], wanted: list[int]
) -> None:
    for text in texts:
        engine.subscribe(text)
    event = {"price": 1, "seen": {"one a": given, "one b": other}}
    assert sorted(engine.match(event)) == wanted


def test_an_operator_registered_by_the_decorator_is_found() -> None:
    @operator(name="testing.odd", reads=("price",), run="here")
    def odd(price: int) -> bool:
        return price % 2 == 1

    engine = Engine(cases.SCHEMA)
    engine.subscribe("testing.odd()")
    assert engine.match({"price": 3, "seen": {}}) == [0]
    assert engine.match({"price": 4, "seen": {}}) == []


@pytest.mark.parametrize("step", ["patterns", "calls", "matcher", "slot_table"])
@pytest.mark.parametrize("doing", ["subscribe", "unsubscribe"])
def test_ctrl_c_between_any_two_steps_leaves_the_engine_whole(
    monkeypatch: pytest.MonkeyPatch, step: str, doing: str
) -> None:
    engine, live = filled()
    part = getattr(engine, step)
    name = {"subscribe": "add", "unsubscribe": "remove"}[doing]
    if doing == "unsubscribe" and step == "slot_table":
        pytest.skip("the last step of all")
    real = getattr(part, name)
    done: list[int] = []

    def interrupted(*given: Any) -> Any:
        result = real(*given) if step != "slot_table" else None
        if not done:
            done.append(1)
            raise KeyboardInterrupt
        return result

    text = "one(a, ?x) and ?x > 1 and price < 8"
    with monkeypatch.context() as patched:
        patched.setattr(part, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.subscribe(text, id=100) if doing == "subscribe" else engine.unsubscribe(1)
    if 1 not in engine:
        assert doing == "unsubscribe"
        del live[1]
    engine.check()
    engine.calls.scheduler.check()
    engine.subscribe(text, id=200)
    engine.unsubscribe(200)
    for event in EVENTS[:5]:
        assert set(engine.match(event)) == expected(live, event)


def test_one_call_for_events_that_ask_different_things() -> None:
    """An operator that takes pairs answers all that wait for it, whatever their constants are."""
    asked: list[list[tuple[int, str]]] = []

    @operator(reads=("n",), arguments={"word": "text"}, batch="pairs", run="here", cost=1.0)
    def lettersAre(n: list[int], word: list[str]) -> list[Any]:  # noqa: N802
        asked.append(list(zip(n, word, strict=True)))
        return [ValueError("odd") if each < 0 else len(text) == each for each, text in asked[-1]]

    schema = Schema.from_dict(one_type("event", {"n": "integer!", "m": "integer!"}))
    engine = Engine(schema, operators=lettersAre, scheduler="naive")
    words = {"red": 3, "blue": 4, "olive": 5}
    for word, length in words.items():
        engine.subscribe(f"m = {length} and lettersAre({word})", id=word)
    events = [{"n": length, "m": length} for length in words.values()] + [{"n": -1, "m": 3}]
    found = [list(ids) for ids in engine.match_batch(events)]
    assert found == [["red"], ["blue"], ["olive"], []]
    assert asked == [[(3, "red"), (4, "blue"), (5, "olive"), (-1, "red")]], "one call"
    assert engine.match({"n": 4, "m": 4}) == ["blue"]
    assert engine.explain("blue", {"n": 4, "m": 4}).holds
    report = engine.report()["lettersAre"]
    assert (report.faults, report.last) == (1, "raised: ValueError: odd")
