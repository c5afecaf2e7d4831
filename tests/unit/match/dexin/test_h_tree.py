"""H-Tree: where clauses go, and what its options change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis import workload
from tamis.encode.clause import SOME
from tamis.errors import MatcherError
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


def test_without_a_cap_wide_ranges_have_a_clone_in_every_cell_that_they_meet() -> None:
    free, capped = (_dexin(0.5, attributes=4, max_clones=most) for most in (0, 64))
    assert _clones(free) > 2 * _clones(capped)
    assert free.tally.subscriptions < capped.tally.subscriptions, "no bucket for all events"
    free.check()


def test_clones_beyond_the_limit_are_refused_and_nothing_changes() -> None:
    made = workload.make("dexin", N, seed=5, theta=0.5)
    tree = HTree(max_clones=0, max_bytes=30_000_000)
    with pytest.raises(MatcherError, match=r"clones take up to .* GiB.*raise max_bytes, set max"):
        loaded(made, tree)
    assert len(tree) == 0
    few = {slot: [(0, 0, SOME, slot, slot + 1)] for slot in range(300)}
    add(tree, few)
    tree.check()
    assert answers(tree, [{0: [7]}]) == [{6, 7}]


def test_cells_of_equal_width_ignore_where_most_ranges_lie() -> None:
    rows = {slot: [(0, 0, SOME, slot % 100, slot % 100)] for slot in range(1000)}
    rows |= {1000: [(0, 0, SOME, 1000, 1000)]}
    edges = {}
    for how in ("equal-depth", "equal-width"):
        tree = HTree(attributes=1, cells=4, edges=how)
        add(tree, rows)
        edges[how] = tree._grid.edge[0, :3].tolist()
        assert answers(tree, [{0: [1000]}, {0: [42]}])[0] == {1000}
    assert edges["equal-width"] == [250, 500, 751]
    assert edges["equal-depth"][2] < 100
