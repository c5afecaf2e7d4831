"""A guide finds the cell that counting finds."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tamis.index.kernel import kernel
from tamis.match.default.structure.cells import HIGHEST, LOWEST
from tamis.match.default.structure.guide import Guide, cell_in, make_guide, slot_of, slots_of

Int64s = NDArray[np.int64]
_CODES = st.one_of(
    st.integers(LOWEST, HIGHEST),
    st.integers(-20, 20),
    st.floats(0, 1).map(lambda each: int(np.float64(each).view(np.int64))),
    st.sampled_from([LOWEST, LOWEST + 1, -1, 0, 1, HIGHEST - 1, HIGHEST]),
)


@kernel
def _cells(
    guide: Guide, start: Int64s, cuts: Int64s, attribute: Int64s, value: Int64s, out: Int64s
) -> None:
    for i in range(len(value)):
        a = attribute[i]
        out[i] = 0
        if start[a] < start[a + 1]:
            slots = slots_of(guide, start, cuts, a)
            out[i] = cell_in(slots, slot_of(slots, value[i]), value[i])


@given(st.lists(st.sets(_CODES, max_size=200), min_size=1, max_size=4), st.lists(_CODES))
@example([set()], [0])
@example([{LOWEST, HIGHEST}], [])
@example([{HIGHEST}, set(), {LOWEST}], [])
@example([set(range(500))], [])
def test_a_guide_finds_what_counting_finds(sets: list[set[int]], values: list[int]) -> None:
    cuts = [np.array(sorted(each), np.int64) for each in sets]
    start = np.concatenate([[0], np.cumsum([len(each) for each in cuts])]).astype(np.int64)
    every = np.concatenate(cuts)
    near = {each + step for cut in sets for each in cut for step in (-1, 0, 1)}
    tried = np.array([*values, *(each for each in near if LOWEST <= each <= HIGHEST)], np.int64)
    guide = make_guide(start, every)
    for a, mine in enumerate(cuts):
        found = np.full(len(tried), -1, np.int64)
        _cells(guide, start, every, np.full(len(tried), a, np.int64), tried, found)
        assert found.tolist() == np.searchsorted(mine, tried, side="right").tolist()


def test_a_guide_leaves_few_cuts_to_look_at() -> None:
    """Also where one of them lies far out, and where codes are the bits of doubles."""
    values = np.concatenate([[0.0], np.random.default_rng(1).random(5_000), [1e300]])
    cuts = np.unique(values).view(np.int64)
    guide = make_guide(np.array([0, len(cuts)]), cuts)
    left = np.diff(guide.below)
    weighted = float((left.astype(np.float64) ** 2).sum() / len(cuts))  # that a cut is met with
    assert weighted < 5
    assert len(guide.below) <= 8 * len(cuts) + 2
