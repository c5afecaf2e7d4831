"""A runner that does not make a call twice: it remembers the results of pure operators."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from tamis.errors import OperatorError
from tamis.model.operator import Fault
from tamis.operators.executor import Events
from tamis.operators.operator import Operator
from tamis.operators.report import Report
from tamis.operators.result_memory import SIZE, Call, ResultMemory, input_key
from tamis.operators.results import Answers
from tamis.operators.runner import NOT_TRIED, Runner


class RememberingRunner(Runner):
    """A runner with a memory of at most `remember` rows of results; 0 remembers nothing."""

    def __init__(self, *, remember: int = SIZE, **limits: Any) -> None:
        super().__init__(**limits)
        if isinstance(remember, bool) or not isinstance(remember, int) or remember < 0:
            raise OperatorError(f"remember is a number of results, 0 or more, not {remember!r}")
        self._memory = ResultMemory(remember)

    def answers(
        self, operator: Operator, reads: Events, arguments: Sequence[Sequence[Any]]
    ) -> Answers:
        """One answer for each event, from memory if the operator has answered this before.

        `arguments` has those of each event; they are equal, unless the operator takes pairs. Faults
        are not remembered: what failed once may work the next time.
        """
        if not reads:
            return []
        if not (operator.pure and self._memory.size):
            return self._fresh(operator, reads, arguments)
        given = [input_key(each) for each in reads]
        if operator.pairs:
            keys = {id(each): operator.key(each) for each in arguments}
            calls: list[Call] = [(operator, keys[id(each)]) for each in arguments]
            with self._lock:
                found = [
                    self._memory.recall(call, [each])[0]
                    for call, each in zip(calls, given, strict=True)
                ]
        else:
            calls = [(operator, operator.key(arguments[0]))] * len(reads)
            with self._lock:
                found = self._memory.recall(calls[0], given)
        if None in found:
            missing = [at for at, rows in enumerate(found) if rows is None]
            self._remembered(operator, len(found) - len(missing), len(missing))
            return self._filled(operator, reads, arguments, calls, given, found, missing)
        self._remembered(operator, len(found), 0)
        return [rows for rows in found if rows is not None]

    def _filled(
        self,
        operator: Operator,
        reads: Events,
        arguments: Sequence[Sequence[Any]],
        calls: list[Call],
        given: list[Hashable],
        found: list[Any],
        missing: list[int],
    ) -> Answers:
        """Make the calls for the results that are missing, equal ones once."""
        some = [given[at] for at in missing]
        if not operator.pairs and len(set(some)) == len(some) and None not in some:
            fresh = self._fresh(operator, [reads[at] for at in missing], arguments)
            if Fault not in set(map(type, fresh)):
                with self._lock:
                    self._memory.keep_all(calls[0], some, fresh)  # type: ignore[arg-type]
                if len(missing) == len(found):
                    return fresh
            else:
                with self._lock:
                    for each, answer in zip(some, fresh, strict=True):
                        if not isinstance(answer, Fault):
                            self._memory.keep(calls[0], each, answer)
            for at, answer in zip(missing, fresh, strict=True):
                found[at] = answer
            return found
        first: dict[Hashable, int] = {}
        for at in missing:
            first.setdefault(at if given[at] is None else (calls[at][1], given[at]), at)
        while first:
            asked = list(first.values())
            fresh = self._fresh(
                operator, [reads[at] for at in asked], [arguments[at] for at in asked]
            )
            late = False
            with self._lock:
                for at, answer in zip(asked, fresh, strict=True):
                    found[at] = answer
                    late |= isinstance(answer, Fault) and answer.kind == "timeout"
                    if not isinstance(answer, Fault):
                        self._memory.keep(calls[at], given[at], answer)
            # Equal ones share a result; of a fault, only one that may cost a timeout again.
            again: dict[Hashable, int] = {}
            for at in missing:
                if found[at] is None:
                    known = found[first[calls[at][1], given[at]]]
                    if not isinstance(known, Fault):
                        found[at] = known
                        self._count(operator, [known], [calls[at][1]])
                    elif late:
                        found[at] = NOT_TRIED
                        self.skipped(operator, [calls[at][1]], NOT_TRIED)
                    else:
                        again[at] = at
            first = again
        return found

    def _remembered(self, operator: Operator, hits: int, misses: int) -> None:
        with self._lock:
            count = self._counted(operator)
            count.hits += hits
            count.events += hits
            count.misses += misses

    def _fresh(
        self, operator: Operator, reads: Events, arguments: Sequence[Sequence[Any]]
    ) -> Answers:
        if operator.pairs:
            return self.call_pairs(operator, reads, arguments)
        return self.call(operator, reads, arguments[0])

    def report(self) -> Report:
        """The counts of calls and faults, and how much is remembered."""
        return replace(super().report(), remembered=len(self._memory))
