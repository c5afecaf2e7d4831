"""A plan shows where clauses lie; here each has one evident place."""

from __future__ import annotations

import json
from collections import Counter
from time import monotonic
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import workload
from tamis.encode.batch import Column, EventBatch
from tamis.encode.terms import Terms
from tamis.engine import Engine
from tamis.errors import MatcherError
from tamis.index.clauses import SOME
from tamis.match.default.matcher import Tamis
from tamis.match.default.planning import layout
from tamis.match.default.planning import survey as expected
from tamis.match.plan import CELLS, COMBINATION, DENSE, SPARSE, VALUE, Plan, Route
from tamis.model.schema import Schema
from tests.loaded import loaded

Int64s = NDArray[np.int64]
EVENTS = 600
MOST = 1_000_000  # of values
# Attributes: single values; narrow ranges; three with wide ranges; one that most satisfy; two
# with few values each, which are asked for together. The first of these has other values too.
POINT, NARROW, WIDE, MOSTLY, ONE, OTHER = 0, 1, (2, 3, 4), 5, 6, 7
FEW = 150


def _clauses(*columns: tuple[int, Any, Any]) -> Terms:
    """Clause i is a conjunction of `low[i] <= attribute <= high[i]`, one for each column."""
    many, size = len(columns), len(columns[0][1])
    low, high = (np.stack([each[i] for each in columns], axis=1).ravel() for i in (1, 2))
    return Terms(
        np.arange(size + 1, dtype=np.int64) * many,
        np.tile(np.array([each[0] for each in columns], np.int32), size),
        np.tile(np.arange(many, dtype=np.int16), size),
        np.full(size * many, SOME, np.int8),
        low.astype(np.int64),
        high.astype(np.int64),
    )


def _ranges(rng: np.random.Generator, size: int, width: int) -> tuple[Int64s, Int64s]:
    low = rng.integers(0, MOST - width, size)
    return low, low + width


def _add(matcher: Tamis, terms: Terms) -> Int64s:
    slots = matcher.clauses.slots + np.arange(terms.clauses)
    matcher.add(slots, terms)
    return slots


def _events(rng: np.random.Generator) -> EventBatch:
    every = {a: Column(rng.integers(0, MOST, EVENTS)) for a in (NARROW, *WIDE, MOSTLY)}
    half = np.arange(0, EVENTS, 2)
    every[POINT] = Column(rng.integers(0, 5000, len(half)), half)
    every[OTHER] = Column(rng.integers(0, FEW, EVENTS))
    most = np.flatnonzero(np.arange(EVENTS) % 10)
    every[ONE] = Column(rng.integers(0, FEW, len(most)), most)
    return EventBatch(EVENTS, columns=every, stamp=0)


class World:
    """A matcher that has seen events, and the slots of each sort of clause."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.matcher, self.batch = Tamis(), _events(rng)
        points = np.arange(5000)
        wide = [(a, *_ranges(rng, 4000, MOST // 6)) for a in WIDE]
        low = rng.integers(0, MOST // 50, 3000)
        pairs = np.arange(FEW * FEW)
        one, other = pairs // FEW, pairs % FEW
        rare = np.arange(FEW, FEW + 3000)
        self.slots = {
            VALUE: _add(self.matcher, _clauses((POINT, points, points))),
            CELLS: _add(self.matcher, _clauses((NARROW, *_ranges(rng, 5000, 300)))),
            SPARSE: _add(self.matcher, _clauses(*wide)),
            DENSE: _add(self.matcher, _clauses((MOSTLY, low, np.full(3000, MOST)))),
            COMBINATION: _add(self.matcher, _clauses((ONE, one, one), (OTHER, other, other))),
        }
        _add(self.matcher, _clauses((ONE, rare, rare)))
        self.found = self.matcher.match(self.batch)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def plan(world: World) -> Plan:
    """The plan with the figures of all clauses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expected, "_ASKED", 1 << 20)
        return world.matcher.plan()


def _of(plan: Plan, sort: str) -> list[Route]:
    return [route for route in plan.routes if route.sort == sort]


def _sum(routes: Any, of: str) -> float:
    return float(sum(getattr(route, of) for route in routes))


