"""Clauses in one form: two clauses that say the same of all consistent events have equal rows.

A clause has two forms. Its *own* form leaves out what every consistent event satisfies. Its
*settled* form also says what event types add: `event_type = offer` binds what an offer must have.
One clause lies in another exactly if the settled form of the first satisfies each row of the own
form of the second. Where there is one event type, both forms are the same.

`missing` is a row on an attribute of its own, that of the missing attribute plus their number. Most
clauses have one interval for each attribute; they take the path through arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.encode.clause import EVENT_TYPE_POSITION, MISSING, NONE, SOME
from tamis.encode.terms import Row, Terms, from_rows, joined
from tamis.engine.redundancy.cells import Cell, Spans, outside, united
from tamis.engine.redundancy.collected_clauses import CollectedClauses
from tamis.engine.redundancy.consistent_events import (
    Box,
    ConsistentEvents,
    SettledBox,
    box_of,
    is_free,
)
from tamis.files.arrays import Bools, Int64s

_STEP = 1 << 14


class CanonicalClauses(NamedTuple):
    """The clauses that can hold, in both forms, and their owners."""

    own: Terms
    settled: Terms
    owner: Int64s
    opaque: Bools


class ClauseForms:
    """Rewrites clauses."""

    def __init__(self, events: ConsistentEvents, collected: CollectedClauses) -> None:
        self.events, self._collected = events, collected
        self.count = len(events.codes)  # attributes; their `missing` is the same number further
        self._terms = self._dense(collected.terms)
        self._exists: set[int] = set()  # attributes that some own form wants bound, and no more
        self._missing: set[int] = set()  # attributes that some own form wants missing
        self._free: dict[tuple[int, Cell], bool] = {}

    def _dense(self, terms: Terms) -> Terms:
        """The terms with dense codes. Rows with low > high contain no value."""
        low, high = terms.low.copy(), terms.high.copy()
        for at in np.unique(terms.attribute).tolist():
            of = self._collected.marked.get(at, at)
            if of >= 0:
                mine = (terms.attribute == at) & (terms.kind != MISSING)
                low[mine], high[mine] = self.events.codes[of].ends(low[mine], high[mine])
        return terms._replace(low=low, high=high)

    def canonical(self, progress: Callable[[int], object]) -> CanonicalClauses:
        """All clauses that can hold. `progress` is called with the number of those done."""
        terms = self._terms
        simple = self._simple()
        own = self._plain(terms.take(np.flatnonzero(simple)))
        rest = np.flatnonzero(~simple)
        own_rows: list[list[Row]] = []
        kept: list[int] = []
        for done, clause in enumerate(rest.tolist()):
            if done % _STEP == 0:
                progress(int(simple.sum()) + done)
            box, marks = self.box(clause)
            settled = self.events.settle(box)
            if settled is not None:
                used = settled.box if self.events.one_type else box
                own_rows.append([*self._rows(used, note=True), *marks])
                kept.append(clause)
        settled_form = None
        if not self.events.one_type:
            settled_form = []
            for clause in kept:
                box, marks = self.box(clause)
                found = self.events.settle(box)
                assert found is not None
                settled_form.append([*self._rows(self._added(found)), *marks])
        order = np.argsort(np.concatenate([np.flatnonzero(simple), np.array(kept, np.int64)]))
        clauses = np.concatenate([np.flatnonzero(simple), np.array(kept, np.int64)])[order]
        parts = [own, _terms(own_rows)]
        made = joined(parts).take(order)
        return CanonicalClauses(
            made,
            made if settled_form is None else joined([own, _terms(settled_form)]).take(order),
            self._collected.owner[clauses],
            self._collected.opaque[clauses],
        )

    def _simple(self) -> Bools:
        """Which clauses have one interval of one term for each attribute."""
        terms, events = self._terms, self.events
        if not events.one_type:
            return np.zeros(terms.clauses, np.bool_)
        clause = np.repeat(np.arange(terms.clauses), np.diff(terms.starts))
        odd = (terms.kind != SOME) | (terms.low > terms.high)
        again = (np.diff(clause) == 0) & (np.diff(terms.attribute) == 0)
        odd[1:] |= again
        never = [at for at in range(self.count) if not events.ever_bound(at)]
        if never:
            odd |= np.isin(terms.attribute, never)
        simple = np.ones(terms.clauses, np.bool_)
        simple[clause[odd]] = False
        return simple

    def _plain(self, terms: Terms) -> Terms:
        """Simple clauses without the rows that every event satisfies."""
        bound = [at for at in range(self.count) if self.events.always_bound(at)]
        spans = np.array([(c.bottom, c.top) for c in self.events.codes], np.int64).reshape(-1, 2)
        at = np.minimum(terms.attribute, self.count - 1)
        free = np.isin(terms.attribute, bound)
        free &= (terms.low <= spans[at, 0]) & (terms.high >= spans[at, 1])
        starts = np.concatenate([[0], np.cumsum(~free)])[terms.starts]
        columns: list[Any] = [column[~free] for column in terms[1:]]
        return Terms(starts, *columns)

    def box(self, clause: int) -> tuple[Box, list[Row]]:
        """The cells of a clause as it was given, and the rows of its marks."""
        terms = self._terms
        each = range(terms.starts[clause], terms.starts[clause + 1])
        spans: dict[tuple[int, int, bool], list[tuple[int, int]]] = {}
        missing: list[int] = []
        for row in each:
            at, kind = int(terms.attribute[row]), int(terms.kind[row])
            if kind == MISSING:
                missing.append(at)
            else:
                span = int(terms.low[row]), int(terms.high[row])
                spans.setdefault((at, int(terms.term[row]), kind == SOME), []).append(span)
        real = [
            (at, some, united(found))
            for (at, _, some), found in spans.items()
            if at < 2 * self.count
        ]
        marks = [
            (at, number, SOME, low, high)
            for number, ((at, _, _), found) in enumerate(sorted(spans.items()))
            if at >= 2 * self.count
            for low, high in united(found)
        ]
        return box_of(self.events, real, missing), marks

    def boxes(self, rows: Sequence[Row]) -> Box:
        """The cells of rows in the own form, without marks."""
        found: dict[tuple[int, int, bool], list[tuple[int, int]]] = {}
        missing = [at - self.count for at, *_ in rows if self.count <= at < 2 * self.count]
        for at, term, kind, low, high in rows:
            if at < self.count:
                found.setdefault((at, term, kind == SOME), []).append((low, high))
        terms = [(at, some, tuple(spans)) for (at, _, some), spans in found.items()]
        return box_of(self.events, terms, missing)

    def _added(self, settled: SettledBox) -> Box:
        """A settled box with all that its event types say and some clause asks for."""
        events, box = self.events, dict(settled.box)
        box[EVENT_TYPE_POSITION] = events.types_cell(settled)
        for at in self._exists - box.keys():
            if events.surely_bound(settled, at):
                box[at] = Cell(False, events.everything(at))
        for at in self._missing - box.keys():
            if not events.uses[at].having & settled.types:
                box[at] = Cell(True, ())
        return box

    def _rows(self, box: Box, *, note: bool = False) -> list[Row]:
        """The rows of a box, without what every event satisfies."""
        found: list[Row] = []
        missing: list[Row] = []
        for at in sorted(box):
            cell = box[at].simplest()
            key = at, cell
            if key not in self._free:
                if len(self._free) > 1 << 16:
                    self._free.clear()
                self._free[key] = is_free(self.events, at, cell)
            if self._free[key]:
                continue
            if not cell.binds:
                missing.append((at + self.count, 0, SOME, 0, 0))
                if note:
                    self._missing.add(at)
                continue
            codes = self.events.codes[at]
            terms: list[tuple[int, Spans]] = [(SOME, hit) for hit in cell.hits]
            whole = ((codes.bottom, codes.top),)
            if self.events.single(at) or (cell.allowed == whole and not terms):
                terms.append((SOME, cell.allowed))
            elif cell.allowed != whole:
                terms.append((NONE, outside(cell.allowed, codes.bottom, codes.top)))
            if note and cell == Cell(False, whole):
                self._exists.add(at)
            found += [
                (at, number, kind, low, high)
                for number, (kind, spans) in enumerate(terms)
                for low, high in spans
            ]
        return [*found, *missing]


def _terms(clauses: Sequence[Sequence[Row]]) -> Terms:
    if not clauses:
        return from_rows([[]])._replace(starts=np.zeros(1, np.int64))
    return from_rows(clauses)
