"""H-Tree: where clauses go, and what its options change."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis import workload
from tamis.encode.clause import SOME
from tamis.match.dexin.h_tree import HTree
from tamis.match.registry import create
from tamis.testing.matcher_checks import add, answers
from tests.loaded import loaded

N, EVENTS = 3000, 20


def _dexin(width: float, **options: Any) -> HTree:
    made = workload.make("dexin", N, seed=5, theta=width)
    matcher = HTree(**options)
    loaded(made, matcher).match_batch(made.events(EVENTS))
    return matcher


def _clones(matcher: HTree) -> float:
    return matcher._buckets.total / len(matcher)


def test_wide_ranges_are_cloned_up_to_the_limit() -> None:
    narrow, wide = (_dexin(width, attributes=3, max_clones=1000) for width in (0.05, 0.5))
    assert _clones(narrow) < 3 < 10 < _clones(wide)
    limited = _dexin(0.5, attributes=3, max_clones=5)
    assert _clones(limited) <= 5
    limited.check()
    assert _clones(_dexin(0.5, attributes=3, max_clones=1)) == 1


def test_an_overlap_saves_clones_of_narrow_ranges() -> None:
    apart, over = (_dexin(0.05, attributes=3, overlap=overlap) for overlap in (0, 0.5))
    assert _clones(over) < 0.8 * _clones(apart)


def test_narrow_ranges_are_verified_seldom_wide_ones_often() -> None:
    touched = [_dexin(width).tally.subscriptions / EVENTS / N for width in (0.1, 0.5, 0.9)]
    assert touched[0] < 0.02 < touched[1] < 0.5 < touched[2]


def test_more_attributes_leave_fewer_clauses_to_verify() -> None:
    touched = [_dexin(0.3, attributes=k).tally.subscriptions for k in (1, 2, 4, 6)]
    assert touched == sorted(touched, reverse=True)
    assert touched[-1] * 10 < touched[0]


def test_the_attributes_that_rule_out_most_become_levels() -> None:
    tree = create("h-tree", attributes=2)
    assert isinstance(tree, HTree)
    chance = np.random.default_rng(1)
    clauses = {}
    for slot in range(400):
        low, point = int(chance.integers(0, 10)), int(chance.integers(0, 1000))
        clauses[slot] = [
            (3, 0, SOME, low, 990 + low),  # nearly everything
            (7, 1, SOME, point, point),
            (8, 2, SOME, point, point + 100),
        ]
    add(tree, clauses)
    assert set(tree._grid.attribute.tolist()) == {7, 8}
    assert answers(tree, [{3: [500], 7: [clauses[9][1][3]], 8: [clauses[9][2][3]]}])[0] >= {9}
