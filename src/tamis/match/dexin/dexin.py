"""DEXIN: exclude by some attributes, then check the remaining clauses on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import Bools, Int8s, Int32s, Int64s, zeros
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import KeyedLists, OrderedLists, bisect_left, bisect_right
from tamis.index.verification import NOTHING, answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots, Tally
from tamis.match.dexin.attribute_plan import (
    EXCLUSIVE,
    FIRST_FIT,
    GIVEN,
    INCLUSIVE,
    OPTIMAL,
    PlannedAttributes,
    make_plan,
)
from tamis.match.dexin.bitset import BitSet, Words, members, strike
from tamis.match.dexin.edges import EQUAL_DEPTH, EQUAL_WIDTH
from tamis.match.dexin.interval_columns import ColumnTable, IntervalColumns, keep, keep_by_rows
from tamis.match.dexin.interval_ends import (
    HIGH,
    LOW,
    NO_LOW,
    NOT,
    EndLists,
    Ends,
    cell_of,
    list_of,
    strike_all,
    strike_lists,
    strike_unbound,
)
from tamis.match.dexin.linked_ends import LinkedLists
from tamis.match.dexin.linked_slots import (
    count_equal_linked,
    exclude_linked,
    strike_equal_linked,
    strike_unbound_linked,
)
from tamis.match.dexin.running_sums import running_sums, shift_sums
from tamis.match.dexin.term_spans import spans_of
from tamis.match.options import choice, whole_number

_PLANS = {"lmrff": FIRST_FIT, "optimal": OPTIMAL, "exclusive": EXCLUSIVE, "inclusive": INCLUSIVE}
_LISTS: dict[str, type[KeyedLists | LinkedLists]] = {"sorted": OrderedLists, "linked": LinkedLists}
_MANY = 256  # above this many changed ends, recounting beats updating the running sums


@dataclass
class PlanTally(Tally):
    """The work done, and the cost that the plans predicted."""

    cost: float = 0.0  # μ of the plans, summed over events, in units of the subscriptions
    exclusive: int = 0  # exclusive attributes, summed over events
    words: int = 0  # words of the partial result (32 slots each), copied for each event


class DexinArrays(NamedTuple):
    """The arrays that the kernel reads."""

    ends: Ends
    upto: Int64s  # by list: ends in the cells of its side up to this one
    columns: IntervalColumns
    live: Words
    exact: Int8s


class PlanOptions(NamedTuple):
    """The options as the kernel sees them."""

    plan: int
    whole: bool
    linked: bool
    clauses: int


class Dexin(Matcher):
    """Match attribute by attribute: some exclude from the whole set, the others check the rest.

    Each attribute has slots of sorted low ends and of sorted high ends. Exclusive matching removes
    the clauses whose ends the value violates from the partial result. Inclusive matching compares
    the value with the intervals of the clauses still in it. The sizes of the slots give the
    matching rate ρ of every attribute in advance, and the rates give a plan for each event: lowest
    rate first, exclusive while that is cheaper (`plan="lmrff"`), the cheapest of all sets of
    exclusive attributes (`"optimal"`), or all attributes the same way (`"exclusive"`,
    `"inclusive"`).

    add, remove O(ends · (log slots + ends of a slot)); match O(μ · subscriptions), where μ is about
    1 for any number of attributes; `cost` is its sum over events. Planning takes O(a log a) for a
    attributes, O(2^a) if optimal.

    DEXIN (Fan, Liu, Tang, 2016), sections 3.3 to 3.5. Corrections: on the high side, the value's
    own slot is not excluded as a whole. An interval open at both ends accepts all values. `!=` is a
    list of excluded values (two ranges would each exclude what the other allows). ρ is at least 0.
    Differences: slots hold the same number of ends (codes have no scale), unless
    `edges="equal-width"`. Counts are running sums,
    so ρ takes two bisections and no sum over slots; they include the value's slots as a whole, as
    in the paper, unless `boundary="exact"`. The partial result is a bitset: copying it costs a
    thirty-second of a word per subscription instead of the paper's N list entries. It becomes a
    list at the first inclusive attribute. Inclusive matching reads columns of bounds for attributes
    that at least one clause in eight constrains, and the clauses themselves for the others. An
    unbound attribute excludes all clauses that constrain it; rare ones are not part of the plan. An
    attribute with several values is inclusive; under `plan="exclusive"` it excludes the intervals
    entirely above or below its values, and the remaining clauses are verified. Our sorted slots are
    arrays, not red-black trees. `ends="linked"` keeps the ends of a slot in a linked list, which
    section 4.2 proposes for faster subscribing: an addition moves nothing, and the ends in the
    value's slot are compared one by one.
    Like `scan`, it touches each subscription about once in total, but at random places, while
    `scan` compares runs. On dense subscriptions with narrow ranges it is slower than
    `scan` in batches (by a half at θ = 0.1). It is faster on wide ranges with many matches, and on
    single events. With sparse subscriptions, every unbound attribute costs the length of its lists.

    Tally: `predicates` has the values compared with intervals, `nodes` the slots read,
    `subscriptions` the removals and checks, which μ predicts; `cost` is Σ μ.
    """

    tally: PlanTally

    tally_type = PlanTally
    plan = choice("lmrff", "how attributes are planned for an event", *_PLANS)
    slots = whole_number(1500, "slots of each side of an attribute", least=1)
    edges = choice(EQUAL_DEPTH, "where cells are cut", EQUAL_DEPTH, EQUAL_WIDTH)
    boundary = choice(
        "whole", "whether the slot of a value counts whole in the rates", "whole", "exact"
    )
    ends = choice("sorted", "how a slot keeps its ends", *_LISTS)

    def check_options(self) -> None:
        if self.ends == "linked" and self.boundary == "exact":
            raise MatcherError("boundary='exact' needs sorted slots: ends='sorted'")

    def clear(self) -> None:
        self._ends = EndLists(self.slots, self.edges, _LISTS[self.ends])
        self._upto = np.zeros(0, np.int64)
        self._columns = ColumnTable()
        self._live = BitSet()
        self._exact = np.zeros(0, np.int8)
        self._left = np.zeros(0, np.int32)

    @property
    def cost(self) -> float:
        """μ of all plans since the tally was reset, in units of the number of subscriptions."""
        return self.tally.cost

    def find(self, batch: EventBatch) -> Matches:
        return self._find(batch, _PLANS[self.plan], np.zeros((0, 0), np.bool_))

    def exclusive_attributes(self, batch: EventBatch) -> Bools:
        """The plans of events: for each event and attribute, whether the attribute is exclusive."""
        decisions = np.zeros((len(batch), self.clauses.width), np.bool_)
        self._find(batch, _PLANS[self.plan], decisions)
        return decisions

    def match_planned(self, batch: EventBatch, decisions: Bools) -> Matches:
        """Match events by plans of `exclusive_attributes`. Shows what planning itself costs."""
        return self._find(batch, GIVEN, decisions)

    def _find(self, batch: EventBatch, plan: int, decisions: Bools) -> Matches:
        starts, slots, work, cost = _match(
            batch.pairs,
            self.clauses.view,
            self.clauses.width,
            DexinArrays(
                self._ends.view, self._upto, self._columns.view, self._live.words, self._exact
            ),
            PlanOptions(plan, self.boundary == "whole", self.ends == "linked", self.clauses.live),
            self._left,
            zeros(PlannedAttributes, len(self._ends.view.used)),
            decisions,
        )
        self.tally.count(work)
        self.tally.exclusive += int(work[3])
        self.tally.words += len(batch) * len(self._live.words)
        self.tally.cost += cost
        return Matches(starts, slots)

    def check(self) -> None:
        super().check()
        live = self.clauses.live_slots()
        everything = spans_of(self.clauses.view, live)
        self._live.check(live)
        self._ends.check(everything)
        self._columns.check(everything)
        assert (self._exact[live] == everything.exact).all()
        assert self._columns.view.low.shape[1] > live.max(initial=-1), "columns for every slot"
        assert (running_sums(self._ends.view, self._ends.lists) == self._upto).all(), "running sums"

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        fresh = spans_of(self.clauses.view, slots)
        self._live.add(slots)
        self._exact = grown(self._exact, self.clauses.slots)
        self._left = grown(self._left, self.clauses.slots + 1)  # `members` needs a spare entry
        self._exact[slots] = fresh.exact
        if self._ends.stale(len(fresh.slot)):
            self._deal(self.clauses.live_slots())
        else:
            self._columns.add(fresh, int(slots.max()) + 1)
            self._sum(*self._ends.add(fresh), 1)

    def drop_clauses(self, slots: Slots) -> None:
        gone = spans_of(self.clauses.view, slots)
        self._live.remove(slots)
        if self._ends.stale(-len(gone.slot)):
            self._deal(np.setdiff1d(self.clauses.live_slots(), slots))
        else:
            self._columns.remove(slots)
            self._sum(*self._ends.remove(gone), -1)

    def _deal(self, live: Slots) -> None:
        """Rebuild slots and columns for the clauses in `live`."""
        everything = spans_of(self.clauses.view, live)
        self._ends.deal(everything)
        self._columns.lay_out(everything, len(self._exact), len(live), self.clauses.width)
        self._upto = running_sums(self._ends.view, self._ends.lists)

    def _sum(self, attributes: Int32s, lists: Int64s, change: int) -> None:
        if len(lists) > _MANY or self._ends.lists > len(self._upto):
            self._upto = running_sums(self._ends.view, self._ends.lists)
        else:
            shift_sums(self._ends.view, self._upto, attributes, lists, change)


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    index: DexinArrays,
    how: PlanOptions,
    left: Int32s,
    candidates: PlannedAttributes,
    decisions: Bools,
) -> tuple[Int64s, Int64s, Int64s, float]:
    # `work`: comparisons, slots read, clauses touched, exclusive attributes
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    total_cost = 0.0
    ends, columns = index.ends, index.columns
    partial = np.empty_like(index.live)
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, begin, end, first, last)
        partial[:] = index.live
        # Step 1: the matching rates. Rare unbound attributes are not worth planning for.
        many = 0
        for a in ends.used:
            if first[a] == last[a] and how.plan != INCLUSIVE and columns.column[a] < 0:
                continue
            values = events.code[first[a] : last[a]]
            violated = _violated(ends, index.upto, a, values, how)
            candidates.attribute[many] = a
            candidates.several[many] = len(values) > 1
            candidates.rate[many] = max(0.0, 1.0 - violated / how.clauses)
            many += 1
            if len(values) == 1:
                if how.linked:
                    strike_equal_linked(ends, a, values[0], partial, work)
                else:
                    _strike_equal(ends, a, values[0], partial, work)
        if how.plan != INCLUSIVE:
            if how.linked:
                lists, struck = strike_unbound_linked(ends, first, last, columns.column, partial)
            else:
                lists, struck = strike_unbound(ends, first, last, columns.column, partial)
            work[1] += lists
            work[2] += struck
            total_cost += struck / how.clauses
        # Step 2: the plan and its exclusive part, with one random write per violated end.
        if how.plan == GIVEN:
            for i in range(many):
                candidates.exclusive[i] = decisions[event, candidates.attribute[i]]
        order, cost = make_plan(candidates, many, how.plan)
        total_cost += cost
        if how.plan != GIVEN and len(decisions):
            for i in range(many):
                decisions[event, candidates.attribute[i]] = candidates.exclusive[i]
        for i in order:
            if candidates.exclusive[i]:
                a = candidates.attribute[i]
                values = events.code[first[a] : last[a]]
                if how.linked:
                    exclude_linked(ends, a, values, partial, work)
                else:
                    _exclude(ends, a, values, partial, work)
                work[3] += 1
        # Step 3: the inclusive part, on the list of the remaining clauses.
        remain = members(partial, left)
        for i in order:
            if not candidates.exclusive[i] and remain > 0:
                a = candidates.attribute[i]
                work[0] += remain
                work[2] += remain
                values = events.code[first[a] : last[a]]
                if columns.column[a] >= 0:
                    remain = keep(columns, columns.column[a], values, left, remain)
                else:
                    remain = keep_by_rows(clauses, a, values, left, remain)
        out = ensure_capacity(out, found, remain)
        full = found + remain
        out[found:full] = left[:remain]
        trust = NOTHING if several and how.plan == EXCLUSIVE else trusted(several)
        found, _ = keep_matching(
            clauses, first, last, events.code, index.exact, trust, out, found, full
        )
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work, total_cost


@kernel
def _violated(ends: Ends, upto: Int64s, a: int, values: Int64s, how: PlanOptions) -> int:
    """The number of ends of attribute a that the event violates, from the running sums.

    With `how.whole`, all ends in the slots of the values count as violated.
    """
    lows, highs = list_of(ends, a, LOW, 0), list_of(ends, a, HIGH, 0)
    all_lows = upto[highs - 1]
    if len(values) == 0:
        return int(all_lows + ends.lists.size[list_of(ends, a, NO_LOW, 0)])
    least, greatest = values.min(), values.max()
    top, bottom = lows + cell_of(ends, a, greatest), highs + cell_of(ends, a, least)
    count = all_lows - upto[top] + upto[bottom]
    if how.whole:
        count += ends.lists.size[top]
    else:
        start = ends.lists.start[top]
        end = start + ends.lists.size[top]
        count += end - bisect_right(ends.keys, start, end, greatest)
        start = ends.lists.start[bottom]
        end = start + ends.lists.size[bottom]
        count -= end - bisect_left(ends.keys, start, end, least)
    if least == greatest and how.linked:
        count += count_equal_linked(ends, a, least)
    elif least == greatest:
        start, end = _equal(ends, a, least)
        count += end - start
    return int(count)


@kernel
def _equal(ends: Ends, a: int, v: int) -> tuple[int, int]:
    """The range of the clauses that exclude exactly this value."""
    at = list_of(ends, a, NOT, cell_of(ends, a, v))
    start = ends.lists.start[at]
    end = start + ends.lists.size[at]
    return bisect_left(ends.keys, start, end, v), bisect_right(ends.keys, start, end, v)


@kernel
def _strike_equal(ends: Ends, a: int, v: int, partial: Words, work: Int64s) -> None:
    start, end = _equal(ends, a, v)
    strike(partial, ends.slots, start, end)
    work[1] += 1
    work[2] += end - start


@kernel
def _exclude(ends: Ends, a: int, values: Int64s, partial: Words, work: Int64s) -> None:
    """Exclude the clauses whose ends on attribute a all values of the event violate."""
    if len(values) == 0:
        work[1] += ends.cells[a] + 1
        work[2] += strike_all(ends, a, partial)
        return
    least, greatest = values.min(), values.max()
    lows, highs = list_of(ends, a, LOW, 0), list_of(ends, a, HIGH, 0)
    top, bottom = lows + cell_of(ends, a, greatest), highs + cell_of(ends, a, least)
    start = ends.lists.start[top]
    end = start + ends.lists.size[top]
    place = bisect_right(ends.keys, start, end, greatest)
    strike(partial, ends.slots, place, end)
    struck = end - place
    start = ends.lists.start[bottom]
    end = start + ends.lists.size[bottom]
    place = bisect_left(ends.keys, start, end, least)
    strike(partial, ends.slots, start, place)
    struck += place - start
    struck += strike_lists(ends, top + 1, highs, partial)
    struck += strike_lists(ends, highs, bottom, partial)
    work[0] += 2
    work[1] += bottom - top + 1
    work[2] += struck
