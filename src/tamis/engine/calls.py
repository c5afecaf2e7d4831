"""Calls of operators, evaluated on the pairs that the matcher let through, and on no others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.engine.asked import Asked, CallPredicate
from tamis.engine.compiled import asked_in
from tamis.engine.evaluation import Evaluation
from tamis.engine.saved_tables import Part
from tamis.errors import OperatorError
from tamis.match.answers import FoundSlots, Matches
from tamis.match.bitmaps import Bitmaps
from tamis.model.operator import Fault, Rows, Signature
from tamis.operators.faults import Report
from tamis.operators.registry import Operators
from tamis.operators.runner import Runner
from tamis.schedule.base import ON_FALSE, Scheduler
from tamis.schedule.registry import create, entry

Int64s = NDArray[np.int64]
Evaluator = Callable[[tuple[Any, ...], tuple[Any, ...]], Rows | Fault]
_AT_ONCE = 256  # events whose operators are evaluated side by side


class CallTests:
    """The clauses that ask something of operators, by slot, and who evaluates it."""

    def __init__(self, operators: Operators, scheduler: str) -> None:
        self.operators, self.scheduler_name = operators, scheduler
        self.runner = Runner()
        self.given_up = 0  # joins that would have taken too long
        entry(scheduler)  # refuses a name that there is not
        self._clear()

    def _clear(self) -> None:
        self._scheduler: Scheduler | None = None  # made with the first clause
        self._asked: dict[int, Asked] = {}
        self._text: dict[int, str] = {}  # what a slot asks, in the language, to be saved
        self._owner: dict[int, int] = {}
        self._number: dict[Hashable, int] = {}
        self._predicates: list[CallPredicate | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self._sharing: dict[Hashable, set[int]] = {}  # predicates by the call that answers them
        self._has = np.zeros(1, np.bool_)  # by slot; the last one is for slots beyond the end

    @property
    def scheduler(self) -> Scheduler:
        """Who decides what is evaluated next."""
        if self._scheduler is None:
            self._scheduler = create(self.scheduler_name)
        return self._scheduler

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def predicates(self) -> int:
        """How many different ones there are."""
        return len(self._number)

    def add(self, slot: int, owner: int, asked: Asked, text: str) -> None:
        """Keep what a clause asks. `owner` tells which clauses are alternatives of each other."""
        kills: dict[int, int] = {}
        for asking in asked.calls:
            number = self._intern(asking.predicate)
            self._uses[number] += number not in kills
            kills[number] = ON_FALSE if kills.get(number) == ON_FALSE else asking.kills
        self.scheduler.add(slot, list(kills), list(kills.values()), owner)
        self._asked[slot], self._text[slot], self._owner[slot] = asked, text, owner
        if slot >= len(self._has) - 1:
            grow = max(slot + 2, 2 * len(self._has)) - len(self._has)
            self._has = np.append(self._has, np.zeros(grow, np.bool_))
        self._has[slot] = True

    def remove(self, slot: int) -> None:
        """Forget a slot."""
        asked = self._asked.pop(slot, None)
        if asked is None:
            return
        self.scheduler.remove(slot)
        del self._text[slot], self._owner[slot]
        self._has[slot] = False
        for number in {self._number[asking.predicate.key] for asking in asked.calls}:
            self._uses[number] -= 1
            if not self._uses[number]:
                predicate = self._predicates[number]
                assert predicate is not None
                del self._number[predicate.key]
                call = self.call(predicate)
                self._sharing[call].discard(number)
                if not self._sharing[call]:
                    del self._sharing[call]
                self._predicates[number] = None
                self._free.append(number)
        if not self._asked:
            self._clear()

    def report(self) -> Report:
        """What operators were called for, what that took, and what went wrong."""
        return self.runner.report()

    @property
    def evaluators(self) -> Mapping[str, tuple[Signature, Evaluator]]:
        """The operators, as an explanation takes them: called through the same runner."""
        return _Evaluators(self.operators, self.runner)

    # -- answers -----------------------------------------------------------------------------------

    def filter(self, batch: EventBatch, found: Matches, leaders: FoundSlots | None) -> Matches:
        """The matches whose operators agree. `leaders` are the owners of all pairs' slots."""
        if not self._asked:
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
        if not self._asked:
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
            evaluation = Evaluation(self.operators, self.runner, self.scheduler, self)
            for event, first, last in zip(
                distinct[some].tolist(), firsts[some].tolist(), ends[some].tolist(), strict=True
            ):
                mine = slots[first:last]
                decided = sure.get(event)
                if decided is not None:
                    mine = np.array(
                        [s for s in mine.tolist() if self._owner[s] not in decided], np.int64
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

    def asked(self, slot: int) -> Asked:
        """What a clause asks."""
        return self._asked[slot]

    def predicate(self, number: int) -> CallPredicate:
        """The predicate of a number."""
        found = self._predicates[number]
        assert found is not None
        return found

    def call(self, predicate: CallPredicate) -> Hashable:
        """What is called for a predicate: the same for all that one call answers."""
        return predicate.operator, self.operators[predicate.operator].key(predicate.arguments)

    def sharing(self, call: Hashable) -> Iterable[int]:
        """The predicates that a call answers."""
        return self._sharing[call]

    def number(self, predicate: CallPredicate) -> int:
        """The number of a predicate that some clause has."""
        return self._number[predicate.key]

    def _intern(self, predicate: CallPredicate) -> int:
        number = self._number.get(predicate.key)
        if number is None:
            number = self._free.pop() if self._free else len(self._predicates)
            if number == len(self._predicates):
                self._predicates.append(None)
                self._uses.append(0)
            self._predicates[number] = predicate
            self._number[predicate.key] = number
            self._sharing.setdefault(self.call(predicate), set()).add(number)
            estimate = self.operators[predicate.operator].cost
            self.scheduler.statistics.expect(number, cost=estimate)
        return number

    # -- saving ------------------------------------------------------------------------------------

    def saved(self) -> Part:
        """What each slot asks, as text."""
        slots = sorted(self._asked)
        return Part(
            {
                "slot": np.array(slots, np.int64),
                "owner": np.array([self._owner[slot] for slot in slots], np.int64),
            },
            {},
            {"texts": {"text": pa.array([self._text[slot] for slot in slots], pa.large_string())}},
        )

    def restore(self, saved: Part) -> None:
        """Take over what `saved` gave; an `OperatorError` where an operator is not there."""
        slots, owners = saved.arrays["slot"].tolist(), saved.arrays["owner"].tolist()
        texts = saved.columns["texts"]["text"].to_pylist()
        for slot, owner, text in zip(slots, owners, texts, strict=True):
            asked = asked_in(text)
            for asking in asked.calls:
                name = asking.predicate.operator
                if name not in self.operators:
                    raise OperatorError(
                        f"its conditions call an operator {name!r}, which is not registered here; "
                        "operators are not saved: give it to Engine.open(…, operators=[…])"
                    )
            self.add(slot, owner, asked, text)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "operators": self.operators,
            "scheduler_name": self.scheduler_name,
            "runner": self.runner,
            "given_up": self.given_up,
            "asked": [(slot, self._owner[slot], text) for slot, text in self._text.items()],
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        asked = kept.pop("asked")
        self.__dict__.update(kept)
        self._clear()
        for slot, owner, text in asked:
            self.add(slot, owner, asked_in(text), text)


class _Evaluators(Mapping[str, tuple[Signature, Evaluator]]):
    def __init__(self, operators: Operators, runner: Runner) -> None:
        self._operators, self._runner = operators, runner

    def __getitem__(self, name: str) -> tuple[Signature, Evaluator]:
        operator = self._operators[name]

        def evaluate(reads: tuple[Any, ...], arguments: tuple[Any, ...]) -> Rows | Fault:
            return self._runner.call(operator, [reads], arguments)[0]

        return operator.signature, evaluate

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)
