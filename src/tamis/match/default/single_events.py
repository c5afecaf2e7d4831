"""Events matched one at a time, on the shortest way from their codes to their slots."""

from __future__ import annotations

import numpy as np

from tamis.encode.shapes.shape_code import EventShape
from tamis.files.arrays import Int32s
from tamis.match.default.passes.buffers import OUT
from tamis.match.default.passes.event_arrays import LINES, VERIFIED
from tamis.match.default.passes.frame import Frame, Framed, frame
from tamis.match.default.passes.single_event import (
    MatchArrays,
    OwnArrays,
    ShapeArrays,
    match_event,
)
from tamis.match.default.structure.packed_clauses import PackedTable
from tamis.match.default.structure.routes import RoutedIndex
from tamis.match.default.workers import MatchWorker, WorkTally

_FIRST = 1024  # initial room for slots
_MOST = 512  # frames of shapes that are kept


class SingleEvents:
    """Matches events one at a time, with the buffers of a worker.

    `renew` has to be called after any change of the index or the clauses, before the next `match`.

    Ctrl-C may come between any two steps, and nobody repairs this object. So `_arrays` is None
    while the frame and the buffers do not belong to it: the next `match` then makes them again.
    """

    def __init__(self, worker: MatchWorker) -> None:
        self._worker = worker
        self._work = np.zeros(1 + VERIFIED, np.int64)  # only grows, and only here
        self._counted = self._work.copy()
        self._counts = np.zeros(1, np.int64)
        self._needed = np.zeros(1, np.int64)
        self._out = np.empty(_FIRST, np.int32)
        self._fitted: tuple[Framed[RoutedIndex], PackedTable] | None = None
        self._arrays: MatchArrays | None = None  # keeps alive what the frame points to
        self._frame: Frame = np.zeros(0, np.int64)
        self._pairs = 0  # the longest event that the buffers are large enough for
        self._shapes: dict[EventShape, Framed[ShapeArrays]] = {}

    @property
    def fitted(self) -> bool:
        """Whether `renew` was called since `forget`."""
        return self._fitted is not None

    def forget(self) -> None:
        """The index or the clauses have changed."""
        self._arrays = None
        self._fitted = None

    def renew(self, index: Framed[RoutedIndex], table: PackedTable) -> None:
        """Match against this index from now on."""
        self._arrays = None
        self._fitted = index, table

    def match(self, shape: EventShape) -> Int32s:
        """The slots that the event in a shape matches, valid until the next call."""
        framed = self._shapes.get(shape) or self._framed(shape)
        if (
            self._arrays is None
            or self._arrays.buffers is not self._worker.buffers
            or len(shape.attribute) > self._pairs
        ):
            self._fit(len(shape.attribute))
        found = match_event(self._frame, framed.frame)
        while found < 0:
            self._enlarge(-1 - found)
            found = match_event(self._frame, framed.frame)
        return self._out[:found]

    def count(self, tally: WorkTally) -> None:
        """Add the work since the last call to a tally. Another thread may match meanwhile."""
        work, before = self._work.copy(), self._counted
        if work[0] == before[0]:
            return
        self._counted = work
        tally.events += int(work[0] - before[0])
        tally.count((work - before)[LINES:])

    def _framed(self, shape: EventShape) -> Framed[ShapeArrays]:
        if len(self._shapes) >= _MOST:
            self._shapes.clear()
        code = np.zeros_like(shape.given)
        arrays = ShapeArrays(shape.starts, shape.attribute, shape.decimal, shape.given, code)
        framed = self._shapes[shape] = Framed(arrays)
        return framed

    def _fit(self, pairs: int) -> None:
        assert self._fitted is not None
        index, table = self._fitted
        self._arrays = None
        self._pairs = max(pairs, self._pairs)
        self._worker.fit(index.record, table.width, 1, self._pairs)
        few = OwnArrays(table.view, self._counts, self._work, self._needed, self._out)
        arrays = MatchArrays(index.record, self._worker.buffers, few)
        # Not `frame(arrays)`, which asks each of a hundred arrays for its address.
        self._frame = np.concatenate([index.frame, self._worker.frame, frame(few)])
        self._arrays = arrays

    def _enlarge(self, lacking: int) -> None:
        self._arrays = None
        if lacking == OUT:
            self._out = np.empty(2 * int(self._needed[0]), np.int32)
        else:
            self._worker.enlarge(lacking)
        self._fit(self._pairs)
