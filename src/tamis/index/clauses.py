"""The table of live clauses: the exact terms of each slot.

Every matcher keeps one. The matcher's index may return false candidates; `holds` decides. A clause
is a block of rows (`encode.terms` explains rows). The block of a removed clause is reused for a
clause of the same size. The table is packed when it is mostly holes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SavedIndexError
from tamis.files.arrays import Int8s, Int16s, Int32s, Int64s, runs, zeros
from tamis.files.saved_checks import array_of, disjoint, require, within
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import inlined, kernel

SOME, NONE, MISSING = 0, 1, 2
Rows = tuple[NDArray[Any], ...]  # attribute, term, kind, low, high
_ROWS = ("attribute", "term", "kind", "low", "high")
_BULK = 64  # for this many clauses or more, appending one block beats searching for holes


class ClauseArrays(NamedTuple):
    """The table as kernels see it. `size` is in rows; it is -1 for a slot without a clause."""

    start: Int64s
    size: Int32s
    attribute: Int32s
    term: Int16s
    kind: Int8s
    low: Int64s
    high: Int64s


class ClauseStorage(HoldsArrays, ABC):
    """A table of live clauses, whatever its layout. Kernels know the layout."""

    live: int  # the number of clauses
    slots: int  # one more than the highest slot used since the table was last empty
    width: int  # one more than the highest attribute

    def __len__(self) -> int:
        return self.live

    @property
    @abstractmethod
    def view(self) -> Any:
        """The arrays, for kernels."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all clauses and release the memory."""

    @abstractmethod
    def add(self, slots: Int64s, starts: Int64s, rows: Rows) -> None:
        """Put clause i (rows `starts[i]:starts[i + 1]`) into `slots[i]`, which must be free."""

    @abstractmethod
    def remove(self, slots: Int64s) -> None:
        """Empty the slots, which must hold clauses."""

    @abstractmethod
    def terms(self, slots: Int64s) -> tuple[Int64s, Rows]:
        """The starts and rows of some clauses, as `add` takes them."""

    @abstractmethod
    def live_slots(self) -> Int64s:
        """The slots that hold clauses, ascending."""

    @abstractmethod
    def mentioning(self, attribute: int) -> Int64s:
        """The slots whose clause mentions an attribute."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays to save, not copied."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the table from its saved arrays. The table owns them from now on."""

    @abstractmethod
    def check_saved(self) -> None:
        """Raise a `SavedIndexError` if the restored arrays could lead a kernel astray."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, int]]:
        """The start and size of every block of rows, used or free."""

    def check(self) -> None:
        """Raise if blocks overlap, or counts do not add up."""
        end = 0
        for at, size in sorted(block for block in self.blocks() if block[1]):
            assert at >= end, "blocks overlap"
            end = at + size
        live = self.live_slots()
        assert len(live) == self.live
        starts, (attribute, term, *_) = self.terms(live)
        inside = np.diff(np.repeat(live, np.diff(starts))) == 0  # within one clause
        assert (np.diff(attribute)[inside] >= 0).all(), "rows are sorted by attribute"
        assert (np.diff(term)[inside] >= 0).all(), "rows of a term stand together"


def inconsistent() -> SavedIndexError:
    """The error for a saved table whose arrays do not fit together."""
    return SavedIndexError(
        "the saved table of clauses is inconsistent: an array has an unexpected type or length; "
        "build and save the index again"
    )


class ClauseTable(ClauseStorage):
    """Clauses by slot, with add, remove and exact evaluation."""

    def clear(self) -> None:
        self._start = np.zeros(0, np.int64)
        self._count = np.zeros(0, np.int32)
        self._rows: Rows = zeros(ClauseArrays)[2:]
        self._top = 0  # rows in use, holes included
        self._holes: dict[int, list[int]] = {}  # block size -> starts of free blocks
        self.live = self.live_rows = 0
        self.slots = self.width = 0

    def __len__(self) -> int:
        return self.live

    @property
    def view(self) -> ClauseArrays:
        return ClauseArrays(self._start[: self.slots], self._count[: self.slots], *self._rows)

    def add(self, slots: Int64s, starts: Int64s, rows: Rows) -> None:
        if len(slots) == 0:
            return
        top = int(slots.max()) + 1
        self._start, self._count = grown(self._start, top), grown(self._count, top, -1)
        self.slots = max(self.slots, top)
        if (self._count[slots] >= 0).any():
            raise ValueError("a slot that holds a clause cannot take another")
        counts = np.diff(starts)
        if len(slots) >= _BULK:
            where = self._append(int(starts[-1])) + starts[:-1]
            for column, values in zip(self._rows, rows, strict=True):
                column[where[0] : where[0] + len(values)] = values
        else:
            where = np.empty(len(slots), np.int64)
            for i, count in enumerate(counts.tolist()):
                holes = self._holes.get(count)
                at = holes.pop() if holes else self._append(count)
                where[i] = at
                for column, values in zip(self._rows, rows, strict=True):
                    column[at : at + count] = values[starts[i] : starts[i + 1]]
        self._start[slots] = where
        self._count[slots] = counts
        self.live += len(slots)
        self.live_rows += int(starts[-1])
        if len(rows[0]):
            self.width = max(self.width, int(rows[0].max()) + 1)

    def remove(self, slots: Int64s) -> None:
        if len(slots) == 0:
            return
        if slots.max() >= len(self._count) or (self._count[slots] < 0).any():
            raise ValueError("a slot without a clause cannot be emptied")
        counts = self._count[slots]
        for start, count in zip(self._start[slots].tolist(), counts.tolist(), strict=True):
            self._holes.setdefault(count, []).append(start)
        self._count[slots] = -1
        self.live -= len(slots)
        self.live_rows -= int(counts.sum())
        if self.live == 0:
            self.clear()
        elif self._top > 1024 and self.live_rows * 4 < self._top:
            self._pack()

    def terms(self, slots: Int64s) -> tuple[Int64s, Rows]:
        starts, rows = runs(self._start[slots], self._count[slots])
        return starts, tuple(column[rows] for column in self._rows)

    def live_slots(self) -> Int64s:
        return np.flatnonzero(self._count[: self.slots] >= 0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        named = zip(_ROWS, self._rows, strict=True)
        holes = [(start, size) for size, free in self._holes.items() for start in free]
        return {
            "start": self._start[: self.slots],
            "size": self._count[: self.slots],
            **{name: column[: self._top] for name, column in named},
            "holes": np.array(holes, np.int64).reshape(len(holes), 2),
            "counts": np.array([self.live, self.live_rows, self.width], np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        start, size, holes = arrays["start"], arrays["size"], arrays["holes"]
        counts = array_of(arrays, "counts")
        rows = tuple(arrays[name] for name in _ROWS)
        self.clear()
        own: list[NDArray[Any]] = [self._start, self._count, *self._rows]
        fits = [each.dtype for each in [start, size, *rows]] == [each.dtype for each in own]
        fits = fits and all(each.ndim == 1 for each in [start, size, *rows])
        fits = fits and holes.dtype == np.int64 and holes.shape == (len(holes), 2)
        fits = fits and len(counts) == 3 and bool((counts >= 0).all())
        if not (fits and len(start) == len(size) and len({len(column) for column in rows}) == 1):
            raise inconsistent()
        self._start, self._count, self._rows = start, size, rows
        self._top, self.slots = len(rows[0]), len(start)
        self.live, self.live_rows, self.width = counts.tolist()
        for each in np.unique(holes[:, 1]).tolist():
            self._holes[each] = holes[holes[:, 1] == each, 0].tolist()

    def check_saved(self) -> None:
        live = self._count >= 0
        holes = [(at, size) for size, free in self._holes.items() for at in free]
        free = np.array(holes, np.int64).reshape(-1, 2)
        starts = np.concatenate([self._start[live], free[:, 0]])
        sizes = np.concatenate([self._count[live].astype(np.int64), free[:, 1]])
        require(bool((free[:, 1] >= 0).all()), "every hole has a size")
        inside = disjoint("start", starts, sizes, self._top)
        counts = int(np.count_nonzero(live)), int(self._count[live].sum(dtype=np.int64))
        require(counts == (self.live, self.live_rows), "'counts' counts the clauses and their rows")
        attribute, term, kind, low, high = self._rows
        within("attribute", attribute, 0, self.width)
        within("kind", kind, SOME, MISSING + 1)
        require(bool((low <= high)[kind != MISSING].all()), "no interval is empty")
        inside[starts[sizes > 0]] = False  # all rows of clauses but the first of each
        sorted_ = (attribute[1:] >= attribute[:-1]) & (term[1:] >= term[:-1])
        alike = (attribute[1:] == attribute[:-1]) & (kind[1:] == kind[:-1])
        fits = sorted_ & (alike | (term[1:] != term[:-1]))
        require(bool(fits[inside[1:]].all()), "the rows of a clause are sorted")

    def mentioning(self, attribute: int) -> Int64s:
        return _mentioning(self.view, attribute)

    def blocks(self) -> Iterator[tuple[int, int]]:
        live = self.live_slots()
        yield from zip(self._start[live].tolist(), self._count[live].tolist(), strict=True)
        yield from ((at, size) for size, holes in self._holes.items() for at in holes)

    def check(self) -> None:
        super().check()
        assert int(self._count[self.live_slots()].sum()) == self.live_rows
        assert max((sum(block) for block in self.blocks()), default=0) <= self._top
        assert self._top <= len(self._rows[0])

    def _append(self, rows: int) -> int:
        at = self._top
        if at + rows > len(self._rows[0]):
            self._rows = tuple(grown(column, at + rows) for column in self._rows)
        self._top = at + rows
        return at

    def _pack(self) -> None:
        live = self.live_slots()
        starts, rows = self.terms(live)
        self._rows = rows
        self._start[live] = starts[:-1]
        self._top = len(rows[0])
        self._holes = {}


def finite_ends(
    attribute: Int32s, _: Any, kind: Int8s, low: Int64s, high: Int64s
) -> tuple[Int32s, Int64s]:
    """The attributes and finite ends of the SOME terms among rows, sorted by both."""
    some = kind == SOME
    attributes, ends = np.tile(attribute[some], 2), np.concatenate([low[some], high[some]])
    finite = (ends != -(2**63)) & (ends != 2**63 - 1)
    attributes, ends = attributes[finite], ends[finite]
    order = np.lexsort((ends, attributes))
    return attributes[order], ends[order]


@inlined
def holds(
    clauses: ClauseArrays, slot: int, first: Int64s, last: Int64s, code: Int64s
) -> tuple[bool, int]:
    """Whether the clause in `slot` holds, and the number of terms evaluated.

    The event's values of attribute a are `code[first[a]:last[a]]`. Stops at the first failing term.
    """
    row = clauses.start[slot]
    end = row + clauses.size[slot]
    looked = 0
    while row < end:
        looked += 1
        a = clauses.attribute[row]
        term = clauses.term[row]
        kind = clauses.kind[row]
        inside = False
        while row < end and clauses.term[row] == term:
            if not inside:
                for at in range(first[a], last[a]):
                    if clauses.low[row] <= code[at] <= clauses.high[row]:
                        inside = True
                        break
            row += 1
        bound = first[a] < last[a]
        if kind == SOME:
            ok = inside
        elif kind == NONE:
            ok = bound and not inside
        else:
            ok = not bound
        if not ok:
            return False, looked
    return True, looked


@kernel
def bind(attribute: Int32s, start: int, end: int, first: Int64s, last: Int64s) -> bool:
    """Record where the values of one event are, by attribute. Its pairs are `start:end`.

    Returns whether it has several values of an attribute.
    """
    several = False
    for at in range(start, end):
        a = attribute[at]
        if a < len(first):  # no clause constrains attributes past the end
            if first[a] == last[a]:
                first[a] = at
            else:
                several = True
            last[a] = at + 1
    return several


@kernel
def unbind(attribute: Int32s, start: int, end: int, first: Int64s, last: Int64s) -> None:
    """Clear one event again. The cost depends on its pairs, not on the width of the schema."""
    for at in range(start, end):
        a = attribute[at]
        if a < len(first):
            first[a] = 0
            last[a] = 0


@kernel
def _mentioning(clauses: ClauseArrays, attribute: int) -> Int64s:
    """The slots whose clause mentions an attribute."""
    found = np.empty(len(clauses.size), np.int64)
    many = 0
    for slot in range(len(clauses.size)):
        for row in range(clauses.start[slot], clauses.start[slot] + clauses.size[slot]):
            if clauses.attribute[row] >= attribute:  # rows are sorted by attribute
                if clauses.attribute[row] == attribute:
                    found[many] = slot
                    many += 1
                break
    return found[:many]
