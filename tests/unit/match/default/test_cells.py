"""Cells: where values fall, and what is known of events, beside what NumPy says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tamis.match.default.structure.cells import (
    FINE,
    HIGHEST,
    LOWEST,
    ROWS,
    ValueCells,
    cell_of,
    closes,
    cut,
    no_cells,
    opens,
)

Int64s = NDArray[np.int64]
Interval = tuple[int, int, int]
"""attribute, low, high"""


def _ints(values: object) -> Int64s:
    return np.array(values, np.int64)


def cells_of(
    width: int, intervals: list[Interval], events: list[dict[int, int]] | None = None
) -> ValueCells:
    attribute, low, high = zip(*intervals, strict=True) if intervals else ((), (), ())
    pairs = [pair for event in events or [] for pair in sorted(event.items())]
    return cut(
        width,
        np.array(attribute, np.int32),
        _ints(low),
        _ints(high),
        np.array([a for a, _ in pairs], np.int32),
        _ints([value for _, value in pairs]),
        len(events or []),
    )


def cuts_of(cells: ValueCells, a: int) -> Int64s:
    return cells.cuts[cells.start[a] : cells.start[a + 1]]


def row_cuts_of(cells: ValueCells, a: int) -> Int64s:
    return cells.row_cuts[cells.row_start[a] : cells.row_start[a + 1]]


class About(NamedTuple):
    """What cells say of one attribute's events."""

    below: NDArray[np.float64]
    row_below: NDArray[np.float64]
    single: NDArray[np.float64]


def about(cells: ValueCells, a: int) -> About:
    start, end = int(cells.start[a]), int(cells.start[a + 1])
    first, last = int(cells.row_start[a]), int(cells.row_start[a + 1])
    return About(
        cells.below[start + 2 * a : end + 2 * a + 2],
        cells.row_below[first + 2 * a : last + 2 * a + 2],
        cells.single[start + a : end + a + 1],
    )


def check(cells: ValueCells, width: int, values: Int64s) -> None:
    """What holds of any cells: for each attribute, of these values and of the ends."""
    assert len(cells.start) == len(cells.row_start) == width + 1
    assert len(cells.bound) == width
    assert len(cells.row_of_cell) == len(cells.single) == len(cells.cuts) + width
    assert len(cells.below) == len(cells.cuts) + 2 * width
    assert len(cells.row_below) == len(cells.row_cuts) + 2 * width
    for a in range(width):
        cuts, row_cuts = cuts_of(cells, a), row_cuts_of(cells, a)
        assert (np.diff(cuts.astype(object)) > 0).all()
        assert len(cuts) < FINE
        assert len(row_cuts) < ROWS
        assert np.isin(row_cuts, cuts).all(), "a row is a run of cells"
        near = np.concatenate([values, cuts, cuts[cuts > LOWEST] - 1, [LOWEST, HIGHEST]])
        found = _ints([cell_of(cells.start, cells.cuts, a, value) for value in near.tolist()])
        np.testing.assert_array_equal(found, np.searchsorted(cuts, near, side="right"))
        rows = cells.row_of_cell[cells.start[a] + a + found]
        np.testing.assert_array_equal(rows, np.searchsorted(row_cuts, near, side="right") + 1)
        for value, cell in zip(near.tolist(), found.tolist(), strict=True):
            first, last = value in cuts, value < HIGHEST and value + 1 in cuts
            assert opens(cells.start, cells.cuts, a, cell, value) == first
            assert closes(cells.start, cells.cuts, a, cell, value) == last
        said = about(cells, a)
        for below in (said.below, said.row_below):
            assert below[0] == 0
            assert (np.diff(below) > 0).all()
            assert below[-1] == pytest.approx(1)
        assert (said.single > 0).all()
        assert (said.single <= 1 + 1e-9).all()
        assert 0 <= cells.bound[a] <= 1


ends = st.one_of(st.integers(-20, 20), st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]))
intervals = st.lists(
    st.tuples(st.integers(0, 3), ends, ends).map(lambda i: (i[0], min(i[1:]), max(i[1:]))),
    max_size=40,
)
events = st.lists(st.dictionaries(st.integers(0, 5), ends, max_size=4), max_size=30)


@settings(max_examples=60)
@given(given_=intervals, seen=events)
@example(given_=[], seen=[{0: 1}])
@example(given_=[(1, LOWEST, HIGHEST)], seen=[])
@example(given_=[(0, LOWEST, LOWEST), (1, HIGHEST, HIGHEST)], seen=[{0: LOWEST, 1: HIGHEST}] * 9)
@example(given_=[(2, 7, 7)] * 40, seen=[{2: 7}] * 30)
def test_any_intervals_and_events(given_: list[Interval], seen: list[dict[int, int]]) -> None:
    cells = cells_of(5, given_, seen)
    check(cells, 5, np.arange(-22, 22))
    for a, low, high in given_:  # few enough for a cut at every end
        assert low == LOWEST or low in cuts_of(cells, a)
        assert high == HIGHEST or high + 1 in cuts_of(cells, a)
        inside = {low, high}
        outside = {each for each in (low - 1, high + 1) if LOWEST <= each <= HIGHEST}
        found = {cell_of(cells.start, cells.cuts, a, value) for value in inside}
        assert not found & {cell_of(cells.start, cells.cuts, a, value) for value in outside}


