"""The programs of residuals by slot, as flat arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.clause import MISSING
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.engine.residuals.program import AGE, REJECT, SPECIAL, Step
from tamis.files.arrays import Int8s, Int32s, Int64s, runs, zeros
from tamis.files.saved_checks import array_of, disjoint, require, within
from tamis.index.growth import grown

_PACK = 1024  # rows; a smaller table is not packed


class Programs(NamedTuple):
    """The table as kernels see it. A slot without a program has `size` 0.

    Row r is one instruction: an interval of codes of an attribute, or, if its kind is `SPECIAL`,
    the number of a test in `low`. `yes` and `no` count from the first row of the program.
    """

    start: Int64s
    size: Int32s
    attribute: Int32s
    kind: Int8s
    low: Int64s
    high: Int64s
    yes: Int32s
    no: Int32s


NO_ATTRIBUTE = -1  # of a special test


class ProgramTable:
    """Programs by slot, with add and remove. A table that is mostly holes is packed."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all programs and release the memory."""
        self.view = zeros(Programs)
        self.live = self.timed = 0  # programs, and steps that depend on the moment
        self._top = self._live_rows = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return sum(column.nbytes for column in self.view)

    def add(self, programs: Mapping[int, list[Step]], terms: Terms, tests: list[int]) -> None:
        """Put programs into free slots; `tests` are the numbers of their special tests."""
        sizes = np.array([len(steps) for steps in programs.values()])
        rows = np.zeros((6, int(sizes.sum())), np.int64)
        kind, yes, no = np.array([step for each in programs.values() for step in each], np.int64).T
        special = kind == SPECIAL
        rows[0] = NO_ATTRIBUTE
        rows[0, ~special], rows[1] = terms.attribute, kind
        rows[2, ~special], rows[3, ~special] = terms.low, terms.high
        rows[2, special] = tests
        rows[4], rows[5] = yes, no
        self._append(np.array(list(programs)), sizes, rows)

    def remove(self, slot: int) -> tuple[Terms, list[int]] | None:
        """Remove the program of a slot; return its terms and the numbers of its tests."""
        if slot >= len(self.view.size) or not self.view.size[slot]:
            return None
        found = self.rows(slot)
        terms = _terms(found)
        tests: list[int] = found.low[found.kind == SPECIAL].tolist()
        self._live_rows -= int(self.view.size[slot])
        self.timed -= _timed(found.kind)
        self.view.size[slot] = 0
        self.live -= 1
        if not self.live:
            self.clear()
        elif self._top > _PACK and 2 * self._live_rows < self._top:
            self._pack()
        return terms, tests

    def rows(self, slot: int) -> Programs:
        """A copy of the rows of one program."""
        start, size = int(self.view.start[slot]), int(self.view.size[slot])
        parts: list[NDArray[Any]] = [each[start : start + size].copy() for each in self.view[2:]]
        return Programs(np.zeros(1, np.int64), np.array([size], np.int32), *parts)

    def follow(self, attribute: int, moved: Moved) -> None:
        """Labels of a text attribute were renumbered: update the intervals."""
        mine = np.flatnonzero(self.view.attribute[: self._top] == attribute)
        low, high = self.view.low, self.view.high
        low[mine], high[mine] = moved.follow_lower(low[mine]), moved.follow_upper(high[mine])

    def _append(self, slots: Int64s, sizes: Int64s, rows: NDArray[np.int64]) -> None:
        """Add programs, whose rows are `rows`, one program after the other."""
        end = self._top + rows.shape[1]
        start = grown(self.view.start, int(slots.max()) + 1)
        size = grown(self.view.size, int(slots.max()) + 1)
        start[slots], size[slots] = self._top + np.cumsum(sizes) - sizes, sizes
        columns = [grown(column, end) for column in self.view[2:]]
        for column, values in zip(columns, rows, strict=True):
            column[self._top : end] = values
        self.view = Programs(start, size, *columns)
        self._top = end
        self._live_rows += rows.shape[1]
        self.live += len(slots)
        self.timed += _timed(rows[1])

    def _pack(self) -> None:
        slots = np.flatnonzero(self.view.size)
        old = self.view
        _, rows = runs(old.start[slots], old.size[slots])
        columns = np.stack([column[rows].astype(np.int64) for column in old[2:]])
        self.clear()
        self._append(slots, old.size[slots].astype(np.int64), columns)

    # -- saving ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays to save."""
        cut = {name: column[: self._top] for name, column in self.view._asdict().items()}
        return {**cut, "start": self.view.start, "size": self.view.size}

    def restore(
        self, arrays: dict[str, NDArray[Any]], width: int, tests: int, live: Int64s | None
    ) -> None:
        """Restore what `arrays` returned; check values against the slots in use, if given."""
        types = zip(Programs._fields, zeros(Programs), strict=True)
        self.view = Programs(
            *(array_of(arrays, name, np.asarray(like).dtype) for name, like in types)
        )
        self._top = len(self.view.kind)
        require(len(self.view.start) == len(self.view.size), "each program has a size")
        require(len({len(column) for column in self.view[2:]}) == 1, "steps have all columns")
        if live is not None:
            self._check_saved(width, tests, live)
        self.live = int(np.count_nonzero(self.view.size))
        self._live_rows = int(self.view.size.sum())
        self.timed = _timed(self.view.kind[self._rows_in_use()])

    def tests_in_use(self) -> Int64s:
        """The number of each special test, once for each program that asks it."""
        rows = self._rows_in_use()
        found: Int64s = self.view.low[rows[self.view.kind[rows] == SPECIAL]]
        return found

    def terms_in_use(self) -> Terms:
        """The intervals of all programs, as terms of one clause."""
        rows = self._rows_in_use()
        columns: list[NDArray[Any]] = [column[rows] for column in self.view[2:]]
        return _terms(Programs(self.view.start, self.view.size, *columns))

    def _rows_in_use(self) -> Int64s:
        slots = np.flatnonzero(self.view.size)
        return runs(self.view.start[slots], self.view.size[slots].astype(np.int64))[1]

    def _check_saved(self, width: int, tests: int, live: Int64s) -> None:
        """Refuse programs that would read or jump out of their bounds."""
        start, size, attribute, kind, low, _, yes, no = self.view
        slots = np.flatnonzero(size)
        require(bool((size >= 0).all() and np.isin(slots, live).all()), "programs have clauses")
        disjoint("start", start[slots], size[slots].astype(np.int64), self._top)
        _, rows = runs(start[slots], size[slots].astype(np.int64))
        place = rows - np.repeat(start[slots], size[slots])
        special = kind[rows] == SPECIAL
        within("kind", kind[rows], 0, AGE + 1)
        within("attribute", attribute[rows[~special]], 0, width)
        within("test", low[rows[special]], 0, tests)
        for jump in (yes[rows], no[rows]):
            require(bool(((jump >= REJECT) & (jump < place)).all()), "every step goes down")

    def steps(self, slot: int) -> list[Step]:
        """The steps of a program; none for a slot without one."""
        if slot >= len(self.view.size):
            return []
        found = self.rows(slot)
        columns = (found.kind.tolist(), found.yes.tolist(), found.no.tolist())
        return [Step(*each) for each in zip(*columns, strict=True)]

    def check(self, live: Int64s) -> list[Terms]:
        """Raise if a program is where no clause is, or a step leads out; the terms of all."""
        slots = np.flatnonzero(self.view.size).tolist()
        assert set(slots) <= set(live.tolist()), "a program without a clause"
        assert len(slots) == self.live
        assert self.timed == _timed(self.view.kind[self._rows_in_use()])
        found: list[Terms] = []
        for slot in slots:
            program = self.rows(slot)
            above = np.arange(len(program.kind))
            for jump in (program.yes, program.no):
                assert ((jump >= REJECT) & (jump < above)).all(), "every step goes down"
            found.append(_terms(program))
        return found


def _timed(kind: NDArray[Any]) -> int:
    """How many steps depend on the moment."""
    return int(np.count_nonzero(kind == AGE))


def _terms(program: Programs) -> Terms:
    """The intervals of a program, as terms of one clause."""
    plain = program.kind != SPECIAL
    kind = np.where(program.kind[plain] == MISSING, MISSING, 0).astype(np.int8)
    many = len(kind)
    return Terms(
        np.array([0, many]),
        program.attribute[plain],
        np.zeros(many, np.int16),
        kind,
        program.low[plain],
        program.high[plain],
    )
