"""The hanson algorithm: index one selective predicate per subscription in an interval tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Floats, Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.clauses import MISSING, NONE, SOME, ClauseArrays, bind, finite_ends, holds, unbind
from tamis.index.counters import Counters
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import bisect_left, bisect_right
from tamis.index.slot_set import SlotSet
from tamis.index.verification import answer_arrays
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.lesubscribe.ibs_tree import IbsTreeNodes, IbsTrees, descend
from tamis.match.options import Option

Selectivity = Callable[[Int32s, Int64s, Int64s], NDArray[Any]]
"""Maps attributes and closed intervals of codes to the share of events inside each interval."""

_SAMPLE = 1 << 15  # at most this many clauses are sampled for statistics
_FEW = 16  # changes to fewer than one clause in 16 go into the trees one by one
_NO_TERM = -1  # the clause has no access term


class EndStatistics(NamedTuple):
    """Distinct interval ends; those of attribute a are `ends[starts[a]:starts[a+1]]`.

    The estimated selectivity of an interval is the share of these ends that it covers. An equality
    therefore has selectivity 1 / distinct values.
    """

    starts: Int64s
    ends: Int64s


class Intervals(NamedTuple):
    """Intervals to store in the trees."""

    tree: Int64s
    low: Int64s
    high: Int64s
    slot: Int64s


class Trees(NamedTuple):
    """The trees as the kernel sees them."""

    nodes: IbsTreeNodes
    lists: Lists
    owners: Int32s


class Hanson(Matcher):
    """Look up each event value among the access predicates on its attribute; verify the rest.

    The access predicate of a subscription is its most selective one. All access predicates on an
    attribute are stored in one interval binary search tree, and one descent finds those that
    contain the event's value. The remaining predicates of each candidate are tested until one is
    false.

    add, remove O(log² n) on average, amortised (when the set has doubled, access predicates are
    chosen again and the trees are rebuilt); match O(attributes · log n + candidates · predicates).

    Le Subscribe, figure 6, after Hanson, Chaabouni, Kim and Wang, SIGMOD 1990. The paper does not
    say how to measure selectivity. `access="selective"` estimates it from the interval ends of the
    subscriptions. `access=f` calls a function of attributes, lows and highs that returns the share
    of events inside. `access="first"` takes the first predicate that a tree can hold, to show the
    cost of a bad choice. A predicate with several intervals has several entries in its tree; `!=`
    has one for each side of its value. `excludes` covers all values and is always verified.
    Subscriptions with only `missing` predicates are verified for every event.
    With many candidates (wide ranges, few distinct values, a large share of matches) it is slower
    than `scan`: a candidate costs several cache misses, a scanned subscription none.
    """

    access: Option[str | Selectivity] = Option(
        "selective",
        "which predicate of a subscription stands in the tree",
        values="'selective', 'first' or a function of attributes, lows and highs",
        valid=lambda value: callable(value) or value in ("selective", "first"),
    )

    def clear(self) -> None:
        self._trees = IbsTrees()
        self._always = SlotSet()  # clauses that no tree can hold
        self._access = np.zeros(0, np.int16)  # by slot: the first row of its access term
        self._statistics = EndStatistics(np.zeros(1, np.int64), np.zeros(0, np.int64))
        self._counters = Counters()
        self._at_build = 0  # clauses when access predicates were last chosen
        self._since_build = 0  # clauses added since

    def find(self, batch: EventBatch) -> Matches:
        return self.run(
            _match,
            batch,
            Trees(self._trees.nodes, self._trees.lists, self._trees.owners),
            self._access,
            self._always.slots,
            self._counters.fit(0, len(self._access)).seen,
            self._counters.stamps(len(batch)),
        )

    def check(self) -> None:
        super().check()
        self._always.check()
        live = self.clauses.live_slots()
        held = _intervals(self.clauses.view, live, self._access)
        self._trees.check(*held)
        left = np.setdiff1d(live, held.slot)
        assert (np.sort(self._always.slots) == left).all(), "a tree or the list holds each clause"

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._access = grown(self._access, self.clauses.slots, _NO_TERM)
        self._since_build += len(slots)
        if self._since_build > self._at_build or len(slots) * _FEW > len(self.clauses):
            self._build(self.clauses.live_slots())
            return
        self._choose(slots)
        held = _intervals(self.clauses.view, slots, self._access)
        for interval in zip(*(column.tolist() for column in held), strict=True):
            self._trees.add(*interval)
        self._always.add(np.setdiff1d(slots, held.slot))

    def drop_clauses(self, slots: Slots) -> None:
        if len(slots) == len(self.clauses):
            return  # everything goes: the caller clears the index
        if len(slots) * _FEW > len(self.clauses):
            self._build(np.setdiff1d(self.clauses.live_slots(), slots))
            return
        held = _intervals(self.clauses.view, slots, self._access)
        for interval in zip(*(column.tolist() for column in held), strict=True):
            self._trees.remove(*interval)
        self._always.remove(np.setdiff1d(slots, held.slot))

    def _build(self, slots: Slots) -> None:
        """Choose all access predicates again and rebuild the trees."""
        step = -(-len(slots) // _SAMPLE)
        self._statistics = _statistics(self.terms(slots[::step]))
        self._choose(slots)
        held = _intervals(self.clauses.view, slots, self._access)
        self._trees.build(*held)
        self._always.clear()
        self._always.add(np.setdiff1d(slots, held.slot))
        self._at_build, self._since_build = len(slots), 0

    def _choose(self, slots: Slots) -> None:
        """Choose the access predicate of each clause."""
        terms = self.terms(slots)
        rows = terms.attribute, terms.low, terms.high
        share = np.zeros(len(terms.low))
        if self.access == "selective":
            share = _shares(self._statistics, *rows)
        elif callable(self.access):
            share[:] = self.access(*rows)
        _choose(self.clauses.view, slots, terms.starts, share, self._access)


def _statistics(terms: Terms) -> EndStatistics:
    attribute, end = finite_ends(*terms[1:])
    first = np.ones(len(end), np.bool_)
    first[1:] = (attribute[1:] != attribute[:-1]) | (end[1:] != end[:-1])
    counts = np.bincount(attribute[first])
    return EndStatistics(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), end[first])


@kernel
def _shares(statistics: EndStatistics, attribute: Int32s, low: Int64s, high: Int64s) -> Floats:
    """The share of an attribute's ends that each interval covers; counts at least one end."""
    shares = np.ones(len(low))
    for i in range(len(low)):
        a = attribute[i]
        if a + 1 >= len(statistics.starts):
            continue
        start, end = statistics.starts[a], statistics.starts[a + 1]
        if start == end:
            continue
        first = bisect_left(statistics.ends, start, end, low[i])
        last = bisect_right(statistics.ends, first, end, high[i])
        shares[i] = max(1, last - first) / (end - start)
    return shares


