"""The interface of schedulers: clauses of predicates in, the next predicate to evaluate out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from tamis.errors import SchedulerError
from tamis.schedule.compiled.batch_results import COMPLETED, OPEN, UNKNOWN
from tamis.schedule.compiled.clause_order import (
    EVALUATED,
    MATCHED,
    NOW,
    Flat,
    begin,
    flat,
    needed,
    settle,
    step,
    tell,
)
from tamis.schedule.compiled.event_graph import Numbered, Scratch, measure, number
from tamis.schedule.compiled.graph import (
    FALSE,
    FAULT,
    NEVER,
    ON_FALSE,
    ON_TRUE,
    TRUE,
    Graph,
    Int8s,
    Int32s,
    Int64s,
    check_outcome,
    longer,
)
from tamis.schedule.compiled.shared_calls import Together
from tamis.schedule.statistics import Statistics

__all__ = [
    "FALSE",
    "FAULT",
    "NEVER",
    "ON_FALSE",
    "ON_TRUE",
    "TRUE",
    "Run",
    "Scheduler",
    "Simulated",
]

_NOTHING = np.zeros(0, np.int8)


class Simulated(NamedTuple):
    """What an event took, had the outcomes been these."""

    evaluated: int  # predicates
    cost: float  # of those
    matched: Int64s  # clauses that completed
    trail: Int64s  # the predicates, in the order in which they were evaluated


class Scheduler(ABC):
    """An algorithm over operators: which predicate to evaluate next, so that few have to be.

    Knows numbers only. Clauses and predicates are numbered by the caller, densely; numbers may be
    used again. A clause is a conjunction of literals; clauses of one owner are alternatives. Runs
    have all they need for themselves: several may be under way at once, and clauses may come and go
    meanwhile. Neither they nor the scheduler are for several threads at a time.

    add and remove cost the literals of the clause, `run` those of the survivors.
    """

    def __init__(self, statistics: Statistics | None = None) -> None:
        self.statistics = Statistics() if statistics is None else statistics
        self.graph = Graph()
        none = np.zeros(0, np.int32)
        self._scratch = Scratch(none, none)
        self._last: Numbered | None = None  # of the last event, while clauses stay the same
        self._together: Together | None = None  # who shares a call there, if anybody may
        self._spare: Flat | None = None  # room of the last simulation, for that numbering

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the statistics."""
        kept = self._scratch if self._last is None else (*self._scratch, *self._last)
        return self.graph.nbytes + sum(part.nbytes for part in kept)

    def add(self, clause: int, predicates: Sequence[int], kills: Sequence[int], owner: int) -> None:
        """Take in a clause: its predicates in the order of the condition, and when each kills."""
        self.graph.add(clause, predicates, kills, owner)
        self._last = None
        self.statistics.fit(self.graph.predicates)
        self._added(clause)

    def share(self, predicate: int, call: int) -> None:
        """Say which call answers a predicate: evaluating it tells of all others of that call."""
        self.graph.share(predicate, call)
        self._last = None

    def remove(self, clause: int) -> None:
        """Forget a clause."""
        self.graph.remove(clause)
        self._last = None
        self._removed(clause)

    def run(self, clauses: Int64s) -> Run:
        """One event, for which these clauses are undecided; each of them once."""
        numbered = self._number(clauses)
        if self._together is not None:
            self.statistics.follow(numbered.predicates, self._together.calls)
        run = self._run(numbered, self._room(numbered))
        run.answered_by(self._together)
        return run

    def learn(self, predicate: int, outcome: int, cost: float | None) -> None:
        """What came of a call for a predicate, and what it cost; None: it was paid for before."""
        self.statistics.learn(predicate, outcome, self._paid(predicate, cost))

    def learn_all(self, predicates: Int64s, outcomes: Int8s, cost: float | None) -> None:
        """The same of several predicates that one call answers."""
        left = self._paid(int(predicates[0]), cost)
        if cost is not None and left is None:
            self.statistics.cost[predicates] = self.statistics.cost[predicates[0]]
        self.statistics.learn_all(predicates, outcomes, left)

    def _paid(self, predicate: int, cost: float | None) -> float | None:
        """Learn the cost of the call that answers a predicate; the cost, where there is none."""
        call = int(self.graph.call[predicate]) if predicate < len(self.graph.call) else -1
        if cost is None or call < 0:
            return cost
        told = self.statistics
        told.cost[predicate] = told.learn_call(call, cost, float(told.cost[predicate]))
        return None

    def simulate(self, clauses: Int64s, outcome: Int8s) -> Simulated:
        """One event whose outcomes are known, by predicate, in one go: the steps of a run.

        Of a run in which each predicate is told by itself: what `share` said counts for the order,
        but a call is not taken to tell of its other predicates.
        """
        used = np.flatnonzero(self.graph.degree[len(outcome) :])
        if len(used):
            most = len(outcome) + int(used[-1]) + 1
            raise SchedulerError(f"there are {most} predicates, but {len(outcome)} outcomes")
        numbered = self._number(clauses)
        if self._spare is None:
            self._spare = self._room(numbered)
        run = self._run(numbered, self._spare)
        if run.undecided:
            run.finish(np.ascontiguousarray(outcome, np.int8))
        longs, predicates = self._spare.longs, len(numbered.predicates)
        trail = longs[NOW : NOW + longs[EVALUATED]].copy()
        matched = longs[NOW + predicates : NOW + predicates + longs[MATCHED]].copy()
        return Simulated(len(trail), float(self.statistics.cost[trail].sum()), matched, trail)

    def check(self) -> None:
        """Raise if an invariant is broken. Slow; for tests."""
        self.graph.check()
        self.statistics.check()
        assert len(self.statistics) >= self.graph.predicates
        assert all((part == -1).all() for part in self._scratch), "left over from an event"

    def _added(self, clause: int) -> None:  # noqa: B027
        """A clause has come."""

    def _removed(self, clause: int) -> None:  # noqa: B027
        """A clause has gone."""

    def _ordered(self, clauses: Int64s) -> Int64s:
        """The survivors in the order in which they are to be looked at; as given, unless said."""
        return clauses

    def _number(self, clauses: Int64s) -> Numbered:
        """Survivors numbered; as for the last event, if they are the same."""
        clauses = np.ascontiguousarray(clauses, np.int64)
        links = self.graph.links
        literals = measure(links.size, clauses)
        if literals < 0:
            raise SchedulerError(f"there is no clause {clauses[-1 - literals]} to decide")
        clauses = self._ordered(clauses)
        if self._last is None or not np.array_equal(self._last.clauses, clauses):
            place, last = self._scratch
            if self.graph.predicates > len(place):
                place = longer(place, self.graph.predicates, -1)
            if self.graph.groups > len(last):
                last = longer(last, self.graph.groups, -1)
            self._scratch = Scratch(place, last)
            if self.graph.alone:
                last = last[:0]
            self._last = Numbered(*number(*links, place, last, clauses, literals))
            self._spare = self._together = None
            if self.graph.shared:
                predicates = self._last.predicates
                self._together = Together(predicates, self.graph.calls(predicates))
        return self._last

    @abstractmethod
    def _room(self, numbered: Numbered) -> Flat:
        """Room for a run."""

    @abstractmethod
    def _run(self, numbered: Numbered, room: Flat) -> Run:
        """A run in that room."""


