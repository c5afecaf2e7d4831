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
from tamis.engine.calls.evaluation import DEAREST, ClauseEntry, Evaluation
from tamis.engine.calls.interned_predicates import InternedPredicates
from tamis.engine.compiled_condition import parse_calls
from tamis.engine.saved_part import SavedPart, texts
from tamis.errors import ConditionError, OperatorError
from tamis.files.arrays import Bools, Int64s
from tamis.files.saved_checks import array_of, require
from tamis.index.growth import grown
from tamis.language import check, parse
from tamis.match.answers import FoundSlots, Matches
from tamis.match.bitmaps import Bitmaps
from tamis.model.operator import Fault, Rows, Signature
from tamis.model.schema import Schema
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators
from tamis.operators.report import Report
from tamis.operators.runner import Runner
from tamis.schedule.base import Scheduler
from tamis.schedule.exhaustive import ExhaustiveScheduler, PredicateCounts
from tamis.schedule.registry import create, entry
from tamis.schedule.statistics import PredicateEstimate

Reads = tuple[Any, ...]
Evaluator = Callable[[Reads, Reads], Rows | Fault]
_AT_ONCE = 256  # events whose operators are evaluated together


class CallFilter:
    """The clauses with calls, by slot; filters candidates by evaluating the calls."""

    def __init__(self, operators: Operators, scheduler: str) -> None:
        self.operators, self.scheduler_name = operators, scheduler
        self.runner = Runner()
        self.given_up = 0  # joins that exceeded the limit
        # From statistics of past events, by the text of a predicate.
        self.known: dict[str, PredicateEstimate] = {}
        entry(scheduler)  # refuses an unknown name
        self._clear()

    def _clear(self) -> None:
        self._scheduler: Scheduler | None = None  # created with the first clause
        self._entries: dict[int, ClauseEntry] = {}
        self.predicates = InternedPredicates()  # the distinct predicates of all clauses
        self._has = np.zeros(1, np.bool_)  # by slot; the last entry is for slots beyond the end

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
        self._has = grown(self._has, slot + 2)
        self._has[slot] = True

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
        self._has[slot] = False
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
            return self.runner.call(operator, [reads], arguments)[0]

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
        assert np.flatnonzero(self._has).tolist() == sorted(self._entries)
        graph = self.scheduler.graph
        assert len(graph) == len(self._entries)
        assert all(slot in graph for slot in self._entries)
        self.scheduler.check()
        self.predicates.check({slot: each.numbers for slot, each in self._entries.items()})
        return {slot: each.owner for slot, each in self._entries.items()}

    # -- filtering ---------------------------------------------------------------------------------

    def filter(self, batch: EventBatch, found: Matches, leaders: FoundSlots | None) -> Matches:
        """The candidates whose calls hold. `leaders` are the owners of all candidates."""
        if not self._entries:
            return found
        pairs = np.flatnonzero(self._has.take(found.slots, mode="clip"))
        if not len(pairs):
            return found
        events = np.searchsorted(found.starts, pairs, side="right") - 1
        sure: dict[int, set[int]] = {}
        if leaders is not None:
            # A subscription that matches by a clause without calls is decided.
            plain = np.flatnonzero(~self._has.take(found.slots, mode="clip"))
            owners = leaders[plain]
            mine = np.isin(owners, leaders[pairs])
            where = np.searchsorted(found.starts, plain[mine], side="right") - 1
            for event, owner in zip(where.tolist(), owners[mine].tolist(), strict=True):
                sure.setdefault(event, set()).add(owner)
        agreed = self._agreeing(batch, events, found.slots[pairs].astype(np.int64), sure)
        return found.without(pairs[~agreed])

    def filter_bits(self, batch: EventBatch, found: Bitmaps) -> None:
        """Clear the bits of candidates whose calls do not hold."""
        if not self._entries:
            return
        used = np.minimum(found.slots, len(self._has) - 1)
        bits = np.flatnonzero(self._has[used] & (found.slots >= 0))
        events, which = found.pairs(bits)
        order = np.argsort(events, kind="stable")
        events, which = events[order], which[order]
        slots = found.slots[bits[which]].astype(np.int64)
        wrong = ~self._agreeing(batch, events, slots, {})
        found.clear(events[wrong], bits[which[wrong]])

    def _agreeing(
        self, batch: EventBatch, events: Int64s, slots: Int64s, sure: dict[int, set[int]]
    ) -> Bools:
        """For each candidate, in order of events, whether its calls hold."""
        agreed = np.zeros(len(slots), np.bool_)
        distinct, firsts = np.unique(events, return_index=True)
        ends = np.append(firsts, len(events))[1:]
        every = list(zip(distinct.tolist(), firsts.tolist(), ends.tolist(), strict=True))
        for at in range(0, len(every), _AT_ONCE):
            spans = every[at : at + _AT_ONCE]
            evaluation = Evaluation(self.runner, self.scheduler, self._entries, self.predicates)
            for event, first, last in spans:
                mine = slots[first:last]
                decided = sure.get(event)
                if decided is not None:
                    open_ = [s for s in mine.tolist() if self._entries[s].owner not in decided]
                    mine = np.array(open_, np.int64)
                if len(mine):
                    evaluation.start(event, mine, batch.raw_values(event))
            matched = evaluation.finish()
            self.given_up += evaluation.given_up
            for event, first, last in spans:
                holding = matched.get(event)
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
