"""What chains cost, against exact enumeration of all outcomes."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from tamis.files.arrays import Floats, Int32s
from tamis.schedule.base import FALSE, NEVER, ON_FALSE, ON_TRUE, TRUE
from tamis.schedule.compiled.chains import (
    join_paths,
    order_difference,
    score_chains,
    sort_chains,
    walk_paths,
)
from tamis.schedule.compiled.graph import BITS, ClauseGraph

_PREDICATES = 7


def _graph(*chains: list[tuple[int, int]]) -> ClauseGraph:
    graph = ClauseGraph()
    for number, chain in enumerate(chains):
        graph.add(number, [t for t, _ in chain], [kill for _, kill in chain], number)
    return graph


def _expected(chains: list[Int32s], p: Floats, cost: Floats) -> float:
    """What it costs to evaluate chains one after another, in the mean over all outcomes.

    A result is remembered; a chain that one has killed, be it further down, is not evaluated.
    """
    total = 0.0
    for outcome in product((FALSE, TRUE), repeat=len(p)):
        weight = float(np.prod([p[t] if true else 1 - p[t] for t, true in enumerate(outcome)]))
        known: set[int] = set()
        for chain in chains:
            for literal in chain.tolist():
                if any(t >> BITS in known and t >> outcome[t >> BITS] & 1 for t in chain.tolist()):
                    break
                if literal >> BITS not in known:
                    known.add(literal >> BITS)
                    total += weight * cost[literal >> BITS]
    return total


def _statistics(rng: random.Random) -> tuple[Floats, Floats, Floats]:
    p = np.array([rng.uniform(0.05, 0.95) for _ in range(_PREDICATES)])
    cost = np.array([10 ** rng.uniform(0, 3) for _ in range(_PREDICATES)])
    return p, np.zeros(_PREDICATES), cost


def _chain(rng: random.Random, kills: tuple[int, ...]) -> list[tuple[int, int]]:
    chosen = rng.sample(range(_PREDICATES), rng.randint(1, 5))
    return [(t, rng.choice(kills)) for t in chosen]


def _sorted(graph: ClauseGraph, known: tuple[Floats, Floats, Floats]) -> None:
    start, size, _, pool = graph.arrays
    sort_chains(start, size, pool, graph.degree, graph.clauses(), *known)


def _crossed(first: Int32s, second: Int32s) -> bool:
    """Whether what two chains have in common comes in different orders."""
    common = [t for t in (first >> BITS).tolist() if t in (second >> BITS).tolist()]
    return common != [t for t in (second >> BITS).tolist() if t in common]


@pytest.mark.parametrize("kills", [(ON_FALSE,), (ON_FALSE, ON_TRUE, NEVER)])
def test_difference_is_exact_with_any_number_of_links(kills: tuple[int, ...]) -> None:
    rng = random.Random(5)
    links = 0
    for _ in range(150):
        known = _statistics(rng)
        graph = _graph(_chain(rng, kills), _chain(rng, kills))
        _sorted(graph, known)
        first, second = graph.literals(0), graph.literals(1)
        if _crossed(first, second):
            assert len(kills) > 1, "cannot be where all literals of a predicate are alike"
            continue
        p, _, cost = known
        exact = _expected([first, second], p, cost) - _expected([second, first], p, cost)
        assert order_difference(first, second, *known) == pytest.approx(
            exact, abs=1e-9 * cost.sum()
        )
        links = max(links, len(set((first >> BITS).tolist()) & set((second >> BITS).tolist())))
    assert links >= 3


def test_a_chain_is_sorted_such_that_it_costs_least() -> None:
    rng = random.Random(6)
    for _ in range(60):
        known = _statistics(rng)
        graph = _graph(_chain(rng, (ON_FALSE, ON_TRUE)))
        given = graph.literals(0).copy()
        _sorted(graph, known)
        chain = graph.literals(0)
        assert sorted(chain) == sorted(given)
        p, _, cost = known
        start, size, _, pool = graph.arrays
        (spent,), _ = score_chains(start, size, pool, graph.degree, graph.clauses(), *known)
        assert spent == pytest.approx(_expected([chain], p, cost))
        for _ in range(10):
            other = np.array(rng.sample(given.tolist(), len(given)), np.int32)
            assert _expected([other], p, cost) >= spent - 1e-9


def test_the_cost_of_a_chain_is_that_of_the_paper() -> None:
    """1 + p1 + p1 p2 + ... for costs of 1."""
    graph = _graph([(0, ON_FALSE), (1, ON_FALSE), (2, ON_FALSE)])
    known = np.array([0.2, 0.5, 0.9]), np.zeros(3), np.ones(3)
    _sorted(graph, known)
    start, size, _, pool = graph.arrays
    (spent,), (score,) = score_chains(start, size, pool, graph.degree, graph.clauses(), *known)
    assert spent == pytest.approx(1 + 0.2 + 0.2 * 0.5)
    assert score == 0, "it has nothing in common with others"


def test_of_equal_literals_the_popular_and_then_the_lower_number_comes_first() -> None:
    graph = _graph([(3, ON_FALSE), (1, ON_FALSE), (0, NEVER), (2, ON_FALSE)], [(2, ON_FALSE)])
    _sorted(graph, (np.full(4, 0.5), np.zeros(4), np.ones(4)))
    assert (graph.literals(0) >> BITS).tolist() == [2, 1, 3, 0]


def test_paths_have_no_forks_and_no_rings() -> None:
    before = np.array([0, 0, 1, 2, 4, 3])
    after = np.array([1, 2, 2, 0, 3, 4])
    following, leading = join_paths(before, after, 6)
    assert following.tolist() == [1, 2, -1, -1, 3, -1]
    assert leading.tolist() == [-1, 0, 1, 4, -1, -1]
    assert walk_paths(np.array([4, 0, 5]), following).tolist() == [4, 3, 0, 1, 2, 5]
