"""Cells of pairs are those that counting finds, whether events bind the same attributes or not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.match.default.passes.event_arrays import Events, find_cells
from tamis.match.default.structure.cells import ValueCells, cut

Int64s = NDArray[np.int64]
WIDTH = 4  # attribute 2 has no cuts, and attribute 4 is not known at all


@pytest.fixture(scope="module")
def cells() -> ValueCells:
    rng = np.random.default_rng(5)
    attribute = rng.choice(np.array([0, 1, 3], np.int32), 300)
    low = rng.integers(0, 1_000, 300)
    none = np.zeros(0, np.int64)
    return cut(WIDTH, attribute, low, low + 50, none.astype(np.int32), none, 0)


def _found(
    cells: ValueCells, starts: Int64s, attribute: Int64s, code: Int64s
) -> tuple[Events, int]:
    several = np.full(len(starts) - 1, 7, np.uint8)
    cell = np.full(len(code), -7, np.int32)
    events = Events(starts, attribute.astype(np.int32), code, cell, several)
    return events, find_cells(cells, events)


def _check(cells: ValueCells, events: Events) -> None:
    for a, code, cell in zip(events.attribute, events.code, events.cell, strict=True):
        wanted = 0
        if a < WIDTH:
            mine = cells.cuts[cells.start[a] : cells.start[a + 1]]
            wanted = 1 + int(np.searchsorted(mine, code, side="right"))
        assert cell == wanted


@pytest.mark.parametrize("bound", [[0, 1, 2, 3, 4], [1], [2, 4], [0, 3]])
@pytest.mark.parametrize("many", [1, 15, 16, 100])
def test_events_that_bind_the_same(cells: ValueCells, bound: list[int], many: int) -> None:
    starts = np.arange(many + 1) * len(bound)
    code = np.random.default_rng(many).integers(-50, 1_100, many * len(bound))
    events, each = _found(cells, starts, np.tile(bound, many), code)
    assert each == (len(bound) if many >= 16 else 0)
    assert not events.several.any()
    _check(cells, events)


@pytest.mark.parametrize("odd", [[0, 1, 1], [0, 1], [], [0, 1, 2], [0, 1, 4, 4]])
@pytest.mark.parametrize("at", [0, 31, 63])
def test_events_of_which_one_binds_others(cells: ValueCells, odd: list[int], at: int) -> None:
    bound = [[0, 1, 3]] * 64
    bound[at] = odd
    starts = np.concatenate([[0], np.cumsum([len(each) for each in bound])])
    attribute = np.concatenate([np.array(each, np.int64) for each in bound])
    code = np.random.default_rng(at).integers(-50, 1_100, len(attribute))
    events, each = _found(cells, starts, attribute, code)
    assert each == 0
    assert events.several.tolist() == [len(set(mine)) < len(mine) for mine in bound]
    _check(cells, events)


def test_events_that_bind_nothing(cells: ValueCells) -> None:
    none = np.zeros(0, np.int64)
    events, each = _found(cells, np.zeros(33, np.int64), none, none)
    assert each == 0
    assert not events.several.any()
