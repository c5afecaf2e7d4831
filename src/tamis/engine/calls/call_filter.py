"""Calls of operators, evaluated on the pairs that the matcher let through, and on no others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.engine.calls.call_group import CallGroup
from tamis.engine.calls.clause_calls import ClauseCalls
from tamis.engine.calls.evaluation import DEAREST, Evaluation
from tamis.engine.calls.interned_predicates import InternedPredicate, InternedPredicates
from tamis.engine.compiled_clause import parse_calls
from tamis.engine.saved_part import SavedPart
from tamis.errors import ConditionError, OperatorError
from tamis.language import check, parse
from tamis.match.answers import FoundSlots, Matches
from tamis.match.bitmaps import Bitmaps
from tamis.model.operator import Fault, Rows, Signature
from tamis.model.schema import Schema
from tamis.operators.faults import Report
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators
from tamis.operators.runner import Runner
from tamis.schedule.base import Scheduler
from tamis.schedule.exhaustive import ExhaustiveScheduler, PredicateCounts
from tamis.schedule.registry import create, entry
from tamis.schedule.statistics import PredicateEstimate

Int64s = NDArray[np.int64]
Evaluator = Callable[[tuple[Any, ...], tuple[Any, ...]], Rows | Fault]
_AT_ONCE = 256  # events whose operators are evaluated side by side


class _ClauseEntry(NamedTuple):
    """What is known of a clause that asks something."""

    asked: ClauseCalls
    text: str  # the same in the language, to be saved
    owner: int
    numbers: list[int]  # of the predicates of its calls, in their order
    joined: bool  # whether what they give has to fit together


class CallFilter:
    """The clauses that ask something of operators, by slot, and who evaluates it."""

    def __init__(self, operators: Operators, scheduler: str) -> None:
        self.operators, self.scheduler_name = operators, scheduler
        self.runner = Runner()
        self.given_up = 0  # joins that would have taken too long
        self.known: dict[
            str, PredicateEstimate
        ] = {}  # from past events, by the text of a predicate
        entry(scheduler)  # refuses a name that there is not
        self._clear()

    def _clear(self) -> None:
        self._scheduler: Scheduler | None = None  # made with the first clause
        self._kept: dict[int, _ClauseEntry] = {}
        self._predicates = InternedPredicates()
        self._has = np.zeros(1, np.bool_)  # by slot; the last one is for slots beyond the end

    @property
    def scheduler(self) -> Scheduler:
        """Who decides what is evaluated next."""
        if self._scheduler is None:
            self._scheduler = create(self.scheduler_name)
        return self._scheduler

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def predicates(self) -> int:
        """How many different ones there are."""
        return len(self._predicates)

    def add(
        self,
        slot: int,
        owner: int,
        asked: ClauseCalls,
        text: str,
        operators: Sequence[Operator] | None = None,
    ) -> None:
        """Keep what a clause asks. `owner` tells which clauses are alternatives of each other.

        Without `operators`, one for each call, they are those that now have the names.
        """
        if operators is None:
            operators = [self.operators[each.predicate.operator] for each in asked.calls]
        numbers: list[int] = []
        # First of all: it says what to undo.
        self._kept[slot] = _ClauseEntry(asked, text, owner, numbers, asked.joined)
        for asking, operator in zip(asked.calls, operators, strict=True):
            number, fresh = self._predicates.take(asking.predicate, operator, slot)
            numbers.append(number)
            if fresh:
                self._expect(number, operator)
        # `p(?x) and not p(?y)` has a number twice; of such, all that kills one of them counts.
        self.scheduler.add(slot, numbers, [asking.kills for asking in asked.calls], owner)
        if slot >= len(self._has) - 1:
            grow = max(slot + 2, 2 * len(self._has)) - len(self._has)
            self._has = np.append(self._has, np.zeros(grow, np.bool_))
        self._has[slot] = True

    def _expect(self, number: int, operator: Operator) -> None:
        """A new predicate costs what its call has come to cost, or is said to."""
        statistics, call = self.scheduler.statistics, self._predicates.call_number(number)
        if len(self._predicates.sharing(self._predicates[number].call)) == 1:
            statistics.expect_call(call, min(operator.cost, DEAREST))
        statistics.expect(number, cost=float(statistics.call_cost[call]))
        self.scheduler.assign_call(number, call)
        if self.known:  # the text of a predicate is made for nobody else
            self._begin(number)

    def _begin(self, number: int) -> None:
        """Begin with what is known of a predicate from the past, if anything is."""
        known = self.known.get(self._predicates[number].predicate.text)
        if known is None:
            return
        statistics, call = self.scheduler.statistics, self._predicates.call_number(number)
        if statistics.is_untimed(call):
            statistics.expect_call(call, min(known.cost, DEAREST), known.seen)
        statistics.expect(number, known.p, float(statistics.call_cost[call]), known.seen)

    def expect(self, known: Mapping[str, PredicateEstimate]) -> None:
        """What is known of predicates, by their texts; costs are in milliseconds.

        Those that have been evaluated here already keep what was learned of them.
        """
        self.known = {**self.known, **known}
        for number in list(self._predicates) if known else ():
            if self.scheduler.statistics.is_unseen(number):
                self._begin(number)

    @contextmanager
    def measuring(self) -> Iterator[dict[str, PredicateCounts]]:
        """Meanwhile all predicates are evaluated of clauses that get here; how these came out.

        Answers stay the same. What comes out is not learned by the scheduler.
        """
        kept, found = self.scheduler, dict[str, PredicateCounts]()
        self._scheduler = measure = ExhaustiveScheduler(kept.graph)
        try:
            yield found
        finally:
            self._scheduler = kept
        for number in self._predicates:
            told = measure.counts(number)
            if told is not None:
                found[self._predicates[number].predicate.text] = told

    def remove(self, slot: int) -> None:
        """Forget a slot, also one that was only half put in, or half taken out."""
        kept = self._kept.get(slot)
        if kept is None:
            return
        if slot < len(self._has):
            self._has[slot] = False
        if slot in self.scheduler.graph:
            self.scheduler.remove(slot)
        for number in kept.numbers:
            self._predicates.leave(number, slot)
        del self._kept[slot]
        if not self._kept:
            self._clear()

    def report(self) -> Report:
        """What operators were called for, what that took, and what went wrong."""
        return replace(self.runner.report(), given_up=self.given_up)

    def evaluators(self, slots: Iterable[int]) -> Mapping[str, tuple[Signature, Evaluator]]:
        """The operators as an explanation takes them, called through the same runner.

        Those of the clauses in these slots come first: since they came, others may have been
        defined under the same names.
        """
        own: dict[str, Operator] = {}
        for slot in slots:
            own |= {each.name: each for each in self._asking(slot)}
        return _Evaluators(own, self.operators, self.runner)

    def _asking(self, slot: int) -> tuple[Operator, ...]:
        """The operators of a slot's calls."""
        kept = self._kept.get(slot)
        numbers = () if kept is None else kept.numbers
        return tuple(self._predicates[number].operator for number in numbers)

    # -- answers -----------------------------------------------------------------------------------

    def filter(self, batch: EventBatch, found: Matches, leaders: FoundSlots | None) -> Matches:
        """The matches whose operators agree. `leaders` are the owners of all pairs' slots."""
        if not self._kept:
            return found
        pairs = np.flatnonzero(self._has.take(found.slots, mode="clip"))
        if not len(pairs):
            return found
        events = np.searchsorted(found.starts, pairs, side="right") - 1
        sure: dict[int, set[int]] = {}
        if leaders is not None:
            # A subscription that has matched already, by a clause without operators, is decided.
            plain = np.flatnonzero(~self._has.take(found.slots, mode="clip"))
            owners = leaders[plain]
            mine = np.isin(owners, leaders[pairs])
            where = np.searchsorted(found.starts, plain[mine], side="right") - 1
            for event, owner in zip(where.tolist(), owners[mine].tolist(), strict=True):
                sure.setdefault(event, set()).add(owner)
        agreed = self._agreeing(batch, events, found.slots[pairs].astype(np.int64), sure)
        return found.without(pairs[~agreed])

    def filter_bits(self, batch: EventBatch, found: Bitmaps) -> None:
        """Clear the bits of those whose operators do not agree."""
        if not self._kept:
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
    ) -> NDArray[np.bool_]:
        """For each pair, events ascending, whether what the clause asks holds."""
        agreed = np.zeros(len(slots), np.bool_)
        distinct, firsts = np.unique(events, return_index=True)
        ends = np.append(firsts[1:], len(events))
        for at in range(0, len(distinct), _AT_ONCE):
            some = slice(at, at + _AT_ONCE)
            evaluation = Evaluation(self.runner, self.scheduler, self)
            for event, first, last in zip(
                distinct[some].tolist(), firsts[some].tolist(), ends[some].tolist(), strict=True
            ):
                mine = slots[first:last]
                decided = sure.get(event)
                if decided is not None:
                    mine = np.array(
                        [s for s in mine.tolist() if self._kept[s].owner not in decided], np.int64
                    )
                if len(mine):
                    evaluation.start(event, mine, batch.raw_values(event))
            matched = evaluation.finish()
            self.given_up += evaluation.given_up
            for event, first, last in zip(
                distinct[some].tolist(), firsts[some].tolist(), ends[some].tolist(), strict=True
            ):
                holding = matched.get(event)
                if holding:
                    agreed[first:last] = [slot in holding for slot in slots[first:last].tolist()]
        return agreed

    # -- what an evaluation asks -------------------------------------------------------------------

    def asked(self, slot: int) -> tuple[ClauseCalls, list[int]] | None:
        """What a clause asks, and the numbers of its calls' predicates, if they have to fit."""
        kept = self._kept[slot]
        return (kept.asked, kept.numbers) if kept.joined else None

    def owner(self, slot: int) -> int:
        """Whose clause it is."""
        return self._kept[slot].owner

    def predicate(self, number: int) -> InternedPredicate:
        """The predicate of a number."""
        return self._predicates[number]

    def sharing(self, call: Hashable) -> CallGroup:
        """All predicates that one call answers."""
        return self._predicates.sharing(call)

    # -- saving ------------------------------------------------------------------------------------

    def saved(self) -> SavedPart:
        """What each slot asks, as text; and what is known of predicates, if anything is."""
        slots = sorted(self._kept)
        texts = [self._kept[slot].text for slot in slots]
        tables = {"texts": {"text": pa.array(texts, pa.large_string())}}
        if self.known:
            told = self.known.values()
            tables["known"] = {
                "text": pa.array(self.known, pa.large_string()),
                "p": pa.array([each.p for each in told], pa.float64()),
                "cost": pa.array([each.cost for each in told], pa.float64()),
                "seen": pa.array([each.seen for each in told], pa.int64()),
            }
        return SavedPart(
            {
                "slot": np.array(slots, np.int64),
                "owner": np.array([self._kept[slot].owner for slot in slots], np.int64),
            },
            {"known": len(self.known)},
            tables,
        )

    def restore(self, saved: SavedPart, schema: Schema) -> None:
        """Take over what `saved` gave; an `OperatorError` where an operator is not as it was."""
        slots, owners = saved.arrays["slot"].tolist(), saved.arrays["owner"].tolist()
        texts = saved.columns["texts"]["text"].to_pylist()
        if saved.facts.get("known"):  # an earlier tamis said nothing of it
            known = saved.columns["known"]
            told = zip(
                *(known[name].to_pylist() for name in PredicateEstimate._fields), strict=True
            )
            names = known["text"].to_pylist()
            self.known = dict(zip(names, itertools.starmap(PredicateEstimate, told), strict=True))
        for slot, owner, text in zip(slots, owners, texts, strict=True):
            try:
                check(parse(text, limit=None), schema, text, self.operators.signatures)
            except ConditionError as why:
                raise OperatorError(
                    "a condition of it calls an operator that is not there, or not as it was; "
                    f"operators are not saved: give them to Engine.open(…, operators=[…]): {why}"
                ) from None
            self.add(slot, owner, parse_calls(text), text)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "operators": self.operators,
            "scheduler_name": self.scheduler_name,
            "runner": self.runner,
            "given_up": self.given_up,
            "known": dict(self.known),
            # With the operators that they ask, which may no longer be those of these names.
            "asked": [
                (slot, each.owner, each.text, self._asking(slot))
                for slot, each in self._kept.items()
            ],
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        asked = kept.pop("asked")
        self.__dict__.update(kept)
        self._clear()
        for slot, owner, text, operators in asked:
            self.add(slot, owner, parse_calls(text), text, operators)


class _Evaluators(Mapping[str, tuple[Signature, Evaluator]]):
    def __init__(self, own: Mapping[str, Operator], operators: Operators, runner: Runner) -> None:
        self._own, self._operators, self._runner = own, operators, runner

    def __getitem__(self, name: str) -> tuple[Signature, Evaluator]:
        operator = self._own[name] if name in self._own else self._operators[name]

        def evaluate(reads: tuple[Any, ...], arguments: tuple[Any, ...]) -> Rows | Fault:
            return self._runner.call(operator, [reads], arguments)[0]

        return operator.signature, evaluate

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._operators

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._own, *self._operators)))

    def __len__(self) -> int:
        return sum(1 for _ in self)