@pytest.mark.parametrize("sort", [VALUE, CELLS, SPARSE, DENSE, COMBINATION])
def test_clauses_go_where_they_evidently_belong(world: World, plan: Plan, sort: str) -> None:
    here, expected = _sum(_of(plan, sort), "clauses"), len(world.slots[sort])
    expected += 3000 if sort == VALUE else 0
    # Of wide ranges a few begin and end just where a line of bitmap does; the others are exact.
    assert here == pytest.approx(expected, rel=0.02 if sort in (SPARSE, DENSE) else 0)


def test_routes_name_their_attributes(plan: Plan) -> None:
    assert {route.attributes for route in _of(plan, VALUE)} == {(POINT,), (ONE,)}
    assert {route.attributes for route in _of(plan, CELLS)} == {(NARROW,)}
    assert {route.attributes for route in _of(plan, COMBINATION)} == {(ONE, OTHER)}
    (sparse,) = _of(plan, SPARSE)
    assert {column.attribute for column in sparse.columns} == set(WIDE)
    assert all(column.rows > 10 for column in sparse.columns)
    (dense,) = _of(plan, DENSE)
    assert MOSTLY in {column.attribute for column in dense.columns}


def test_routes_have_all_clauses_once(world: World, plan: Plan) -> None:
    assert _sum(plan.routes, "clauses") == plan.clauses == len(world.matcher)
    assert plan.moving == 0
    assert all(route.entries >= route.clauses for route in plan.routes)
    narrow = _of(plan, CELLS)
    assert _sum(narrow, "entries") > _sum(narrow, "clauses"), "a range lies in several cells"
    points = _of(plan, VALUE)[0]
    assert points.entries == points.clauses == points.parts == 5000
    assert _sum(plan.routes, "bytes") + plan.table_bytes < plan.bytes == world.matcher.nbytes


def test_what_is_expected_of_buckets(plan: Plan) -> None:
    points, rare = _of(plan, VALUE)
    # Half of the events have one of 5000 values, each asked for once.
    assert points.look_ups == pytest.approx(0.5, abs=0.05)
    assert points.met == pytest.approx(0.5, abs=0.05)
    assert rare.look_ups == pytest.approx(0.9, abs=0.05)
    # Of the others most have a pair of values, and each is asked for once.
    (pairs,) = _of(plan, COMBINATION)
    assert pairs.look_ups == pytest.approx(0.9, abs=0.05)
    assert pairs.met == pytest.approx(0.9, abs=0.1)
    narrow = _of(plan, CELLS)  # 5000 ranges of 300 in a million are 1.5; runs of cells are wider
    assert 1.5 < _sum(narrow, "met") < 8
    for route in (points, rare, pairs, *narrow):
        assert route.ns > plan.costs["probe"] * route.look_ups, "clauses are met as well"
        assert route.saved_ns > 0


