"""Operator calls, evaluated only on the candidates of the matcher."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.encode.batch import EventBatch
from tamis.engine.calls.clause_calls import ClauseCalls
from tamis.engine.calls.direct_calls import (
    DROPPED,
    NO_CALLS,
    SCHEDULED,
    UNKNOWN,
    Collected,
    Decided,
    DirectCalls,
    decide,
)
from tamis.engine.calls.evaluation import ClauseEntry, Evaluation
from tamis.engine.calls.event_calls import DEAREST, EventCalls
from tamis.engine.calls.interned_predicates import InternedPredicates
from tamis.engine.compiled_condition import parse_calls
from tamis.engine.saved.saved_part import SavedPart, texts
from tamis.errors import ConditionError, OperatorError
from tamis.files.arrays import Bools, Int64s, offsets
from tamis.files.saved_checks import array_of, require
from tamis.language import check, parse
from tamis.match.answers import FoundSlots, Matches
from tamis.match.bitmaps import Bitmaps
from tamis.model.operator import Fault, Rows, Signature
from tamis.model.schema import Schema
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators
from tamis.operators.remembering_runner import RememberingRunner
from tamis.operators.report import Report
from tamis.operators.result_memory import SIZE
from tamis.schedule.base import FALSE, NEVER, ON_FALSE, TRUE, Scheduler
from tamis.schedule.exhaustive import ExhaustiveScheduler, PredicateCounts
from tamis.schedule.registry import create, entry
from tamis.schedule.statistics import PredicateEstimate

Reads = tuple[Any, ...]
Evaluator = Callable[[Reads, Reads], Rows | Fault]
_AT_ONCE = 256  # events whose operators are evaluated together
_NONE = np.zeros(0, np.int64)


class CallFilter:
    """The clauses with calls, by slot; filters candidates by evaluating the calls."""

    def __init__(self, operators: Operators, scheduler: str, remember: int = SIZE) -> None:
        self.operators, self.scheduler_name = operators, scheduler
        self.remember(remember)
        self.given_up = 0  # joins that exceeded the limit
        # From statistics of past events, by the text of a predicate.
        self.known: dict[str, PredicateEstimate] = {}
        entry(scheduler)  # refuses an unknown name
        self._clear()

    def remember(self, rows: int) -> None:
        """Begin with an empty memory for so many rows of results."""
        self.runner = RememberingRunner(remember=rows)

    def _clear(self) -> None:
        self._scheduler: Scheduler | None = None  # created with the first clause
        self._entries: dict[int, ClauseEntry] = {}
        self.predicates = InternedPredicates()  # the distinct predicates of all clauses
        self._direct = DirectCalls()
        self._first: dict[int, int] = {}  # for each owner, its first slot

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler: it decides which predicate is evaluated next."""
        if self._scheduler is None:
            self._scheduler = create(self.scheduler_name)
        return self._scheduler

    def __len__(self) -> int:
        return len(self._entries)

    def add(
        self,
        slot: int,
        owner: int,
        calls: ClauseCalls,
        text: str,
        operators: Sequence[Operator] | None = None,
    ) -> None:
        """Add the calls of a clause. Clauses with one `owner` are alternatives of each other.

        `operators` has one for each call; by default, the operators that have the names now.
        """
        if operators is None:
            operators = [self.operators[each.predicate.operator] for each in calls.calls]
        numbers: list[int] = []
        entry = ClauseEntry(calls, text, owner, tuple(operators), numbers, calls.joined)
        self._entries[slot] = entry
        for literal, operator in zip(calls.calls, operators, strict=True):
            number, fresh = self.predicates.intern(literal.predicate, operator, slot)
            numbers.append(number)
            if fresh:
                self._expect(number, operator)
        # `p(?x) and not p(?y)` has a number twice; an outcome that kills either kills the clause.
        self.scheduler.add(slot, numbers, [literal.kills for literal in calls.calls], owner)
        kills = calls.calls[0].kills
        if owner in self._first:  # the alternatives of a clause may save its call
            self._direct.set(self._first[owner], SCHEDULED)
            self._direct.set(slot, SCHEDULED)
            return
        self._first[owner] = slot
        if len(numbers) == 1 and not calls.joined and kills != NEVER:
            self._direct.set(slot, numbers[0], TRUE if kills == ON_FALSE else FALSE)
        else:
            self._direct.set(slot, SCHEDULED)

    def _expect(self, number: int, operator: Operator) -> None:
        """Start a new predicate with the measured or declared cost of its call."""
        statistics, call = self.scheduler.statistics, self.predicates.call_number(number)
        if len(self.predicates.group(self.predicates[number].call)) == 1:
            statistics.expect_call(call, min(operator.cost, DEAREST))
        statistics.expect(number, cost=float(statistics.call_cost[call]))
        self.scheduler.assign_call(number, call)
        if self.known:  # only then is the text of a predicate needed
            self._begin(number)

    def _begin(self, number: int) -> None:
        """Start a predicate with its statistics of past events, if there are any."""
        known = self.known.get(self.predicates[number].predicate.text)
        if known is None:
            return
        statistics, call = self.scheduler.statistics, self.predicates.call_number(number)
        if statistics.is_untimed(call):
            statistics.expect_call(call, min(known.cost, DEAREST), known.seen)
        statistics.expect(number, known.p, float(statistics.call_cost[call]), known.seen)

    def expect(self, known: Mapping[str, PredicateEstimate]) -> None:
        """Take statistics of predicates, by their texts; costs are in milliseconds.

        Predicates that have been evaluated here keep their own statistics.
        """
        self.known = {**self.known, **known}
        for number in list(self.predicates) if known else ():
            if self.scheduler.statistics.is_unseen(number):
                self._begin(number)

    @contextmanager
    def measuring(self) -> Iterator[dict[str, PredicateCounts]]:
        """Within the block, evaluate all predicates of all candidates, and yield the outcomes.

        Matches stay the same. The scheduler does not learn from the outcomes.
        """
        kept, found = self.scheduler, dict[str, PredicateCounts]()
        self._scheduler = measure = ExhaustiveScheduler(kept.graph)
        try:
            yield found
        finally:
            self._scheduler = kept
        for number in self.predicates:
            counts = measure.counts(number)
            if counts is not None:
                found[self.predicates[number].predicate.text] = counts

    def remove(self, slot: int) -> None:
        """Remove a slot."""
        kept = self._entries.get(slot)
        if kept is None:
            return
        self._direct.set(slot, NO_CALLS)
        self._first.pop(kept.owner, None)
        self.scheduler.remove(slot)
        for number in kept.numbers:
            self.predicates.release(number, slot)
        del self._entries[slot]
        if not self._entries:
            self._clear()

    def report(self) -> Report:
        """The calls of operators: how many, how long, and what failed."""
        return replace(self.runner.report(), given_up=self.given_up)

    def evaluators(
        self, slots: Iterable[int], names: Iterable[str]
    ) -> dict[str, tuple[Signature, Evaluator]]:
        """The operators of these slots by name, for an explanation. Others may have the names now.

        A clause that can never hold has no slot; its operators are those that have the `names` now.
        They are called through the same runner.
        """

        def evaluate(operator: Operator, reads: Reads, arguments: Reads) -> Rows | Fault:
            return self.runner.answers(operator, [reads], [arguments])[0]

        entries = (self._entries[slot] for slot in slots if slot in self._entries)
        found = {name: self.operators[name] for name in names if name in self.operators}
        found |= {each.name: each for entry in entries for each in entry.operators}
        return {name: (each.signature, partial(evaluate, each)) for name, each in found.items()}

    def texts(self) -> dict[int, str]:
        """The calls of each slot, in the native language."""
        return {slot: each.text for slot, each in self._entries.items()}

    def operators_by_owner(self) -> dict[int, dict[str, Operator]]:
        """The operators that each owner of clauses calls, by name. Right after an interrupt, too.

        Others may have the names now.
        """
        found: dict[int, dict[str, Operator]] = {}
        for each in self._entries.values():
            found.setdefault(each.owner, {}).update((one.name, one) for one in each.operators)
        return found

    def check(self) -> dict[int, int]:
        """Raise if an invariant is broken; return the owner of each slot."""
        assert np.flatnonzero(self._direct.only != NO_CALLS).tolist() == sorted(self._entries)
        graph = self.scheduler.graph
        assert len(graph) == len(self._entries)
        assert all(slot in graph for slot in self._entries)
        self.scheduler.check()
        self.predicates.check({slot: each.numbers for slot, each in self._entries.items()})
        return {slot: each.owner for slot, each in self._entries.items()}

    # -- filtering ---------------------------------------------------------------------------------

    def asks(self, slots: FoundSlots) -> Bools:
        """Whether each slot has calls."""
        asks: Bools = self._direct.only.take(slots, mode="clip") != NO_CALLS
        return asks

    def filter(self, batch: EventBatch, found: Matches, leaders: FoundSlots | None) -> Matches:
        """The candidates whose calls hold. `leaders` are the owners of all candidates."""
        if not self._entries:
            return found
        decided = self._decided(batch, found.starts, found.slots, leaders)
        if decided is None:
            return found
        return self._direct.compact(found.starts, found.slots, decided)

    def filter_bits(self, batch: EventBatch, found: Bitmaps) -> None:
        """Clear the bits of candidates whose calls do not hold."""
        if not self._entries:
            return
        used = np.minimum(found.slots, len(self._direct.only) - 1)
        bits = np.flatnonzero((self._direct.only[used] != NO_CALLS) & (found.slots >= 0))
        events, which = found.pairs(bits)
        order = np.argsort(events, kind="stable")
        events, which = events[order], which[order]
        slots = found.slots[bits[which]].astype(np.int64)
        decided = self._decided(batch, offsets(np.bincount(events, minlength=len(batch))), slots)
        if decided is not None:
            kept = self._direct.verdicts(slots, decided)
            found.clear(events[~kept], bits[which[~kept]])

    def _decided(
        self,
        batch: EventBatch,
        starts: Int64s,
        slots: FoundSlots,
        leaders: FoundSlots | None = None,
    ) -> Decided | None:
        """Decide the candidates that have calls; return None if no candidate has any."""
        skipped = np.zeros(0, np.bool_)
        if leaders is not None:
            skipped = _matched_without(starts, self.asks(slots), leaders)
        scheduler = self.scheduler
        needed = self._direct.collect(starts, slots, skipped, scheduler.graph.call)
        if not scheduler.learns_by_default:  # every outcome is of interest to it
            needed.of_pair[needed.of_pair >= 0] = SCHEDULED
            none = np.zeros(0, np.int64)
            needed = Collected(needed.of_pair, none, needed.request[:0], none, none, len(slots))
        outcomes = np.full(len(needed.number), UNKNOWN, np.int8)
        if not needed.scheduled and not len(needed.event):
            return Decided(needed.of_pair, outcomes) if len(skipped) else None
        open_ = np.flatnonzero(needed.of_pair == SCHEDULED) if needed.scheduled else _NONE
        events = np.searchsorted(starts, open_, side="right") - 1
        every = np.union1d(events, needed.event)
        for at in range(0, len(every), _AT_ONCE):
            part = every[at : at + _AT_ONCE]
            calls = EventCalls(self.runner, batch, part.tolist())
            ends = part[0], part[-1] + 1
            mine = range(*np.searchsorted(needed.event, ends).tolist())
            if len(mine):
                decide(needed, mine, calls, self.predicates, scheduler, outcomes)
            first, last = np.searchsorted(events, ends).tolist()
            if first < last:
                pairs = open_[first:last]
                agreed = self._scheduled(calls, events[first:last], slots[pairs])
                needed.of_pair[pairs] = np.where(agreed, NO_CALLS, DROPPED)
        return Decided(needed.of_pair, outcomes)

    def _scheduled(self, calls: EventCalls, events: Int64s, slots: FoundSlots) -> Bools:
        """For each candidate of some events, whether its calls hold."""
        evaluation = Evaluation(calls, self.scheduler, self._entries, self.predicates)
        distinct, firsts = np.unique(events, return_index=True)
        ends = np.append(firsts, len(events))[1:]
        spans = list(zip(distinct.tolist(), firsts.tolist(), ends.tolist(), strict=True))
        for event, first, last in spans:
            evaluation.start(event, slots[first:last].astype(np.int64))
        matched = evaluation.finish()
        self.given_up += evaluation.given_up
        agreed = np.zeros(len(slots), np.bool_)
        for event, first, last in spans:
            holding = matched[event]
            if holding:
                agreed[first:last] = [slot in holding for slot in slots[first:last].tolist()]
        return agreed

    # -- saving ------------------------------------------------------------------------------------

    def saved(self) -> SavedPart:
        """The calls of each slot as text, and statistics of past events, if there are any."""
        slots = sorted(self._entries)
        calls = [self._entries[slot].text for slot in slots]
        tables = {"texts": {"text": pa.array(calls, pa.large_string())}}
        if self.known:
            estimates = self.known.values()
            tables["known"] = {
                "text": pa.array(self.known, pa.large_string()),
                "p": pa.array([each.p for each in estimates], pa.float64()),
                "cost": pa.array([each.cost for each in estimates], pa.float64()),
                "seen": pa.array([each.seen for each in estimates], pa.int64()),
            }
        return SavedPart(
            {
                "slot": np.array(slots, np.int64),
                "owner": np.array([self._entries[slot].owner for slot in slots], np.int64),
            },
            {"known": len(self.known)},
            tables,
        )

    def restore(self, saved: SavedPart, schema: Schema, live: Int64s | None = None) -> None:
        """Restore what `saved` returned; an `OperatorError` if an operator has changed."""
        slots, owners = array_of(saved.arrays, "slot"), array_of(saved.arrays, "owner")
        if live is not None:
            fits = np.isin(slots, live).all() and np.isin(owners, live).all()
            require(fits and bool((np.diff(slots) > 0).all()), "the slots of calls have clauses")
        calls = texts(saved, "texts", "text").to_pylist()
        require(None not in calls, "each slot has calls")
        if saved.facts.get("known"):  # absent in older files
            known = saved.columns["known"]
            kinds = [known[name].type for name in PredicateEstimate._fields]
            right = [pa.float64(), pa.float64(), pa.int64()]
            nulls = any(each.null_count for each in known.values())
            require(kinds == right and not nulls, "estimates are numbers")
            columns = [known[name].to_pylist() for name in PredicateEstimate._fields]
            estimates = itertools.starmap(PredicateEstimate, zip(*columns, strict=True))
            of = texts(saved, "known", "text").to_pylist()
            self.known = dict(zip(of, estimates, strict=True))
        for slot, owner, text in zip(slots.tolist(), owners.tolist(), calls, strict=True):
            try:
                check(parse(text, limit=None), schema, text, self.operators.signatures)
            except ConditionError as why:
                raise OperatorError(
                    "a saved condition calls an operator that is missing or has changed; operators "
                    f"are not saved: pass them to Engine.open(…, operators=[…]): {why}"
                ) from None
            self.add(slot, owner, parse_calls(text), text)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "operators": self.operators,
            "scheduler_name": self.scheduler_name,
            "runner": self.runner,
            "given_up": self.given_up,
            "known": dict(self.known),
            # With their operators, whose names may have been redefined since.
            "clauses": [
                (slot, each.owner, each.text, each.operators)
                for slot, each in self._entries.items()
            ],
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        clauses = kept.pop("clauses")
        self.__dict__.update(kept)
        self._clear()
        for slot, owner, text, operators in clauses:
            self.add(slot, owner, parse_calls(text), text, operators)


def _matched_without(starts: Int64s, asks: Bools, leaders: FoundSlots) -> Bools:
    """The candidates with calls whose owner matches the event by a clause without calls."""
    called, free = np.flatnonzero(asks), np.flatnonzero(~asks)
    free = free[np.isin(leaders[free], leaders[called])]
    found = np.zeros(len(asks), np.bool_)
    if len(free):
        events = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        owners = events * (int(leaders.max()) + 1) + leaders
        found[called] = np.isin(owners[called], owners[free])
    return found
