"""Edges cut where intervals begin and end, equally many ends to a cell."""

from __future__ import annotations

import numpy as np

from tamis.match.dexin.edges import cut, sorted_ends

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def test_ends_are_where_intervals_begin_and_where_they_are_over() -> None:
    low = np.array([3, LOWEST, 3, 5], np.int64)
    high = np.array([4, 9, HIGHEST, HIGHEST - 1], np.int64)
    assert sorted_ends(low, high).tolist() == [3, 3, 5, 5, 10, HIGHEST]
    assert cut(np.array([1, 1, 4, 7], np.int64), 4).tolist() == [1, 4, 7], "all are edges"


def test_many_ends_are_cut_into_cells_of_equal_depth() -> None:
    ends = np.sort(np.random.default_rng(1).normal(size=10_000) * 1e9).astype(np.int64)
    edges = cut(ends, 16)
    assert len(edges) == 15
    depth = np.diff(np.searchsorted(ends, edges))
    assert depth.min() >= 624
    assert depth.max() <= 626
