"""The algorithm of NEONRules: evaluate every predicate on the event's attributes and count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Int8s, Int32s, Int64s, zeros
from tamis.index.blocks import Lists
from tamis.index.clauses import ClauseArrays, bind, unbind
from tamis.index.counters import Counters, CounterScratch
from tamis.index.elementary_predicates import (
    AT_LEAST,
    AT_MOST,
    COMPARATORS,
    EQUAL,
    HIGHEST,
    LOWEST,
    UNEQUAL,
    ElementaryPredicates,
    elementary_predicates,
)
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import KeyedLists, OrderedLists, bisect_left, bisect_right
from tamis.index.slot_set import SlotSet
from tamis.index.tuple_map import Tuples
from tamis.index.verification import answer_arrays, keep_matching, trusted
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.lesubscribe.typed_operations import TypedOperations, operations_of
from tamis.match.options import flag, whole_number

_BULK = 16  # from this many clauses on, one pass over the rows beats a search per row


class PredicateRows(NamedTuple):
    """Predicates: row i of a list compares with `constant[i]` for the clause in `slot[i]`."""

    lists: Lists
    constant: Int64s
    slot: Int32s


class PredicateNumbers(NamedTuple):
    """By slot: the number of predicates, and how exactly they represent the clause."""

    predicates: Int32s
    exact: Int8s


class Neon(Matcher):
    """Keep a table of predicates, grouped into operations, and evaluate whole groups.

    An operation is an attribute with a comparator; a predicate is stored once per occurrence. For
    every operation on an attribute that the event binds, all predicates of the group are evaluated.
    Satisfied predicates are counted per subscription; a subscription matches when its count reaches
    its number of predicates.

    add O(predicates), remove O(rows of its operations) at the speed of a memory scan, match
    O(predicates on the event's attributes). It is inherently slower than `scan`, which leaves a
    subscription at the first false predicate. This algorithm evaluates all predicates and writes a
    counter for each.

    Le Subscribe, figure 8, after NEONRules. The figure selects equalities by value. The text says
    that the index knows only attribute and comparator, and that each predicate is evaluated. We
    follow the text; `value_index=True` keeps equalities sorted by value, as in the figure. NEON's
    predicates between two attributes do not occur in clauses of terms. Operations on attributes
    that the event does not bind are skipped: none of their predicates can hold. An operation of
    NEON also has an event type. Clauses know attributes only, so this is so if `event_type` says
    which attribute has the type.

    Tally: `predicates` has those located and evaluated, `nodes` the operations, `subscriptions` the
    additions.
    """

    value_index = flag(False, "keep equalities sorted by value")
    event_type = whole_number(
        -1, "number of the attribute whose value is the event type; -1 means none", least=-1
    )

    def clear(self) -> None:
        # Both by operation: attribute * COMPARATORS + comparator, or its number among the typed.
        self._rows = KeyedLists()
        self._sorted = OrderedLists()  # equalities, if there is a value index
        self._typed = TypedOperations(self.event_type)
        self._always = SlotSet()  # clauses with no predicate to evaluate
        self._counts = zeros(PredicateNumbers)
        self._counters = Counters()

    @property
    def operations(self) -> int:
        """The number of distinct pairs of attribute and comparator, and type if known."""
        return int((self._rows.size > 0).sum() + (self._sorted.size > 0).sum())

    def find(self, batch: EventBatch) -> Matches:
        return self.run(
            _match,
            batch,
            PredicateRows(self._rows.lists, *self._rows.pools),
            PredicateRows(self._sorted.lists, *self._sorted.pools),
            self._counts,
            self._always.slots,
            # One spare entry: the branchless loop writes a slot to `touched` before it knows
            # whether the slot counts.
            self._counters.fit(len(self._counts.predicates) + 1),
            (self._typed.operations.view, self.event_type),
        )

    def check(self) -> None:
        super().check()
        self._rows.check()
        self._sorted.check()
        self._always.check()
        self._typed.operations.check()
        live = self.clauses.live_slots()
        assert self._rows.total + self._sorted.total == int(self._counts.predicates[live].sum())
        rows = np.concatenate([self._rows.flat()[2], self._sorted.flat()[2]])
        counted = np.bincount(rows, minlength=len(self._counts.predicates))
        assert (counted == self._counts.predicates).all(), "a clause has all its rows"
        assert not self._counters.scratch.hits.any(), "counters are zero between events"

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found, operation = self._operations(slots, new=True)
        counts = np.diff(found.starts)
        slot = np.repeat(slots, counts)
        indexed = (found.comparator == EQUAL) & self.value_index
        self._rows.append(operation[~indexed], found.constant[~indexed], slot[~indexed])
        if indexed.any():
            self._sorted.add(operation[indexed], found.constant[indexed], slot[indexed])
        self._counts = PredicateNumbers(*(grown(each, self.clauses.slots) for each in self._counts))
        self._counts.predicates[slots] = counts
        self._counts.exact[slots] = found.exact
        self._always.add(slots[counts == 0])

    def drop_clauses(self, slots: Slots) -> None:
        found, operation = self._operations(slots, new=False)
        counts = np.diff(found.starts)
        slot = np.repeat(slots, counts)
        indexed = (found.comparator == EQUAL) & self.value_index
        if len(slots) >= _BULK:
            gone = np.zeros(len(self._counts.predicates), np.bool_)
            gone[slots] = True
            self._rows.sweep(np.unique(operation[~indexed]), gone)
            self._sorted.sweep(np.unique(operation[indexed]), gone)
        else:
            self._rows.remove(operation[~indexed], found.constant[~indexed], slot[~indexed])
            self._sorted.remove(operation[indexed], found.constant[indexed], slot[indexed])
        if self.event_type >= 0:
            self._typed.operations.remove(operation)
        self._counts.predicates[slots] = 0
        self._always.remove(slots[counts == 0])

    def _operations(self, slots: Slots, new: bool) -> tuple[ElementaryPredicates, Int64s]:
        """The predicates of clauses, and the operation of each."""
        found = elementary_predicates(self.clauses.view, slots)
        if self.event_type >= 0:
            return self._typed.add(found) if new else self._typed.find(found)
        return found, found.attribute.astype(np.int64) * COMPARATORS + found.comparator


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    rows: PredicateRows,
    by_value: PredicateRows,
    counts: PredicateNumbers,
    always: Int64s,
    scratch: CounterScratch,
    typed: tuple[Tuples, int],
) -> tuple[Int64s, Int64s, Int64s]:
    # `work`: predicates evaluated, operations, predicates satisfied
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    hits, touched = scratch.hits, scratch.touched
    operations, event_type = typed
    types, key, numbers = events.code[:0], np.empty(3, np.int64), np.empty(1, np.int64)
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, begin, end, first, last)
        raised = 0
        if 0 <= event_type < width:
            types = events.code[first[event_type] : last[event_type]]
            numbers = ensure_capacity(numbers, 0, len(types) + 1)
        at = begin
        while at < end:
            a = events.attribute[at]
            after = at + 1
            while after < end and events.attribute[after] == a:
                after += 1
            values = events.code[at:after]
            for comparator in range(COMPARATORS):
                numbers[0] = a * COMPARATORS + comparator
                many = 1
                if event_type >= 0:
                    many = operations_of(operations, numbers[0], types, key, numbers)
                for i in range(many):
                    operation = numbers[i]
                    if operation < len(rows.lists.size) and rows.lists.size[operation] > 0:
                        group = _group(rows, operation)
                        raised = _evaluate(group, comparator, values, hits, touched, raised, work)
                    if operation < len(by_value.lists.size) and by_value.lists.size[operation] > 0:
                        raised = _select(by_value, operation, values, hits, touched, raised, work)
            at = after
        out = ensure_capacity(out, found, raised + len(always) + 1)
        full = found
        for i in range(raised):
            slot = touched[i]
            out[full] = slot
            full += hits[slot] == counts.predicates[slot]
            hits[slot] = 0
        out[full : full + len(always)] = always
        full += len(always)
        found, _ = keep_matching(
            clauses, first, last, events.code, counts.exact, trusted(several), out, found, full
        )
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work


@kernel
def _group(rows: PredicateRows, operation: int) -> tuple[Int64s, Int32s]:
    """The constants and slots of one operation."""
    start = rows.lists.start[operation]
    end = start + rows.lists.size[operation]
    return rows.constant[start:end], rows.slot[start:end]


@kernel
def _evaluate(
    group: tuple[Int64s, Int32s],
    comparator: int,
    values: Int64s,
    hits: Int32s,
    touched: Int64s,
    raised: int,
    work: Int64s,
) -> int:
    """Evaluate every predicate of one operation; any value of the event may satisfy it."""
    constant, slots = group
    work[0] += len(slots)
    work[1] += 1
    if comparator == EQUAL:  # rarely true: a branch is cheaper than a counter write per row
        for row in range(len(slots)):
            ok = constant[row] == values[0]
            for k in range(1, len(values)):
                ok |= constant[row] == values[k]
            if ok:
                work[2] += 1
                slot = slots[row]
                touched[raised] = slot
                raised += hits[slot] == 0
                hits[slot] += 1
        return raised
    # The constants that some value satisfies: an interval, or all but one value.
    low, high, inside = LOWEST, HIGHEST, True
    if comparator == AT_MOST:  # v <= c
        low = values.min()
    elif comparator == AT_LEAST:  # v >= c
        high = values.max()
    elif comparator == UNEQUAL and values.min() == values.max():
        low, high, inside = values[0], values[0], False
    satisfied = 0
    for row in range(len(slots)):  # the hot loop; branchless, as ranges hold half the time
        slot = slots[row]
        ok = ((low <= constant[row]) & (constant[row] <= high)) == inside
        touched[raised] = slot
        raised += ok & (hits[slot] == 0)
        hits[slot] += ok
        satisfied += ok
    work[2] += satisfied
    return raised


@kernel
def _select(
    by_value: PredicateRows,
    operation: int,
    values: Int64s,
    hits: Int32s,
    touched: Int64s,
    raised: int,
    work: Int64s,
) -> int:
    """Find the equalities of one operation that one of the values satisfies."""
    start = by_value.lists.start[operation]
    end = start + by_value.lists.size[operation]
    work[1] += 1
    for i in range(len(values)):
        again = False  # an event may have the same value twice
        for k in range(i):
            again |= values[k] == values[i]
        if again:
            continue
        row = bisect_left(by_value.constant, start, end, values[i])
        past = bisect_right(by_value.constant, row, end, values[i])
        work[0] += past - row
        work[2] += past - row
        for place in range(row, past):
            slot = by_value.slot[place]
            touched[raised] = slot
            raised += hits[slot] == 0
            hits[slot] += 1
    return raised
