"""Engines that know of past events: where clauses lie, and which operators come first."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from tamis import Engine, Operator, Schema, operator, schedulers
from tamis.engine.calls.clause_calls import predicate_of
from tamis.engine.compiled_condition import parse_calls
from tamis.engine.saved.saved_part import SavedPart
from tamis.engine.warm_start import match_and_measure, plan_for
from tamis.errors import EventError
from tamis.model.condition import Call, leaves
from tamis.schedule.statistics import PredicateEstimate
from tamis.testing import operator_cases as cases
from tests.unit.engine.calls.filled import EVENTS as ASKED
from tests.unit.engine.calls.filled import expected, filled, patient

SCHEMA = Schema.from_dict({"attributes": {"n": "integer", "price": "decimal"}, "unknown": "refuse"})


@dataclass
class Past:
    """What an engine knows of past events."""

    sample: pa.Table = field(default_factory=lambda: pa.table({}))
    known: dict[str, PredicateEstimate] = field(default_factory=dict)


def _divides(name: str, calls: list[str], by: int = 1, cost: float = 1.0) -> Operator:
    """True for numbers that can be divided, and notes that it was called."""

    @operator(name=name, reads=("n",), cost=cost, run="here")
    def divides(n: int) -> bool:
        calls.append(name)
        return n % by == 0

    return divides


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def engine(calls: list[str]) -> Iterator[Engine]:
    """`rare` and `often` ask the same of an event, as long as nothing is known."""
    operators = [_divides("often", calls), _divides("rare", calls, by=100)]
    with Engine(SCHEMA, operators=operators) as made:
        made.subscribe("often() and rare()", id="both")
        yield made


EVENTS = pa.table({"n": range(1, 81)})  # of which none is rare
KNOWN = {"often()": PredicateEstimate(1.0, 1.0, 500), "rare()": PredicateEstimate(0.01, 1.0, 500)}


# -- texts of predicates ---------------------------------------------------------------------------


def _text(condition: str) -> str:
    return parse_calls(condition).calls[0].predicate.text


def test_a_text_is_the_same_whatever_variables_are_called() -> None:
    assert _text("p(?x, 1, ?y, ?x)") == _text("p(?far, 1, ?b, ?far)") == "p(?0, 1, ?1, ?0)"
    assert _text("p(?x) and ?x < 2 and ?x >= 1") == _text("?k >= 1 and p(?k) and ?k < 2")
    assert _text("p(?x) and ?x < 2") == "p(?0) and ?0 < 2"
    assert _text("locIn(Bronx)") == _text('locIn("Bronx")')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p(?x, ?x)", "p(?x, ?y)"),
        ("p(1)", "p(1.0)"),
        ("p(1)", "p(true)"),
        ('p("1")', "p(1)"),
        ('p("?0")', "p(?x)"),
        ("p(?x) and ?x < 2", "p(?x) and ?x <= 2"),
        ("p(?x) and ?x < 2", "p(?x) and not ?x < 2"),
        ('p("a, b")', 'p("a", "b")'),
        ('p("a") and not q()', 'p("a\\" and q()")'),
    ],
)
def test_texts_of_others_differ(one: str, other: str) -> None:
    assert _text(one) != _text(other)


def test_texts_differ_where_keys_do() -> None:
    chance = random.Random(1)
    keys: dict[Any, str] = {}
    while len(keys) < 200:
        for leaf in leaves(cases.condition(chance)):
            if isinstance(leaf, Call):
                predicate = predicate_of(leaf)[0]
                assert keys.setdefault(predicate.key, predicate.text) == predicate.text
    assert len(set(keys.values())) == len(keys)


# -- schedulers ------------------------------------------------------------------------------------


def test_without_knowledge_it_takes_a_while_to_find_out(engine: Engine, calls: list[str]) -> None:
    list(engine.match_batch(EVENTS))
    assert calls.count("often") > 1


@pytest.mark.parametrize("name", ["adaptive", "sub-order"])
def test_what_kills_comes_first(name: str, calls: list[str]) -> None:
    operators = [_divides("often", calls), _divides("rare", calls, by=100)]
    for late in (False, True):
        with Engine(SCHEMA, operators=operators, scheduler=name) as engine:
            if late:  # what comes after is known as well
                engine.expect(Past(known=KNOWN))
            engine.subscribe("often() and rare()", id="both")
            engine.expect(Past(known={} if late else KNOWN))
            assert list(engine.match_batch(EVENTS)) == [[]] * 80
        assert calls == ["rare"] * 80, "as the first one decides, nobody asks the second"
        calls.clear()


def test_the_dearest_comes_last(calls: list[str]) -> None:
    """Both kill as often, and both are said to cost the same; one of them does not."""
    operators = [_divides("dear", calls, by=100), _divides("cheap", calls, by=100)]
    known = {
        "dear()": PredicateEstimate(0.01, 900.0, 200),
        "cheap()": PredicateEstimate(0.01, 0.1, 200),
    }
    with Engine(SCHEMA, operators=operators) as engine:
        engine.subscribe("dear() and cheap()", id="both")
        engine.expect(Past(known=known))
        list(engine.match_batch(EVENTS))
    assert calls == ["cheap"] * 80


def _statistics(engine: Engine, text: str) -> tuple[float, float, float]:
    (number,) = [
        number
        for number in engine.calls.predicates
        if engine.calls.predicates[number].predicate.text == text
    ]
    known = engine.calls.scheduler.statistics
    return float(known.p[number]), float(known.cost[number]), float(known.doubt[number])


def test_what_was_seen_often_is_hardly_doubted(engine: Engine) -> None:
    doubt = _statistics(engine, "rare()")[2]
    engine.expect(Past(known=KNOWN))
    p, cost, now = _statistics(engine, "rare()")
    assert (p, cost) == (0.01, 1.0)
    assert now < doubt / 10
    assert engine.calls.scheduler.statistics.learned == 0


def test_learning_goes_on_from_there(engine: Engine) -> None:
    engine.expect(Past(known={"rare()": PredicateEstimate(0.2, 1.0, 30)}))
    list(engine.match_batch(EVENTS))
    assert 0.01 < _statistics(engine, "rare()")[0] < 0.1
    engine.expect(Past(known={"rare()": PredicateEstimate(0.9, 1.0, 500)}))
    assert _statistics(engine, "rare()")[0] < 0.1, "what was learned here stays"


def test_a_call_costs_what_is_known_of_any_of_its_predicates(calls: list[str]) -> None:
    @operator(reads=("n",), gives={"m": "number"}, cost=5, run="here")
    def half(n: int) -> float:
        return n / 2

    with Engine(SCHEMA, operators=[half]) as engine:
        engine.subscribe("half(?m) and ?m > 2", id=1)
        engine.subscribe("half(?m) and ?m > 9", id=2)
        engine.expect(Past(known={"half(?0) and ?0 > 9": PredicateEstimate(0.3, 80.0, 50)}))
        assert _statistics(engine, "half(?0) and ?0 > 9")[:2] == (0.3, 80.0)
        engine.match({"n": 30})
        # One result beside fifty does not change what a call is taken to cost by much.
        assert _statistics(engine, "half(?0) and ?0 > 2")[1] > 70


def test_knowledge_is_saved_pickled_and_kept(
    engine: Engine, calls: list[str], tmp_path: Path
) -> None:
    engine.expect(Past(known=KNOWN))
    engine.save(tmp_path / "engine")
    given: Any = engine.calls.operators
    for again in (
        Engine.open(tmp_path / "engine", operators=given),
        pickle.loads(cloudpickle.dumps(engine)),
    ):
        assert again.calls.known == KNOWN
        assert _statistics(again, "rare()")[:2] == (0.01, 1.0)
        again.unsubscribe("both")
        again.subscribe("rare() and often()", id="again")
        assert _statistics(again, "often()")[:2] == (1.0, 1.0)


def test_knowledge_that_was_not_saved_or_is_lost(engine: Engine) -> None:
    given: Any = engine.calls.operators
    arrays, _, tables = engine.calls.saved()
    fresh = Engine(SCHEMA, operators=given)
    fresh.calls.restore(SavedPart(arrays, {}, tables), SCHEMA)  # as an earlier tamis saved it
    assert fresh.calls.known == {}
    assert len(fresh.calls.predicates) == 2
    engine.expect(Past(known=KNOWN))
    saved = engine.calls.saved()
    del saved.columns["known"]
    with pytest.raises(KeyError):  # which `Engine.open` takes for a damaged folder
        Engine(SCHEMA, operators=given).calls.restore(saved, SCHEMA)


# -- measuring -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", schedulers())
def test_answers_are_the_same_when_all_is_evaluated(scheduler: str) -> None:
    engine, live = filled(seed=7, scheduler=scheduler)
    right = [expected(live, event) for event in ASKED]
    kept = engine.calls.scheduler
    with engine, engine.calls.measuring() as measured:
        found = engine.match_batch(ASKED)
        assert not measured, "it is filled at the end"
    assert [set(each) for each in found] == right
    assert any(right)
    assert engine.calls.scheduler is kept
    assert kept.statistics.learned == 0
    assert measured


def test_every_predicate_of_a_survivor_is_counted(engine: Engine, calls: list[str]) -> None:
    engine.subscribe("n <= 40 and often() and price < 5", id="few")
    engine.subscribe("rare() and not often()", id="never")
    found, seen = match_and_measure(engine, pa.table({"n": range(1, 201), "price": [9.0] * 200}))
    assert [found[99], found[199]] == [["both"], ["both"]]
    assert found.total == 2
    assert {text: (each.seen, each.true, each.faults) for text, each in seen.items()} == {
        "often()": (200, 200, 0),
        "rare()": (200, 2, 0),
    }
    assert all(each.timed == 200 and each.spent > 0 for each in seen.values())
    assert calls.count("rare") == calls.count("often") == 200, "once an event"
    calls.clear()
    with Engine(SCHEMA, operators=[_divides("even", calls, by=2)]) as other:
        other.subscribe("n <= 10 and even()", id=1)  # other events do not count
        _, seen = match_and_measure(other, pa.table({"n": range(1, 101)}))
    assert (seen["even()"].seen, seen["even()"].true, len(calls)) == (10, 5, 10)


def test_faults_are_counted_apart() -> None:
    @operator(reads=("n",), run="here")
    def moody(n: int) -> bool:
        if n % 2:
            raise ValueError("odd")
        return True

    with patient(Engine(SCHEMA, operators=[moody])) as engine:
        engine.subscribe("moody()", id=1)
        _, seen = match_and_measure(engine, pa.table({"n": range(10)}))
        nothing = match_and_measure(engine, pa.table({"price": [1.0]}))
    assert nothing.outcomes == {}, "nothing to read, nothing measured"
    assert seen["moody()"][:3] == (5, 5, 5)


# -- matchers --------------------------------------------------------------------------------------


def _priced(many: int) -> Engine:
    engine = Engine(SCHEMA)
    for id in range(many):
        engine.subscribe(f"price < {id} and n = {id % 7}", id=id)
    return engine


def test_clauses_are_laid_out_for_the_sample() -> None:
    planned, other = _priced(300), _priced(300)
    sample = pa.table(
        {"price": [float(n % 50) for n in range(600)], "n": [n % 7 for n in range(600)]}
    )
    planned.expect(Past(sample))
    assert planned.plan().events == 600
    batch = pa.table({"price": [3.5, 250.0, None], "n": [3, None, 5]})
    assert [sorted(each) for each in planned.match_batch(batch)] == [
        sorted(each) for each in other.match_batch(batch)
    ]
    assert planned.plan().events == 600, "a few others do not change that"


def test_rows_that_are_not_events_are_left_out_or_refused() -> None:
    engine = _priced(10)
    assert plan_for(engine, pa.table({"price": [1.0, float("nan"), 9.0]})) == 2
    assert engine.plan().events == 2
    with pytest.raises(EventError, match=r"another schema than the engine.*'colour'"):
        engine.expect(Past(pa.table({"colour": ["red"]})))
    engine.expect(Past(pa.table({"colour": pa.array([], pa.string())})))  # no rows at all


def test_no_operator_is_called_to_lay_clauses_out(engine: Engine, calls: list[str]) -> None:
    engine.expect(Past(EVENTS))
    plan_for(engine, EVENTS)
    assert calls == []
    assert engine.plan().events == 80


def test_saving_before_any_event_leaves_the_plan_to_the_first_events(tmp_path: Path) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe("price < 5")
    engine.save(tmp_path / "index")
    for each in (engine, Engine.open(tmp_path / "index")):
        each.expect(Past(pa.table({"price": [3.0, 80.0, 4.0]})))
        assert each.plan().events == 3
