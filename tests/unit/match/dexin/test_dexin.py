"""DEXIN's plans cost what simulations of the paper's model say; REIN marks violated ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tamis import workload
from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.codes import decimal_code
from tamis.encode.terms import Row, from_rows
from tamis.errors import MatcherError
from tamis.index.clauses import SOME
from tamis.match.base import Tally
from tamis.match.dexin.attribute_plan import (
    EXCLUSIVE,
    FIRST_FIT,
    INCLUSIVE,
    OPTIMAL,
    PlannedAttributes,
    make_plan,
)
from tamis.match.dexin.dexin import Dexin
from tamis.match.dexin.edges import EQUAL_DEPTH, EQUAL_WIDTH, between, cut, sorted_ends
from tamis.match.dexin.rein import Rein
from tests.loaded import loaded

N, EVENTS = 20_000, 40
PLANS = ("lmrff", "optimal", "exclusive", "inclusive")
LOWEST, HIGHEST = -(2**63), 2**63 - 1
NEAR = 0.08  # forty events; the figures below come from other draws of the workload

# μ in units of N: by M at the paper's defaults, and by θ at M = 10.
BY_ATTRIBUTES = {
    2: (0.930, 0.930, 1.12, 1.31),
    4: (1.116, 1.102, 2.25, 1.31),
    6: (1.114, 1.111, 3.33, 1.27),
    10: (1.041, 1.041, 5.41, 1.14),
}
BY_WIDTH = {0.1: 1.003, 0.3: 1.011, 0.5: 1.04, 0.7: 1.17, 0.9: 1.32}


def _matched(**parameters: object) -> tuple[list[Dexin], Rein]:
    """Matchers that have matched the events of a workload: one a plan, and REIN."""
    made = workload.make("dexin", N, seed=3, **parameters)
    matchers, rein = [Dexin(plan=plan) for plan in PLANS], Rein()
    for matcher in (*matchers, rein):
        loaded(made, matcher).match_batch(made.events(EVENTS))
    return matchers, rein


@pytest.mark.parametrize("plan", PLANS)
def test_plans_made_before_give_the_same_answers_for_the_same_work(plan: str) -> None:
    made = workload.make("dexin", 500, seed=3, attributes=5)
    matcher = Dexin(plan=plan, slots=20)
    batch = loaded(made, matcher).encode(made.events(EVENTS))
    expected = matcher.match(batch)
    work = replace(matcher.tally)
    plans = matcher.exclusive_attributes(batch)
    assert len(plans) == EVENTS
    assert plans.sum() == work.exclusive
    matcher.tally.reset()
    found = matcher.match_planned(batch, plans)
    assert (found.starts == expected.starts).all()
    assert (found.subscriptions == expected.subscriptions).all()
    assert replace(matcher.tally, events=EVENTS) == work


@pytest.mark.parametrize("attributes", BY_ATTRIBUTES)
@pytest.mark.slow
def test_plans_cost_what_the_model_says(attributes: int) -> None:
    matchers, rein = _matched(attributes=attributes)
    for matcher, expected in zip(matchers, BY_ATTRIBUTES[attributes], strict=True):
        assert matcher.cost / EVENTS == pytest.approx(expected, rel=NEAR)
        touched = matcher.tally.subscriptions / EVENTS / N
        assert touched == pytest.approx(matcher.cost / EVENTS, rel=0.01), "done as planned"
    first_fit, optimal, exclusive, _ = matchers
    assert rein.tally.subscriptions == exclusive.tally.subscriptions, "REIN marks as many"
    assert optimal.cost <= first_fit.cost + 1e-9


@pytest.mark.parametrize("theta", BY_WIDTH)
@pytest.mark.slow
def test_lmrff_is_about_one_pass_whatever_the_width(theta: float) -> None:
    (first_fit, optimal, exclusive, inclusive), _ = _matched(theta=theta)
    assert first_fit.cost / EVENTS == pytest.approx(BY_WIDTH[theta], rel=NEAR)
    if theta == 0.1:
        assert exclusive.cost / EVENTS == pytest.approx(9.1, rel=NEAR)
        assert inclusive.cost / EVENTS == pytest.approx(1.04, rel=NEAR)
    if theta == 0.9:
        assert exclusive.cost / EVENTS == pytest.approx(1.9, rel=NEAR)
        assert inclusive.cost / EVENTS == pytest.approx(3.1, rel=NEAR)
    assert optimal.cost <= first_fit.cost + 1e-9


def test_the_partial_result_is_copied_by_the_word() -> None:
    (matcher, *_), _ = _matched(attributes=2)
    assert N / 32 <= matcher.tally.words / EVENTS <= 1.5 * N / 32 + 8
    assert 1 <= matcher.tally.exclusive / EVENTS <= 2
    matcher.tally.reset()
    assert matcher.cost == 0


def _planned(rates: list[float], how: int, several: tuple[int, ...] = ()) -> tuple[set[int], float]:
    many = len(rates)
    candidates = PlannedAttributes(
        np.arange(many),
        np.array(rates),
        np.isin(np.arange(many), several),
        np.zeros(many, np.bool_),
    )
    _, cost = make_plan(candidates, many, how)
    return set(np.flatnonzero(candidates.exclusive).tolist()), round(cost, 9)


def _cost(rates: list[float], exclusive: set[int]) -> float:
    cost = sum(1 - rates[i] for i in exclusive)
    left = float(np.prod([rates[i] for i in exclusive]))
    for rate in sorted(rates[i] for i in range(len(rates)) if i not in exclusive):
        cost += left
        left *= rate
    return cost


def test_the_optimal_plan_is_the_best_of_all_sets() -> None:
    chance = np.random.default_rng(1)
    for many in (1, 2, 3, 5, 7):
        for _ in range(20):
            rates = chance.random(many).round(2).tolist()
            sets = [set(c) for k in range(1, many + 1) for c in combinations(range(many), k)]
            chosen, cost = _planned(rates, OPTIMAL)
            assert cost == pytest.approx(min(_cost(rates, each) for each in sets))
            assert cost == pytest.approx(_cost(rates, chosen))


@pytest.mark.parametrize(
    ("rates", "how", "chosen", "cost"),
    [
        # 0.7 is left after the first, more than the 0.3 that ruling out by the second costs.
        ([0.9, 0.7, 0.7], FIRST_FIT, {0, 1, 2}, 0.7),
        ([0.9, 0.2, 0.5], FIRST_FIT, {1}, 1.1),
        ([0.0, 0.0], FIRST_FIT, {0}, 1.0),
        ([], FIRST_FIT, set(), 0.0),
        ([0.5, 0.2], EXCLUSIVE, {0, 1}, 1.3),
        ([0.5, 0.2], INCLUSIVE, set(), 1.2),
    ],
)
def test_plans_of_a_few_attributes(
    rates: list[float], how: int, chosen: set[int], cost: float
) -> None:
    assert _planned(rates, how) == (chosen, cost)
    for each in (FIRST_FIT, OPTIMAL):  # an attribute with several values does not rule out
        assert 0 not in _planned([0.1, 0.5, 0.9], each, several=(0,))[0] != set()


def _two_values(boundary: str) -> Dexin:
    """Half of the clauses ask for 0, half for 1; and an event with 1."""
    matcher = Dexin(boundary=boundary)
    clauses: list[list[Row]] = [[(0, 0, SOME, i % 2, i % 2)] for i in range(1000)]
    matcher.add(np.arange(1000), from_rows(clauses))
    one = Pairs(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.int64))
    assert len(matcher.match(EventBatch(1, pairs=one))[0]) == 500
    return matcher


def test_whole_boundary_slots_overrate_what_is_violated() -> None:
    assert _two_values("exact").cost == pytest.approx(0.5)
    # Lows of 1 and highs of 1 count as violated too: 1.5 of all, cut down to 1.
    assert _two_values("whole").cost == pytest.approx(1.0)


# -- REIN ------------------------------------------------------------------------------------------


def _rein(matcher: Rein, **parameters: object) -> Tally:
    made = workload.make("dexin", N, seed=3, **parameters)
    loaded(made, matcher).match_batch(made.events(EVENTS))
    return matcher.tally


@pytest.mark.parametrize(("theta", "marks"), [(0.1, 9.1), (0.9, 1.9)])
def test_marks_add_up_over_the_attributes(theta: float, marks: float) -> None:
    tally = _rein(Rein(), theta=theta)
    assert tally.subscriptions / EVENTS / N == pytest.approx(marks, rel=0.08)


def test_fewer_buckets_mean_more_comparisons_and_the_same_marks() -> None:
    few, many = _rein(Rein(buckets=10)), _rein(Rein(buckets=1000))
    assert few.subscriptions == many.subscriptions
    # Of each attribute two buckets are compared one by one, and there are as many ends in each.
    assert few.predicates / EVENTS == pytest.approx(10 * 2 * N / 10, rel=0.1)
    assert many.predicates / EVENTS == pytest.approx(10 * 2 * N / 1000, rel=0.1)


# -- edges -----------------------------------------------------------------------------------------


def test_ends_are_where_intervals_begin_and_where_they_are_over() -> None:
    low = np.array([3, LOWEST, 3, 5], np.int64)
    high = np.array([4, 9, HIGHEST, HIGHEST - 1], np.int64)
    assert sorted_ends(low, high).tolist() == [3, 3, 5, 5, 10, HIGHEST]
    assert cut(np.array([1, 1, 4, 7], np.int64), 4, EQUAL_DEPTH).tolist() == [1, 4, 7]


def test_many_ends_are_cut_into_cells_of_equal_depth() -> None:
    ends = np.sort(np.random.default_rng(1).normal(size=10_000) * 1e9).astype(np.int64)
    edges = cut(ends, 16, EQUAL_DEPTH)
    assert len(edges) == 15
    depth = np.diff(np.searchsorted(ends, edges))
    assert depth.min() >= 624
    assert depth.max() <= 626


def test_equal_width_is_measured_in_whole_numbers_or_in_decimals() -> None:
    assert cut(np.arange(0, 1001, 10), 4, EQUAL_WIDTH).tolist() == [250, 500, 750]
    decimals = np.array([decimal_code(x / 100) for x in range(-100, 101)], np.int64)
    quarters = [decimal_code(x) for x in (-0.5, 0.0, 0.5)]
    assert cut(decimals, 4, EQUAL_WIDTH).tolist() == quarters
    skewed = np.sort(np.concatenate([np.zeros(900, np.int64), np.arange(100)]))
    assert cut(skewed, 3, EQUAL_WIDTH).tolist() == [33, 66], "however many ends there are"
    assert cut(np.zeros(0, np.int64), 3, EQUAL_WIDTH).tolist() == []
    assert cut(np.full(50, 7), 3, EQUAL_WIDTH).tolist() == []
    far = between(LOWEST + 1, HIGHEST - 1, np.array([0.0, 0.5, 1.0]))
    assert far[0] <= far[1] <= far[2]


def test_linked_slots_exclude_what_sorted_ones_exclude() -> None:
    made = workload.make("dexin", 2000, seed=3, theta=0.3)
    matched = []
    for ends in ("sorted", "linked"):
        matcher = Dexin(ends=ends, plan="exclusive")
        matched.append((loaded(made, matcher).match_batch(made.events(20)).total, matcher.tally))
        matcher.check()
    assert matched[0][0] == matched[1][0]
    assert matched[0][1].subscriptions == matched[1][1].subscriptions
    assert matched[1][1].predicates > matched[0][1].predicates, "its own slot is compared"
    with pytest.raises(MatcherError, match="ends='sorted'"):
        Dexin(ends="linked", boundary="exact")
