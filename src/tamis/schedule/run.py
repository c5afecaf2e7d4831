"""One event of a scheduler: ask for the next predicate, record its result, and again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.errors import SchedulerError
from tamis.files.arrays import Int8s, Int32s, Int64s
from tamis.schedule.compiled import clause_order, greedy
from tamis.schedule.compiled.event_graph import FlatEventGraph, SharedCalls
from tamis.schedule.compiled.graph import check_outcome
from tamis.schedule.compiled.run_state import (
    COMPLETED,
    OPEN,
    UNKNOWN,
    FlatRunState,
    is_needed,
    settle,
)

_NOTHING = np.zeros(0, np.int8)


class StepKernels(NamedTuple):
    """The compiled step of a scheduler, for one result and for several."""

    step: Any
    record_all: Any
    floats: bool = False  # whether they take the floats of the state too


CLAUSE_ORDER = StepKernels(clause_order.step, clause_order.record_all)
GREEDY = StepKernels(greedy.step, greedy.record_all, floats=True)


class Run:
    """One event: `next` and `record` in turn, until no predicate is left to evaluate.

    A result may also be recorded for a predicate that `next` did not return.
    """

    def __init__(
        self, graph: FlatEventGraph, state: FlatRunState, kernels: StepKernels = CLAUSE_ORDER
    ) -> None:
        self._octets, self._ints, self._longs, floats = state
        # As every kernel takes them.
        self._arrays = (*graph, self._octets, self._ints, self._longs)
        self._more = (floats,) if kernels.floats else ()
        self._step_kernel, self._record_all = kernels.step, kernels.record_all
        self._clauses, self._predicates = graph.clauses, graph.predicates
        self._current = -1  # what `next` returned, until its result is in; a local number
        self._complete: dict[int, int] = {}  # clauses to settle: local by global number
        self._local: dict[int, int] | None = None  # predicates: local by global number
        self._sorted: Int64s | None = None  # local numbers of predicates, by global number
        self._shared_calls: SharedCalls | None = None

    def share_calls(self, calls: SharedCalls | None) -> None:
        """Set which predicates share a call; None where each has its own."""
        self._shared_calls = calls

    @property
    def undecided(self) -> int:
        """How many clauses are undecided."""
        return int(self._longs[OPEN])

    @property
    def predicates(self) -> Int64s:
        """All predicates of the survivors."""
        return self._predicates

    def answered_with(self, predicate: int) -> Int64s:
        """The predicates that the call for this one answers, itself included.

        Empty where no survivor contains the predicate.
        """
        t = self._local_number(predicate)
        if self._shared_calls is None or t < 0:
            return np.array([predicate] if t >= 0 else [], np.int64)
        return self._shared_calls.answered_with(t)

    def next(self) -> int:
        """The predicate to evaluate now; -1 when every clause is decided."""
        # The same as before, unless `settle` has closed the last clause that needed it.
        if self._current < 0 or not is_needed(*self._arrays, self._current):
            self._current = self._choose()
        return int(self._predicates[self._current]) if self._current >= 0 else -1

    def record(self, predicate: int, outcome: int) -> Int64s:
        """Record the outcome of a predicate; returns the clauses that it completes.

        A clause is complete when all its literals have the outcome that they need. A predicate that
        no survivor contains is ignored.
        """
        check_outcome(outcome)
        t = self._local_number(predicate)
        if t < 0:
            return np.zeros(0, np.int64)
        if self._octets[t] != UNKNOWN:
            raise SchedulerError(f"predicate {predicate} has a recorded outcome already")
        self._step(_NOTHING, t, outcome)
        if t == self._current:
            self._current = -1
        clauses = len(self._clauses)
        return self._completed(self._ints[clauses : clauses + self._longs[COMPLETED]])

    def record_all(self, predicates: Int64s, outcomes: Int8s) -> Int64s:
        """Like `record` for several predicates; those with a recorded outcome are ignored."""
        if not len(self._predicates):
            return np.zeros(0, np.int64)
        if self._sorted is None:
            self._sorted = np.argsort(self._predicates)
        at = np.searchsorted(self._predicates, predicates, sorter=self._sorted)
        local = self._sorted.take(at, mode="clip")
        here = self._predicates[local] == predicates
        given = np.ascontiguousarray(outcomes[here], np.int8)
        complete = self._record_all(*self._arrays, local[here], given, self._more)
        if self._current >= 0 and self._octets[self._current] != UNKNOWN:
            self._current = -1
        return self._completed(complete)

    def _completed(self, complete: Int32s) -> Int64s:
        clauses = self._clauses[complete]
        self._complete.update(zip(clauses.tolist(), complete.tolist(), strict=True))
        return clauses

    def settle(self, clause: int, matched: bool) -> None:
        """Say whether a complete clause matched, once its variables are joined.

        If it matched, the other clauses of its owner need no decision.
        """
        if clause not in self._complete:
            raise SchedulerError(f"clause {clause} is not complete, or was settled before")
        local = self._complete.pop(clause)
        if matched:
            settle(*self._arrays, local)

    def finish(self, outcomes: Int8s) -> None:
        """Run to the end with these outcomes, by predicate. All clauses that complete match."""
        self._step(outcomes, -1, -1)

    def _choose(self) -> int:
        """The local number of the predicate to evaluate, or -1."""
        return self._step(_NOTHING, -1, -1)

    def _step(self, outcomes: Int8s, recorded: int, outcome: int) -> int:
        """Record a result, choose a predicate, or run to the end; see `clause_order.step`."""
        chosen: int = self._step_kernel(*self._arrays, outcomes, recorded, outcome, *self._more)
        return chosen

    def _local_number(self, predicate: int) -> int:
        """The local number of a predicate, or -1."""
        if self._current >= 0 and self._predicates[self._current] == predicate:
            return self._current
        if self._local is None:
            self._local = {number: t for t, number in enumerate(self._predicates.tolist())}
        return self._local.get(predicate, -1)