def test_what_is_expected_of_families(plan: Plan) -> None:
    (sparse,), (dense,) = _of(plan, SPARSE), _of(plan, DENSE)
    assert 4000 / 6**3 < sparse.met < 2 * 4000 / 6**3, "rows are coarser than ranges"
    assert dense.met == pytest.approx(3000 * 0.99, rel=0.03)
    assert sparse.parts == -(-sparse.clauses // 512)
    assert sparse.look_ups == sparse.parts * len(sparse.columns)
    assert sparse.ns > 0
    assert dense.ns > 0


def test_a_combination_of_attributes_without_other_keys() -> None:
    matcher, rng = Tamis(), np.random.default_rng(6)
    pairs = np.arange(FEW * FEW)
    one, other = pairs // FEW, pairs % FEW
    _add(matcher, _clauses((ONE, one, one), (OTHER, other, other)))
    matcher.match(_events(rng))
    assert [route.sort for route in matcher.plan().routes] == [COMBINATION]


def test_totals_and_matches(world: World, plan: Plan) -> None:
    assert plan.events == EVENTS
    assert plan.ns == pytest.approx(_sum(plan.routes, "ns"))
    assert plan.met == pytest.approx(_sum(plan.routes, "met"))
    keyed = [route for route in plan.routes if route.sort not in (SPARSE, DENSE)]
    assert plan.look_ups == pytest.approx(_sum(keyed, "look_ups"))
    assert plan.matches == pytest.approx(world.found.total / EVENTS, rel=0.05)
    assert plan.costs["visit"] > 0


def test_cells_by_attribute(plan: Plan) -> None:
    cuts = {cut.attribute: cut for cut in plan.cuts}
    assert set(cuts) == {POINT, NARROW, *WIDE, MOSTLY, ONE, OTHER}
    assert cuts[POINT].bound == pytest.approx(0.5, abs=0.05)
    assert cuts[POINT].intervals == 5000
    assert cuts[POINT].cells == 5001 + 1, "a cut at each value, and one behind the last"
    assert cuts[WIDE[0]].rows > 10
    assert all(cut.exact == 1 for cut in plan.cuts), "all ends are cuts"


def test_intervals_that_came_later_are_not_exact() -> None:
    matcher, rng = Tamis(), np.random.default_rng(2)
    _add(matcher, _clauses((NARROW, *_ranges(rng, 1000, 300))))
    matcher.match(_events(rng))
    _add(matcher, _clauses((NARROW, *_ranges(rng, 500, 310))))
    (cut,) = matcher.plan().cuts
    assert cut.intervals == 1500
    assert 0.6 < cut.exact < 0.75


def test_a_plan_survives_json(world: World) -> None:
    plan = world.matcher.plan(np.array([0, 5000, 10_000]))
    assert len(plan.choices) == 3
    assert json.loads(json.dumps(plan.to_dict(), allow_nan=False))["clauses"] == plan.clauses
    names = [f"a{at}" for at in range(8)]
    named = plan.named(names)
    assert {route.attributes for route in _of(named, COMBINATION)} == {("a6", "a7")}
    assert {cut.attribute for cut in named.cuts} == set(names)
    assert named.choices[0].taken.attributes == ("a0",)
    (sparse,) = _of(named, SPARSE)
    assert {column.attribute for column in sparse.columns} == {"a2", "a3", "a4"}


@pytest.mark.parametrize("sort", [VALUE, CELLS, SPARSE, DENSE, COMBINATION])
def test_a_clause_says_where_it_lies_and_why(world: World, sort: str) -> None:
    choices = world.matcher.plan(world.slots[sort][:20]).choices
    assert len(choices) == 20
    places = Counter(choice.taken.sort for choice in choices)
    assert places[sort] >= 19, "see above"
    for choice in choices:
        taken = choice.taken
        families = [way for way in choice.others if way.sort in (SPARSE, DENSE)]
        assert len(families) == (1 if taken.sort in (SPARSE, DENSE) else 2)
        for way in choice.others:
            assert way.ns > 0
            if way.planned and way not in families:
                assert way.ns >= taken.ns
        assert taken.planned
        assert 0 < choice.likely <= 1
    if sort == COMBINATION:
        single = {(VALUE, (ONE,)), (VALUE, (OTHER,))}
        assert single <= {(way.sort, way.attributes) for way in choices[0].others}


def test_many_of_a_sort_are_told_together() -> None:
    matcher, rng = Tamis(), np.random.default_rng(3)
    values = np.arange(300)
    for attribute in range(40):
        _add(matcher, _clauses((attribute, values, values)))
    bound = {a: Column(rng.integers(0, 300, EVENTS)) for a in range(40)}
    matcher.match(EventBatch(EVENTS, columns=bound, stamp=0))
    every, few = matcher.plan(lines=100), matcher.plan(lines=3)
    assert len(_of(every, VALUE)) == 40
    assert [route.together for route in _of(few, VALUE)] == [1, 1, 1, 37]
    assert [cut.together for cut in few.cuts] == [1, 1, 1, 37]
    for of in ("clauses", "parts", "entries", "bytes", "look_ups", "met", "ns", "saved_ns"):
        assert _sum(few.routes, of) == pytest.approx(_sum(every.routes, of))
    assert _sum(few.cuts, "cells") == _sum(every.cuts, "cells")


def test_of_very_many_clauses_a_sample_is_asked(
    world: World, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected, "_ASKED", 5000)
    some = world.matcher.plan()
    assert some != plan
    assert [route.clauses for route in some.routes] == [route.clauses for route in plan.routes]
    assert some.ns == pytest.approx(plan.ns, rel=0.1)
    assert some.matches == pytest.approx(plan.matches, rel=0.1)
    assert _sum(some.cuts, "intervals") == pytest.approx(_sum(plan.cuts, "intervals"), rel=0.05)


def test_a_clause_is_explained_without_counting_all(world: World) -> None:
    slots = world.slots[SPARSE][:3]
    some = world.matcher.plan(slots, lines=0)
    assert some.choices == world.matcher.plan(slots).choices
    assert len(some.choices) == 3
    assert (some.routes, some.cuts, some.clauses) == ((), (), len(world.matcher))


@pytest.mark.slow
def test_clauses_that_move_to_a_newer_plan() -> None:
    matcher, rng = Tamis(), np.random.default_rng(4)
    batch = _events(rng)
    _add(matcher, _clauses((NARROW, *_ranges(rng, 21_000, 300))))
    matcher.match(batch)
    assert matcher.plan().moving == 0
    _add(matcher, _clauses((NARROW, *_ranges(rng, 30_000, 300))))
    left: list[int] = []
    until = monotonic() + 60
    while monotonic() < until:
        for _ in range(20):
            matcher.match(batch[:1])
        plan = matcher.plan(np.array([0, 50_000]))
        older = [route for route in plan.routes if route.older]
        assert _sum(older, "clauses") == plan.moving
        assert _sum(plan.routes, "clauses") == plan.clauses == 51_000
        assert len(plan.choices) == 2, "wherever they are by now"
        if plan.moving:
            left.append(plan.moving)
        elif left:
            break
    assert len(left) > 3
    assert left == sorted(left, reverse=True)
    assert not any(route.older for route in matcher.plan().routes)


def test_plans_of_few_clauses_and_of_none() -> None:
    matcher = Tamis()
    batch = _events(np.random.default_rng(5))
    assert matcher.plan().routes == ()
    matcher.match(batch)
    assert matcher.plan().clauses == 0
    few = Tamis()
    _add(few, _clauses((POINT, np.arange(3), np.arange(3))))
    with pytest.raises(MatcherError, match="when the first events are matched"):
        few.plan()
    few.match(batch)
    (route,) = few.plan().routes
    assert route.sort in (SPARSE, DENSE), "no keys for so few"
    assert route.parts == 1
    assert few.plan().look_ups == 0


def test_an_engine_knows_the_names() -> None:
    schema = Schema.from_dict({"attributes": {"price": "integer", "title": "text"}})
    engine = Engine(schema, "tamis")
    for name in ("scan", "dexin"):
        with pytest.raises(MatcherError, match="makes no plan"):
            Engine(schema, name).plan()
    for number in range(1000):
        engine.subscribe(f"price = {number} or price between {number} and 2000", id=number)
    engine.match_batch([{"price": number} for number in range(100)])
    plan = engine.plan(7)
    assert plan.clauses == 2000
    assert [choice.taken.sort for choice in plan.choices] == [VALUE, DENSE]
    assert plan.choices[0].taken.attributes == ("price",)
    assert {cut.attribute for cut in plan.cuts} == {"price"}


def test_keys_that_no_surveyed_clause_has_are_used_where_few_events_have_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 500 attributes the survey sees few clauses each, and of some values none at all.

    Clauses that ask for an attribute which few events bind belong under that attribute. In the
    family most of them would have to be verified for every event: it has no column for it.
    """
    monkeypatch.setattr(layout, "_SURVEYED", 1000)
    made = workload.make("sparse", 20_000, seed=3, attributes=500)
    engine = loaded(made)
    batch = engine.encode(made.events(300))
    matcher = engine.matcher
    assert isinstance(matcher, Tamis)
    matcher.match(batch)
    matcher.settle()
    plan = matcher.plan()
    (family,) = [route for route in plan.routes if route.sort == SPARSE]
    assert family.clauses < 0.1 * len(matcher)
    assert family.met < plan.met / 3, "candidates of an event, most of them in buckets"
