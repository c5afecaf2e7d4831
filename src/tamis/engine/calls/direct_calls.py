"""Clauses that one call decides: without a scheduler, and without a Python object per clause.

A clause whose only predicate is a call needs this call in any case, so no order is to be chosen.
Kernels collect what a batch needs: an *entry* for each event and predicate, and a *request* for
each event and call. The calls are made, each entry gets its outcome, and a kernel passes it on to
the candidates. Thousands of subscriptions that hang on one call cost a few nanoseconds each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.engine.calls.event_calls import UNBOUND, EventCalls
from tamis.engine.calls.interned_predicates import InternedPredicates
from tamis.files.arrays import Bools, Int8s, Int32s, Int64s
from tamis.index.growth import grown
from tamis.index.kernel import kernel
from tamis.match.answers import FoundSlots, Matches
from tamis.model.operator import Fault
from tamis.schedule.base import FALSE, FAULT, TRUE, Scheduler

NO_CALLS, SCHEDULED, DROPPED = -1, -2, -3  # instead of the number of a predicate, or of an entry
UNKNOWN = -1  # the outcome of an entry, until it is known; and where nothing is learned


class Collected(NamedTuple):
    """What the candidates of a batch need."""

    of_pair: Int32s  # the entry of each candidate, or one of the numbers above
    number: Int64s  # the predicate of each entry
    request: Int32s  # the request of each entry
    event: Int64s  # of each request; ascending
    first: Int64s  # an entry of each request
    scheduled: int  # candidates that are left to the scheduler


class Decided(NamedTuple):
    """The entry of each candidate, and the outcome of each entry."""

    of_pair: Int32s
    outcomes: Int8s


class DirectCalls:
    """For each slot the number of the only predicate of its clause, if a call decides it."""

    def __init__(self) -> None:
        self.only = np.full(1, NO_CALLS, np.int64)  # the last entry is for slots beyond the end
        self._wants = np.zeros(1, np.int8)  # by slot: the outcome with which the clause holds
        # The last entry of each predicate, and the last request of each call. They count on from
        # batch to batch, so that nothing has to be cleared.
        self._marks = np.full((2, 1), -1, np.int64)
        self._counted = np.zeros(2, np.int64)

    def set(self, slot: int, number: int, wants: int = TRUE) -> None:
        """The clause of a slot holds if a predicate has an outcome; or `number` is as above."""
        if slot + 1 >= len(self.only):
            self.only = grown(self.only, slot + 2, NO_CALLS)
            self._wants = grown(self._wants, slot + 2)
        self.only[slot], self._wants[slot] = number, wants

    def collect(
        self, starts: Int64s, slots: FoundSlots, skipped: Bools, calls: Int32s
    ) -> Collected:
        """What candidates need, but the `skipped` ones; `calls` has the call of each predicate."""
        if self._marks.shape[1] < len(calls):
            more = np.full((2, 2 * len(calls) - self._marks.shape[1]), -1, np.int64)
            self._marks = np.hstack([self._marks, more])
        return Collected(
            *_collect(starts, slots, skipped, self.only, calls, self._marks, self._counted)
        )

    def verdicts(self, slots: FoundSlots, decided: Decided) -> Bools:
        """Whether each candidate is kept, by the outcomes of the entries."""
        kept: Bools = _verdicts(slots, *decided, self._wants)
        return kept

    def compact(self, starts: Int64s, slots: FoundSlots, decided: Decided) -> Matches:
        """The candidates that are kept."""
        return Matches(*_compact(starts, slots, *decided, self._wants))


def decide(
    needed: Collected,
    requests: range,
    calls: EventCalls,
    predicates: InternedPredicates,
    scheduler: Scheduler,
    outcomes: Int8s,
) -> None:
    """Make the calls of some requests, and fill in the outcomes of their entries."""
    order, bounds = _entries(needed, requests)
    events = needed.event[requests.start : requests.stop].tolist()
    numbers = needed.number[needed.first[requests.start : requests.stop]].tolist()
    groups: dict[Any, list[int]] = {}
    for at, number in enumerate(numbers):
        groups.setdefault(number, []).append(at)
    for group in _by_call(groups, predicates):
        whats = [predicates[numbers[at]] for at in group]
        found, spent = calls.results([events[at] for at in group], whats)
        _enter(found, group, needed, order, bounds, predicates, outcomes)
        cost = sum(spent) / len(spent)
        scheduler.learn_cost(needed.number[_mine(order, bounds, group[-1])], cost, len(spent))
        for at, what, result in zip(group, whats, found, strict=True):
            calls.given[events[at]][what.call] = result
    scheduler.learn_results(needed.number[order], outcomes[order])


def _by_call(groups: dict[int, list[int]], predicates: InternedPredicates) -> list[list[int]]:
    """The requests that one call answers, from those by predicate.

    An operator that takes pairs answers all its predicates in one call.
    """
    if len(groups) == 1:
        return list(groups.values())
    merged: dict[Any, list[int]] = {}
    for number, group in groups.items():
        what = predicates[number]
        key = what.operator if what.operator.pairs else what.call
        merged.setdefault(key, []).extend(group)
    return [sorted(group) for group in merged.values()]


def _mine(order: Int64s, bounds: list[int] | None, at: int) -> Int64s:
    """The entries of a request."""
    return order[at : at + 1] if bounds is None else order[bounds[at] : bounds[at + 1]]


def _enter(
    found: list[Any],
    group: list[int],
    needed: Collected,
    order: Int64s,
    bounds: list[int] | None,
    predicates: InternedPredicates,
    outcomes: Int8s,
) -> None:
    """The outcomes of entries, from the results of their calls."""
    known: dict[Any, Any] = {}
    kept = "any" not in predicates[int(needed.number[order[group[0]]])].operator.kinds
    for at, result in zip(group, found, strict=True):
        if result is UNBOUND:
            continue
        mine = _mine(order, bounds, at)
        if isinstance(result, Fault):
            outcomes[mine] = FAULT
            continue
        numbers = needed.number[mine]
        # 1 and True are equal in Python: where a value may be of any kind, rows are no keys.
        key = (numbers.tobytes(), result) if kept else None
        outcome = known.get(key)
        if outcome is None:
            what = predicates[int(numbers[0])]
            holding = predicates.group(what.call).answer(result, numbers)
            outcome = known[key] = np.where(holding, TRUE, FALSE).astype(np.int8)
            if not kept:
                known.clear()
        outcomes[mine] = outcome


def _entries(needed: Collected, requests: range) -> tuple[Int64s, list[int] | None]:
    """The entries of some requests, request by request, and where those of each begin.

    None where each has one.
    """
    low, high = (
        int(needed.first[at]) if at < len(needed.first) else len(needed.number)
        for at in (requests.start, requests.stop)
    )
    mine = needed.request[low:high]
    if high - low == len(requests):
        return np.arange(low, high), None
    order = np.argsort(mine, kind="stable")
    bounds = np.searchsorted(mine[order], np.arange(requests.start, requests.stop + 1))
    return order + low, bounds.tolist()


@kernel
def _collect(
    starts: Int64s,
    slots: FoundSlots,
    skipped: Bools,
    only: Int64s,
    calls: Int32s,
    marks: Int64s,
    counted: Int64s,
) -> tuple[Int32s, Int64s, Int32s, Int64s, Int64s, int]:
    """One pass over the candidates; a mark below the first of the event is from another event."""
    of_pair = np.empty(len(slots), np.int32)
    number = np.empty(len(slots), np.int64)
    request = np.empty(len(slots), np.int32)
    event = np.empty(len(slots), np.int64)
    first = np.empty(len(slots), np.int64)
    entries, requests, scheduled = 0, 0, 0
    entry_base, request_base = counted[0], counted[1]
    last = len(only) - 1
    for e in range(len(starts) - 1):
        first_entry, first_request = entry_base + entries, request_base + requests
        for i in range(starts[e], starts[e + 1]):
            n = only[min(slots[i], last)]
            if len(skipped) and skipped[i]:
                of_pair[i] = DROPPED
            elif n < 0:
                of_pair[i] = n
                scheduled += n == SCHEDULED
            else:
                mark = marks[0, n]
                if mark < first_entry:
                    mark = entry_base + entries
                    marks[0, n] = mark
                    c = calls[n]
                    asked = marks[1, c]
                    if asked < first_request:
                        asked = request_base + requests
                        marks[1, c] = asked
                        event[requests] = e
                        first[requests] = entries
                        requests += 1
                    number[entries] = n
                    request[entries] = asked - request_base
                    entries += 1
                of_pair[i] = mark - entry_base
    counted[0] += entries
    counted[1] += requests
    return (
        of_pair,
        number[:entries],
        request[:entries],
        event[:requests],
        first[:requests],
        scheduled,
    )


@kernel
def _verdicts(slots: FoundSlots, of_pair: Int32s, outcomes: Int8s, wants: Int8s) -> Bools:
    kept = np.empty(len(slots), np.bool_)
    for i in range(len(slots)):
        entry = of_pair[i]
        kept[i] = outcomes[entry] == wants[slots[i]] if entry >= 0 else entry == NO_CALLS
    return kept


@kernel
def _compact(
    starts: Int64s, slots: FoundSlots, of_pair: Int32s, outcomes: Int8s, wants: Int8s
) -> tuple[Int64s, FoundSlots]:
    left = np.empty(len(starts), np.int64)
    found = np.empty_like(slots)
    to = 0
    for e in range(len(starts) - 1):
        left[e] = to
        for i in range(starts[e], starts[e + 1]):
            entry = of_pair[i]
            found[to] = slots[i]
            to += outcomes[entry] == wants[slots[i]] if entry >= 0 else entry == NO_CALLS
    left[len(starts) - 1] = to
    return left, found[:to].copy()