def test_attributes_that_nobody_asks_about_are_one_cell() -> None:
    cells = cells_of(4, [(2, 5, 9)], [{0: 3, 2: 7}])
    check(cells, 4, np.arange(12))
    assert np.diff(cells.start).tolist() == [0, 0, 2, 0]
    assert about(cells, 0).below.tolist() == [0, 1]
    assert about(cells, 3).single.tolist() == [1]
    for empty in (no_cells(), cells_of(0, []), cells_of(0, [], [{3: 1}])):
        check(empty, 0, _ints([]))


def test_single_values_open_ends_and_equal_ends_cut_where_they_must() -> None:
    cells = cells_of(3, [(0, 5, 5), (1, LOWEST, 3), (2, 4, HIGHEST)])
    assert [cuts_of(cells, a).tolist() for a in range(3)] == [[5, 6], [4], [4]]
    equal = cells_of(1, [(0, 5, 9)] * 70_000)
    check(equal, 1, np.arange(12))
    assert cuts_of(equal, 0).tolist() == row_cuts_of(equal, 0).tolist() == [5, 10]


def many(rng: np.random.Generator, size: int) -> list[Interval]:
    low = rng.integers(0, 2**40, size)
    high = low + rng.integers(1, 2**30, size)
    return list(zip([0] * size, low.tolist(), high.tolist(), strict=True))


def evenly_cut(cuts: Int64s, given_: list[Interval]) -> Int64s:
    """The ends of intervals, which no two cuts have many more of between them than others."""
    every = np.sort(_ints([end for _, low, high in given_ for end in (low, high + 1)]))
    inside = np.bincount(np.searchsorted(cuts, every, side="right"), minlength=len(cuts) + 1)
    assert inside.max() <= 2 * len(every) / len(cuts) + 1
    return every


def test_too_many_ends_are_shared_out_evenly() -> None:
    given_ = many(np.random.default_rng(1), 60_000)
    cells = cells_of(1, given_)
    cuts = cuts_of(cells, 0)
    assert FINE * 0.99 < len(cuts) < FINE
    some = np.random.default_rng(2).choice(evenly_cut(cuts, given_), 200)
    found = [cell_of(cells.start, cells.cuts, 0, value) for value in some.tolist()]
    assert found == np.searchsorted(cuts, some, side="right").tolist()


@pytest.mark.parametrize("size", [500, 14_000, 60_000])
def test_rows_are_as_many_and_as_even_whatever_the_number_of_ends(size: int) -> None:
    given_ = many(np.random.default_rng(3), size)
    rows = row_cuts_of(cells_of(1, given_), 0)
    assert 0.95 * ROWS < len(rows) + 1 <= ROWS
    evenly_cut(rows, given_)


def test_skew_costs_no_precision_where_the_others_are() -> None:
    """Nine in ten clauses ask the same: the rest still get cells in proportion."""
    rng = np.random.default_rng(4)
    rest = many(rng, 3000)
    cells = cells_of(1, [(0, 77, 77)] * 27_000 + rest)
    check(cells, 1, rng.integers(0, 2**40, 50))
    assert {77, 78} <= set(cuts_of(cells, 0).tolist())
    assert len(cuts_of(cells, 0)) > 5900, "fewer ends than cells: each has its own"
    assert len(row_cuts_of(cells, 0)) >= 0.05 * ROWS


def test_rows_go_where_the_ranges_are() -> None:
    rng = np.random.default_rng(5)
    ranges = many(rng, 3000)
    points = [(1, value, value) for value in range(3000)]
    cells = cells_of(2, ranges + points)
    assert len(row_cuts_of(cells, 0)) > 5 * len(row_cuts_of(cells, 1)) > 0
    assert len(cuts_of(cells, 1)) == 3001, "cells are not rows"


@pytest.mark.parametrize("size", [1500, 60_000])
def test_a_value_that_many_events_have_gets_a_row(size: int) -> None:
    given_ = [*many(np.random.default_rng(6), size), (0, 12_345, 12_345)]
    seen = [{0: 12_345}] * 50 + [{0: 10**9 * i} for i in range(450)]
    cells = cells_of(1, given_, seen)
    assert {12_345, 12_346} <= set(row_cuts_of(cells, 0).tolist())
    at = int(np.searchsorted(row_cuts_of(cells, 0), 12_345, side="right"))
    share = about(cells, 0).row_below
    assert share[at + 1] - share[at] == pytest.approx(0.1, abs=0.01)


def test_what_is_known_of_events() -> None:
    """A tenth binds attribute 1; of attribute 0 nine in ten values are below 100."""
    given_ = [(0, low, low + 9) for low in range(0, 200, 10)] + [(1, 1, 1), (1, 2, 2)]
    seen = [{0: i % 100} | ({1: 1} if i % 10 == 0 else {}) for i in range(900)]
    seen += [{0: 100 + i} for i in range(100)]
    cells = cells_of(2, given_, seen)
    assert cells.bound == pytest.approx([1, 0.09], abs=0.01)
    said = about(cells, 0)
    at = cell_of(cells.start, cells.cuts, 0, 100)
    assert said.below[at] == pytest.approx(0.9, abs=0.05)
    row = int(cells.row_of_cell[cells.start[0] + at])
    assert said.row_below[row - 1] == pytest.approx(0.9, abs=0.05)


def test_without_events_what_is_asked_most_is_expected_most() -> None:
    cells = cells_of(3, [(0, 1, 1)] * 10 + [(1, 1, 1)] * 5)
    assert cells.bound.tolist() == [1, 0.5, 0]
