"""The table of live clauses, laid out for random access to single clauses.

`index.clauses.ClauseTable` keeps one column per field of a row, so reading a random clause costs
one cache miss per column. Here the rows of a clause are contiguous, three words each, so it costs
two: one for the position of the clause, one for the clause. Both tables are kept because saved
indexes contain both, under different names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int8s, Int16s, Int32s, Int64s, runs, zeros
from tamis.files.saved_checks import require
from tamis.index.clauses import MISSING, NONE, SOME, ClauseStorage, Rows, inconsistent
from tamis.index.growth import grown
from tamis.index.kernel import inlined, kernel

ROW = 3  # words per row: attribute, term and kind; low; high
COUNT_BITS = 24
COUNT_MASK = (1 << COUNT_BITS) - 1
_SIZES = 64  # blocks with fewer rows than this are reused
_TOP, _LIVE, _LIVE_ROWS, _WIDTH = range(4)


class PackedClauses(NamedTuple):
    """The table as kernels see it.

    `where[slot]` is -1, or one word with the number of the clause's first row and, in the low bits,
    the number of its rows. Row r is `rows[3 r : 3 r + 3]`: attribute, term and kind in one word
    (the attribute in the upper half, the kind in the lowest byte), low, high.
    """

    where: Int64s
    rows: Int64s


class PackedTable(ClauseStorage):
    """Clauses by slot, with add and remove. Freed blocks are reused for blocks of the same size."""

    view = PackedClauses(np.zeros(0, np.int64), np.zeros(0, np.int64))  # for kernels

    def clear(self) -> None:
        self.view = zeros(PackedClauses)
        self._free = np.full(_SIZES, -1, np.int64)  # first free block of each size
        self._head = np.zeros(4, np.int64)
        self.live = self.slots = self.width = 0

    @property
    def nbytes(self) -> int:
        """Bytes in use in all arrays."""
        return self.view.where.nbytes + self.view.rows.itemsize * ROW * int(self._head[_TOP])

    def add(self, slots: Int64s, starts: Int64s, rows: Rows) -> None:
        if len(slots) == 0:
            return
        top = int(slots.max()) + 1
        self.slots = max(self.slots, top)
        needed = ROW * (int(self._head[_TOP]) + len(rows[0]))
        if top > len(self.view.where):
            self.view = self.view._replace(where=grown(self.view.where, top, -1))
        if needed > len(self.view.rows):
            # Double the size: untouched memory is free, and copying a million clauses means
            # hundreds of megabytes, during which the caller of `add` has to wait.
            self.view = self.view._replace(rows=grown(self.view.rows, max(2 * needed, 256)))
        attribute, term, kind, low, high = rows
        if not _add(
            *self.view, self._free, self._head, slots, starts, attribute, term, kind, low, high
        ):
            raise ValueError("a slot that holds a clause cannot take another")
        self._know_counts()

    def remove(self, slots: Int64s) -> None:
        if len(slots) == 0:
            return
        if not _remove(*self.view, self._free, self._head, slots):
            raise ValueError("a slot without a clause cannot be emptied")
        self._know_counts()
        top = int(self._head[_TOP])
        if self.live == 0:
            self.clear()
        elif top > 1024 and int(self._head[_LIVE_ROWS]) * 4 < top:
            self._pack()

    def terms(self, slots: Int64s) -> tuple[Int64s, Rows]:
        where = self.view.where[slots]
        starts, rows = runs(where >> COUNT_BITS, where & COUNT_MASK)
        whole = len(self.view.rows) // ROW * ROW
        table = self.view.rows[:whole].reshape(-1, ROW)[rows]
        what = table[:, 0]
        return starts, (
            (what >> 32).astype(np.int32),
            ((what >> 8) & 0xFFFF).astype(np.int16),
            (what & 0xFF).astype(np.int8),
            np.ascontiguousarray(table[:, 1]),
            np.ascontiguousarray(table[:, 2]),
        )

    def live_slots(self) -> Int64s:
        return np.flatnonzero(self.view.where[: self.slots] >= 0)

    def mentioning(self, attribute: int) -> Int64s:
        return _mentioning(*self.view, attribute)

    def blocks(self) -> Iterator[tuple[int, int]]:
        where = self.view.where[self.live_slots()]
        yield from zip((where >> COUNT_BITS).tolist(), (where & COUNT_MASK).tolist(), strict=True)
        for size in range(1, _SIZES):
            at = int(self._free[size])
            while at >= 0:
                yield at, size
                at = int(self.view.rows[ROW * at])

    def check(self) -> None:
        super().check()
        assert (self.live, self.width) == (self._head[_LIVE], self._head[_WIDTH])
        counts = self.view.where[self.live_slots()] & COUNT_MASK
        assert int(counts.sum()) == self._head[_LIVE_ROWS]
        assert max((sum(block) for block in self.blocks()), default=0) <= self._head[_TOP]
        assert self._head[_TOP] <= len(self.view.rows) // ROW

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "where": self.view.where[: self.slots],
            "rows": self.view.rows[: ROW * int(self._head[_TOP])],
            "free": self._free,
            "head": self._head,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        where, rows, free, head = (arrays[name] for name in ("where", "rows", "free", "head"))
        every = (where, rows, free, head)
        fits = all(each.dtype == np.int64 and each.ndim == 1 for each in every)
        if not (
            fits and len(free) == _SIZES and len(head) == 4 and len(rows) == ROW * int(head[_TOP])
        ):
            raise inconsistent()
        self.view, self._free, self._head = PackedClauses(where, rows), free, head
        self.slots = len(where)
        self._know_counts()

    def check_saved(self) -> None:
        require(_fits(*self.view, self._free, self._head), "clauses are rows of their table")

    def own(self) -> None:
        """Copy read-only arrays: unpickling may place arrays in shared memory."""
        where, rows, self._free, self._head = (
            each if each.flags.writeable else each.copy()
            for each in (*self.view, self._free, self._head)
        )
        self.view = PackedClauses(where, rows)

    def _know_counts(self) -> None:
        """Cache the counts that every match reads as plain integers, faster than array reads."""
        self.live, self.width = int(self._head[_LIVE]), int(self._head[_WIDTH])

    def _pack(self) -> None:
        live = self.live_slots()
        starts, rows = self.terms(live)
        width = self._head[_WIDTH]
        self.clear()
        self.add(live, starts, rows)
        self._head[_WIDTH] = width  # buffers and indexes built for this width are still in use
        self._know_counts()


@inlined
def packed_holds(where: Int64s, rows: Int64s, slot: int, span: Int32s, code: Int64s) -> bool:
    """Whether the clause in `slot` holds, as in `clauses.holds`.

    The event's values of attribute a are `code[span[2 a]:span[2 a + 1]]`.
    """
    at = where[slot]
    row = ROW * (at >> COUNT_BITS)
    end = row + ROW * (at & COUNT_MASK)
    ok = bool(at >= 0)  # a forged index may name a slot without a clause
    while ok and row < end:
        what = rows[row]
        a = what >> 32
        begin, stop = span[2 * a], span[2 * a + 1]
        inside = False
        while row < end and rows[row] == what:
            if not inside:
                for pair in range(begin, stop):
                    if rows[row + 1] <= code[pair] <= rows[row + 2]:
                        inside = True
                        break
            row += ROW
        kind = what & 0xFF
        if kind == SOME:
            ok = inside
        elif kind == NONE:
            ok = begin < stop and not inside
        else:
            ok = begin >= stop
    return ok


@kernel
def _add(
    where: Int64s,
    rows: Int64s,
    free: Int64s,
    head: Int64s,
    slots: Int64s,
    starts: Int64s,
    attribute: Int32s,
    term: Int16s,
    kind: Int8s,
    low: Int64s,
    high: Int64s,
) -> bool:
    for i in range(len(slots)):
        if where[slots[i]] >= 0:
            return False
    for i in range(len(slots)):
        count = starts[i + 1] - starts[i]
        at = free[count] if count < _SIZES else -1
        if at >= 0 and count > 0:
            free[count] = rows[ROW * at]
        else:
            at = head[_TOP]
            head[_TOP] += count
        where[slots[i]] = (at << COUNT_BITS) | count
        to = ROW * at
        for row in range(starts[i], starts[i + 1]):
            a = np.int64(attribute[row])
            rows[to] = (a << 32) | (np.int64(term[row]) << 8) | np.int64(kind[row])
            rows[to + 1] = low[row]
            rows[to + 2] = high[row]
            to += ROW
            head[_WIDTH] = max(head[_WIDTH], a + 1)
        head[_LIVE] += 1
        head[_LIVE_ROWS] += count
    return True


@kernel
def _remove(where: Int64s, rows: Int64s, free: Int64s, head: Int64s, slots: Int64s) -> bool:
    for i in range(len(slots)):
        if slots[i] >= len(where) or where[slots[i]] < 0:
            return False
    for i in range(len(slots)):
        at = where[slots[i]] >> COUNT_BITS
        count = where[slots[i]] & COUNT_MASK
        where[slots[i]] = -1
        if 0 < count < _SIZES:  # larger blocks are reclaimed when the table is packed
            rows[ROW * at] = free[count]
            free[count] = at
        head[_LIVE] -= 1
        head[_LIVE_ROWS] -= count
    return True


@kernel
def _fits(where: Int64s, rows: Int64s, free: Int64s, head: Int64s) -> bool:
    """Whether every block of rows lies in the table, by itself, and holds what rows hold."""
    top, width = len(rows) // ROW, head[_WIDTH]
    taken = np.zeros(top, np.bool_)
    live, live_rows = 0, 0
    for slot in range(len(where)):
        if where[slot] < 0:
            continue
        at, count = where[slot] >> COUNT_BITS, where[slot] & COUNT_MASK
        live += 1
        live_rows += count
        if count > 0 and at + count > top:
            return False
        before = 0
        for row in range(at, at + count):
            what = rows[ROW * row]
            empty = what & 0xFF != MISSING and rows[ROW * row + 1] > rows[ROW * row + 2]
            if taken[row] or what < before or what >> 32 >= width or what & 0xFF > MISSING or empty:
                return False
            taken[row] = True
            before = what >> 32 << 32  # sorted by attribute
    for size in range(1, _SIZES):
        at = free[size]
        while at >= 0:
            if at > top - size:
                return False
            for row in range(at, at + size):
                if taken[row]:
                    return False
                taken[row] = True
            at = rows[ROW * at]
    return bool(live == head[_LIVE] and live_rows == head[_LIVE_ROWS])


@kernel
def _mentioning(where: Int64s, rows: Int64s, attribute: int) -> Int64s:
    found = np.empty(len(where), np.int64)
    many = 0
    for slot in range(len(where)):
        if where[slot] < 0:
            continue
        row = ROW * (where[slot] >> COUNT_BITS)
        end = row + ROW * (where[slot] & COUNT_MASK)
        while row < end and rows[row] >> 32 < attribute:  # rows are sorted by attribute
            row += ROW
        if row < end and rows[row] >> 32 == attribute:
            found[many] = slot
            many += 1
    return found[:many]
