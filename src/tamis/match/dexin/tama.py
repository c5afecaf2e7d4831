"""TAMA: count the cells of a hierarchical index table that an event falls into."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Bools, Int32s, Int64s, zeros
from tamis.index.blocks import Lists
from tamis.index.clauses import SOME, ClauseArrays, bind, holds, unbind
from tamis.index.counters import Counters, CounterScratch
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import inlined, kernel
from tamis.index.postings import Postings
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.dexin.edges import EQUAL_DEPTH, EQUAL_WIDTH
from tamis.match.dexin.value_hierarchy import LEVELS, Tables, ValueHierarchy, cells_of, lists_of
from tamis.match.options import choice, flag, whole_number

_BULK = 64  # from this many clauses on, a counting pass before writing beats sorting the entries
_COUNT = 0xFFFF  # the low bits of a counter: cells met; the high bits: partly covered cells met
_DOUBT = 0x10000
_RUN = 64  # counters compared at once in a full scan
_SPARSE = 8  # if more than one counter in 8 is raised, a full scan is cheaper than tracking


class Wanted(NamedTuple):
    """By slot: the number of counted terms, and whether other terms remain."""

    terms: Int32s  # -1 if none is counted, or for an empty slot
    verify: Bools


class Tama(Matcher):
    """Halve each attribute's codes level by level; keep a clause in the cells that it covers.

    An interval is a union of at most two cells per level, and a value lies in one cell of each
    level. An event therefore raises a clause's counter once per satisfied attribute; a clause
    matches when its counter reaches its number of terms. A bottom cell also lists the clauses that
    cover only part of it. These can be false positives (there are no false negatives);
    `exact=True` verifies them when they match.

    add, remove O(terms · levels) plus, for remove, a search of those cells; match O(levels · pairs
    + clauses met in the cells), which is N · M · (share of the domain that a term covers).

    TAMA, ICDCS 2011, as far as its abstract and public implementations describe it. `levels` (13,
    as in those) counts the whole domain as the first level. Cells are equi-depth over the ends of
    the terms, and an attribute with few ends has fewer levels and an exact result;
    `edges="equal-width"` follows the paper. Tables are rebuilt after as many additions of rows as
    there were rows. `excludes`, `missing` and a second term on one attribute are not intervals;
    clauses with these are verified with either setting. It counts a clause for each satisfied
    attribute. Wide ranges on many attributes (DEXIN's workload) therefore make it slower than
    `scan`, which leaves a clause at the first false term.

    Tally: `predicates` has the terms verified, `nodes` the cells visited, `subscriptions` the
    additions.
    """

    levels = whole_number(13, "levels of the hierarchy of cells", least=1, most=LEVELS)
    exact = flag(False, "verify what is found, for an exact answer")
    edges = choice(EQUAL_DEPTH, "where cells are cut", EQUAL_DEPTH, EQUAL_WIDTH)

    def clear(self) -> None:
        self._clear_lists()
        self._counters = Counters()
        self._since_cut = 0  # rows added since the tables were built
        self._at_cut = 0  # number of rows at that time

    def _clear_lists(self) -> None:
        self._hierarchy = ValueHierarchy(self.levels, self.edges)
        self._postings = Postings()
        self._always = SlotSet()  # clauses with no counted term
        self._wanted = zeros(Wanted)

    def find(self, batch: EventBatch) -> Matches:
        size = len(self._wanted.terms)
        return self.run(
            _match,
            batch,
            self._hierarchy.view,
            (self._postings.lists, self._postings.slots),
            self._wanted,
            self._always.slots,
            self._counters.fit(size, size),
            self._counters.stamps(len(batch.pairs.code)),
            self.exact,
        )

    def check(self) -> None:
        super().check()
        self._hierarchy.check()
        self._postings.check()
        self._always.check()
        live = self.clauses.live_slots()
        lists, starts, terms, verify = _lists_of_all(self.clauses.view, live, self._hierarchy.view)
        assert (self._wanted.terms[live] == np.where(terms > 0, terms, -1)).all()
        assert (self._wanted.verify[live] == verify).all()
        assert len(self._wanted.terms) % _RUN == 0, "whole runs: kernels read to the end of one"
        assert (self._wanted.terms >= 0).sum() == (terms > 0).sum()
        assert set(self._always.slots.tolist()) == set(live[terms == 0].tolist())
        held = set(zip(*self._postings.flat(), strict=True))
        slot = np.repeat(live, np.diff(starts))
        assert held == set(zip(lists, slot, strict=True))
        assert self._postings.total == len(held) == len(lists), "a clause stands once in a list"

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._since_cut += len(terms.low)
        if self._since_cut > max(64, self._at_cut):
            self._clear_lists()
            slots = self.clauses.live_slots()
            terms = self.terms(slots)
            self._since_cut, self._at_cut = 0, len(terms.low)
        some = terms.kind == SOME
        self._hierarchy.cut(terms.attribute[some], terms.low[some], terms.high[some])
        self._postings.number(self._hierarchy.lists)
        have = len(self._wanted.terms)
        if self.clauses.slots > have:
            size = -(-max(self.clauses.slots, have * 3 // 2) // _RUN) * _RUN  # whole runs
            self._wanted = Wanted(
                grown(self._wanted.terms, size, -1), grown(self._wanted.verify, size)
            )
        view = self.clauses.view
        if len(slots) < _BULK:
            lists, starts, counted, verify = _lists_of_all(view, slots, self._hierarchy.view)
            self._postings.append(lists, np.repeat(slots, np.diff(starts)))
        else:
            more, counted, verify = _count(view, slots, self._hierarchy.view, self._hierarchy.lists)
            self._postings.widen(more)
            lists_now = self._postings.lists
            _write(view, slots, self._hierarchy.view, lists_now, self._postings.slots)
            self._postings.written(int(more.sum()))
        self._wanted.terms[slots] = np.where(counted > 0, counted, -1)
        self._wanted.verify[slots] = verify
        self._always.add(slots[counted == 0])

    def drop_clauses(self, slots: Slots) -> None:
        lists, starts, counted, _ = _lists_of_all(self.clauses.view, slots, self._hierarchy.view)
        self._postings.remove(lists, np.repeat(slots, np.diff(starts)))
        self._wanted.terms[slots] = -1
        self._always.remove(slots[counted == 0])


@kernel
def _most(clauses: ClauseArrays, slot: int) -> int:
    """Upper bound on the lists of a clause: two cells per level for each row."""
    return int(clauses.size[slot] * 2 * (LEVELS + 1))


@kernel
def _lists_of_all(
    clauses: ClauseArrays, slots: Int64s, tables: Tables
) -> tuple[Int64s, Int64s, Int32s, Bools]:
    """The lists of clause i as `lists[starts[i]:starts[i + 1]]`, and the results of `lists_of`."""
    starts = np.zeros(len(slots) + 1, np.int64)
    terms = np.zeros(len(slots), np.int32)
    left = np.zeros(len(slots), np.bool_)
    lists = np.empty(1024, np.int64)
    n = 0
    for i in range(len(slots)):
        lists = ensure_capacity(lists, n, _most(clauses, slots[i]))
        n, terms[i], left[i] = lists_of(clauses, slots[i], tables, lists, n)
        starts[i + 1] = n
    return lists[:n], starts, terms, left


@kernel
def _count(
    clauses: ClauseArrays, slots: Int64s, tables: Tables, lists: int
) -> tuple[Int64s, Int32s, Bools]:
    """The number of the clauses in each list, and the results of `lists_of` for each clause."""
    more = np.zeros(lists, np.int64)
    terms = np.zeros(len(slots), np.int32)
    left = np.zeros(len(slots), np.bool_)
    out = np.empty(1024, np.int64)
    for i in range(len(slots)):
        out = ensure_capacity(out, 0, _most(clauses, slots[i]))
        n, terms[i], left[i] = lists_of(clauses, slots[i], tables, out, 0)
        for k in range(n):
            more[out[k]] += 1
    return more, terms, left


@kernel
def _write(
    clauses: ClauseArrays, slots: Int64s, tables: Tables, lists: Lists, pool: Int32s
) -> None:
    """Write the clauses into their lists, which have enough space."""
    out = np.empty(1024, np.int64)
    for slot in slots:
        out = ensure_capacity(out, 0, _most(clauses, slot))
        n, _, _ = lists_of(clauses, slot, tables, out, 0)
        for k in range(n):
            pool[lists.start[out[k]] + lists.size[out[k]]] = slot
            lists.size[out[k]] += 1


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    tables: Tables,
    postings: tuple[Lists, Int32s],
    wanted: Wanted,
    always: Int64s,
    scratch: CounterScratch,
    stamp: int,
    exact: bool,
) -> tuple[Int64s, Int64s, Int64s]:
    lists = postings[0]
    # `work`: terms verified, cells visited, counters raised
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    hits, touched = scratch.hits, scratch.touched
    met = np.empty(64, np.int64)
    of = np.empty(64, np.int64)  # for each list met, the first pair of its attribute
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        met = ensure_capacity(met, 0, (end - begin) * (LEVELS + 1))
        of = ensure_capacity(of, 0, (end - begin) * (LEVELS + 1))
        several = bind(events.attribute, begin, end, first, last)
        many = total = 0
        pair = begin
        for at in range(begin, end):
            if events.attribute[at] != events.attribute[pair]:
                pair = at
            before = many
            many = cells_of(tables, lists, events.attribute[at], events.code[at], met, many)
            for i in range(before, many):
                of[i] = stamp + pair
                total += lists.size[max(met[i], ~met[i])]
        work[1] += many
        work[2] += total
        # Most of the time goes here: one write per clause in each cell met.
        if several:
            raised = _raise_once(met[:many], of, postings, scratch)
        elif total * _SPARSE < len(wanted.terms):
            raised = _raise(met[:many], postings, hits, touched, True)
        else:
            _raise(met[:many], postings, hits, touched, False)
            raised = _reached(hits, wanted.terms, touched)
        out = ensure_capacity(out, found, raised + len(always))
        values = (first, last, events.code)
        for slots in (touched[:raised], always):
            kept, looked = _decide(clauses, slots, values, wanted, hits, exact, out[found:])
            found += kept
            work[0] += looked
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work


@kernel
def _decide(
    clauses: ClauseArrays,
    slots: Int64s,
    event: tuple[Int64s, Int64s, Int64s],
    wanted: Wanted,
    hits: Int32s,
    exact: bool,
    out: Int64s,
) -> tuple[int, int]:
    """Write the slots that match to `out` and reset their counters.

    Returns the number of matches, and the number of terms examined to verify doubtful ones.
    """
    first, last, code = event
    n = looked = 0
    for slot in slots:
        ok = hits[slot] & _COUNT == max(wanted.terms[slot], 0)  # `always` slots need 0
        if ok and (wanted.verify[slot] or (exact and hits[slot] >= _DOUBT)):
            ok, terms = holds(clauses, slot, first, last, code)
            looked += terms
        hits[slot] = 0
        out[n] = slot
        n += ok
    return n, looked


@inlined
def _raise(
    met: Int64s, postings: tuple[Lists, Int32s], hits: Int32s, touched: Int64s, noting: bool
) -> int:
    """Raise the counters of all clauses in the lists met.

    With `noting`, a constant, it also records the raised slots, and returns their number.
    """
    lists, pool = postings
    raised = 0
    for number in met:
        step = 1 if number >= 0 else 1 + _DOUBT
        start = lists.start[max(number, ~number)]
        for place in range(start, start + lists.size[max(number, ~number)]):
            slot = np.uint32(pool[place])  # unsigned: no test for negative indexes
            if noting:
                touched[raised] = slot
                raised += hits[slot] == 0
            hits[slot] += step
    return raised


@kernel
def _raise_once(
    met: Int64s, of: Int64s, postings: tuple[Lists, Int32s], scratch: CounterScratch
) -> int:
    """Like `_raise`, `noting`, but once per attribute, even if several values meet a clause."""
    lists, pool = postings
    hits, touched, seen, _ = scratch
    raised = 0
    for i in range(len(met)):
        step = 1 if met[i] >= 0 else 1 + _DOUBT
        number = max(met[i], ~met[i])
        start = lists.start[number]
        for place in range(start, start + lists.size[number]):
            slot = pool[place]
            if seen[slot] == of[i]:
                continue
            seen[slot] = of[i]
            if hits[slot] == 0:
                touched[raised] = slot
                raised += 1
            hits[slot] += step
    return raised


@kernel
def _reached(hits: Int32s, wanted: Int32s, out: Int64s) -> int:
    """The slots of full counters among all slots; resets the other counters.

    Few runs have a full counter, so most runs take only a few vector instructions (0.1 ns a slot).
    """
    n = 0
    for start in range(0, len(wanted), _RUN):
        run, right = hits[start : start + _RUN], wanted[start : start + _RUN]
        some = False
        for i in range(_RUN):
            some |= (run[i] & _COUNT) == right[i]
        if not some:
            for i in range(_RUN):
                run[i] = 0
            continue
        for i in range(_RUN):
            if (run[i] & _COUNT) == right[i]:
                out[n] = start + i
                n += 1
            else:
                run[i] = 0
    return n