class ClauseByClause(Scheduler):
    """One that takes the survivors in turn: schedulers differ in what they skip."""

    way: ClassVar[int]  # as `steps` knows it

    def _room(self, numbered: Numbered) -> Flat:
        return flat(numbered)

    def _run(self, numbered: Numbered, room: Flat) -> Run:
        begin(numbered.longs, numbered.ints, room.bytes, room.ints, room.longs, self.way)
        return Run(numbered, room)


class Run:
    """One event on its way: `next` and `tell` in turn, until nothing is left to evaluate.

    A predicate that was not asked for may be told too, if its outcome came along with another's.
    """

    def __init__(self, numbered: Numbered, room: Flat) -> None:
        self._known, self._who = numbered
        self._octets, self._ints, self._longs, self._floats = room
        self._clauses, self._predicates = numbered.clauses, numbered.predicates
        self._asked = -1  # what `next` gave, and has not been told of
        self._complete: dict[int, int] = {}  # clauses that may be settled
        self._place: dict[int, int] | None = None  # predicates by number outside
        self._sorted: Int64s | None = None  # predicates, ascending by number outside
        self._together: Together | None = None

    def answered_by(self, calls: Together | None) -> None:
        """Who shares a call; None where each predicate has its own."""
        self._together = calls

    @property
    def undecided(self) -> int:
        """Clauses of which nothing is certain yet."""
        return int(self._longs[OPEN])

    @property
    def predicates(self) -> Int64s:
        """All that the survivors have."""
        return self._predicates

    def together(self, predicate: int) -> Int64s:
        """The predicates of survivors that the same call answers, this one included."""
        place = self._at(predicate)
        if self._together is None or place < 0:
            return np.array([predicate] if place >= 0 else [], np.int64)
        return self._together.of(place)

    def next(self) -> int:
        """The predicate to evaluate now; -1 when every clause is decided."""
        # As before, unless a clause that was settled meanwhile was the last that needed it.
        if self._asked < 0 or not self._needed(self._asked):
            self._asked = self._step(_NOTHING, -1, -1)
        return int(self._predicates[self._asked]) if self._asked >= 0 else -1

    def tell(self, predicate: int, outcome: int) -> Int64s:
        """What became of a predicate; the clauses all of whose literals have come out right by it.

        One that no survivor has is no news.
        """
        check_outcome(outcome)
        t = self._at(predicate)
        if t < 0:
            return np.zeros(0, np.int64)
        if self._octets[t] != UNKNOWN:
            raise SchedulerError(f"predicate {predicate} has been told of before")
        self._step(_NOTHING, t, outcome)
        if t == self._asked:
            self._asked = -1
        clauses = len(self._clauses)
        return self._completed(self._ints[clauses : clauses + self._longs[COMPLETED]])

    def tell_all(self, predicates: Int64s, outcomes: Int8s) -> Int64s:
        """The same of several, which came out together. What is known already is no news."""
        if not len(self._predicates):
            return np.zeros(0, np.int64)
        if self._sorted is None:
            self._sorted = np.argsort(self._predicates)
        at = np.searchsorted(self._predicates, predicates, sorter=self._sorted)
        places = self._sorted.take(at, mode="clip")
        here = self._predicates[places] == predicates
        complete = self._tell(places[here], np.ascontiguousarray(outcomes[here], np.int8))
        if self._asked >= 0 and self._octets[self._asked] != UNKNOWN:
            self._asked = -1
        return self._completed(complete)

    def _completed(self, complete: Int32s) -> Int64s:
        outside = self._clauses[complete]
        self._complete.update(zip(outside.tolist(), complete.tolist(), strict=True))
        return outside

    def settle(self, clause: int, matched: bool) -> None:
        """What became of the join of a clause that `tell` gave.

        If it matched, the other clauses of its owner need not be decided.
        """
        if clause not in self._complete:
            raise SchedulerError(f"clause {clause} is not complete, or was settled before")
        place = self._complete.pop(clause)
        if matched:
            self._settle(place)

    def finish(self, outcomes: Int8s) -> None:
        """All that is left to do, if these are the outcomes and all that completes matches."""
        self._step(outcomes, -1, -1)

    def _tell(self, places: Int64s, outcomes: Int8s) -> Int32s:
        return tell(
            self._known, self._who, self._octets, self._ints, self._longs, places, outcomes, ()
        )

    def _needed(self, t: int) -> bool:
        return needed(self._known, self._who, self._octets, self._ints, self._longs, t)

    def _step(self, outcomes: Int8s, told: int, outcome: int) -> int:
        """Tell, or choose, or go on to the end; as `steps` does."""
        known, who, octets, ints, longs = (
            self._known,
            self._who,
            self._octets,
            self._ints,
            self._longs,
        )
        return step(known, who, octets, ints, longs, outcomes, told, outcome)

    def _settle(self, place: int) -> None:
        settle(self._known, self._who, self._octets, self._ints, self._longs, place)

    def _at(self, predicate: int) -> int:
        """The number within the event, or -1."""
        if self._asked >= 0 and self._predicates[self._asked] == predicate:
            return self._asked
        if self._place is None:
            outside = self._predicates.tolist()
            self._place = {number: t for t, number in enumerate(outside)}
        return self._place.get(predicate, -1)