@kernel
def _choose(
    clauses: ClauseArrays, slots: Int64s, starts: Int64s, shares: Floats, access: Any
) -> None:
    """Choose the terms with the least share of events, given by row; the first of equals wins."""
    for i in range(len(slots)):
        start = clauses.start[slots[i]]
        end = start + clauses.size[slots[i]]
        best, least = _NO_TERM, np.inf
        row = start
        while row < end:
            first = row
            share = 0.0
            while row < end and clauses.term[row] == clauses.term[first]:
                share += shares[starts[i] + row - start]
                row += 1
            if clauses.kind[first] == NONE:
                share = 1.0
            if clauses.kind[first] != MISSING and share < least:
                best, least = first - start, share
        access[slots[i]] = best


@kernel
def _intervals(clauses: ClauseArrays, slots: Int64s, access: NDArray[np.int16]) -> Intervals:
    """The intervals that the trees hold for some clauses: the rows of their access terms."""
    most = 0
    for slot in slots:
        most += clauses.size[slot]
    tree = np.empty(most, np.int64)
    low = np.empty(most, np.int64)
    high = np.empty(most, np.int64)
    owner = np.empty(most, np.int64)
    n = 0
    for slot in slots:
        if access[slot] == _NO_TERM:
            continue
        start = clauses.start[slot] + access[slot]
        end = clauses.start[slot] + clauses.size[slot]
        row = start
        while row < end and clauses.term[row] == clauses.term[start]:
            tree[n], owner[n] = clauses.attribute[row], slot
            low[n], high[n] = clauses.low[row], clauses.high[row]
            if clauses.kind[row] == NONE:  # covers every value; verified later
                low[n], high[n] = LOWEST, HIGHEST
                n += 1
                break
            n += low[n] <= high[n]
            row += 1
    return Intervals(tree[:n], low[:n], high[:n], owner[:n])


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    trees: Trees,
    access: NDArray[np.int16],
    always: Int64s,
    seen: Int64s,
    stamp: int,
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: predicates tested, nodes visited, candidates
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    nodes, lists, owners = trees
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, begin, end, first, last)
        for at in range(begin, end):
            a = events.attribute[at]
            if a >= len(nodes.root):
                continue
            node = nodes.root[a]
            while node >= 0:
                marks, node = descend(nodes, node, events.code[at])
                work[1] += 1
                work[2] += lists.size[marks]
                out = ensure_capacity(out, found, lists.size[marks])
                for place in range(lists.start[marks], lists.start[marks] + lists.size[marks]):
                    slot = owners[place]
                    if several:  # another value of the attribute may have led here
                        if seen[slot] == stamp + event:
                            continue
                        seen[slot] = stamp + event
                    # Most of the time goes here: the rows of successive candidates are far apart.
                    ok, looked = _others_hold(clauses, slot, access[slot], first, last, events.code)
                    work[0] += looked
                    if ok:
                        out[found] = slot
                        found += 1
        out = ensure_capacity(out, found, len(always))
        for slot in always:
            ok, looked = holds(clauses, slot, first, last, events.code)
            work[0] += looked
            if ok:
                out[found] = slot
                found += 1
        work[2] += len(always)
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work


@kernel
def _others_hold(
    clauses: ClauseArrays, slot: int, access: int, first: Int64s, last: Int64s, code: Int64s
) -> tuple[bool, int]:
    """Like `holds`, but skips the access term, which is known to hold unless it is `excludes`."""
    start = clauses.start[slot]
    row, end = start, start + clauses.size[slot]
    looked = 0
    while row < end:
        a = clauses.attribute[row]
        term = clauses.term[row]
        kind = clauses.kind[row]
        known = row == start + access and kind == SOME
        inside = False
        looked += not known
        while row < end and clauses.term[row] == term:
            if not inside and not known:
                for at in range(first[a], last[a]):
                    if clauses.low[row] <= code[at] <= clauses.high[row]:
                        inside = True
                        break
            row += 1
        bound = first[a] < last[a]
        if kind == SOME:
            ok = inside or known
        elif kind == NONE:
            ok = bound and not inside
        else:
            ok = not bound
        if not ok:
            return False, looked
    return True, looked
