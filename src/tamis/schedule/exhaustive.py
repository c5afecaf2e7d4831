"""A scheduler to learn with: it has everything evaluated, and counts what came out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.schedule.base import FAULT, TRUE, ClauseByClause, Run
from tamis.schedule.compiled.batch_results import UNKNOWN
from tamis.schedule.compiled.clause_order import IN_ORDER, Flat, begin
from tamis.schedule.compiled.event_graph import Numbered
from tamis.schedule.compiled.graph import Graph, Int8s, Int64s, longer


class Told(NamedTuple):
    """What came of evaluating a predicate."""

    seen: int  # results, without faults
    true: int  # of these
    faults: int
    timed: int  # calls that answered it
    spent: float  # on these calls, in the unit of costs


class Exhaustive(ClauseByClause):
    """All predicates of all survivors, whether or not they could still decide anything.

    Others see a predicate only after those that came before it; which ones these were depends on
    what is known already. To know how often each is true by itself, none may be left out. That
    costs as much as can be, and so it is for samples and not in the table of schedulers.

    An event costs the literals of its survivors, and as many calls as they have.
    """

    way = IN_ORDER

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.statistics.fit(graph.predicates)
        # By predicate:
        self._seen = np.zeros(0, np.int64)
        self._true = np.zeros(0, np.int64)
        self._faults = np.zeros(0, np.int64)
        self._timed = np.zeros(0, np.int64)
        self._spent = np.zeros(0)
        self._fit(graph.predicates)

    def told(self, predicate: int) -> Told | None:
        """What came of a predicate; None where it was never asked for."""
        if predicate >= len(self._seen) or not self._seen[predicate] + self._faults[predicate]:
            return None
        return Told(
            int(self._seen[predicate]),
            int(self._true[predicate]),
            int(self._faults[predicate]),
            int(self._timed[predicate]),
            float(self._spent[predicate]),
        )

    def learn(self, predicate: int, outcome: int, cost: float | None) -> None:
        self.learn_all(np.array([predicate]), np.array([outcome], np.int8), cost)

    def learn_all(self, predicates: Int64s, outcomes: Int8s, cost: float | None) -> None:
        self._fit(int(predicates.max(initial=-1)) + 1)
        self._seen[predicates[outcomes != FAULT]] += 1
        self._true[predicates[outcomes == TRUE]] += 1
        self._faults[predicates[outcomes == FAULT]] += 1
        if cost is not None:
            self._timed[predicates] += 1
            self._spent[predicates] += cost

    def _fit(self, predicates: int) -> None:
        if predicates > len(self._seen):
            for name in ("_seen", "_true", "_faults", "_timed", "_spent"):
                setattr(self, name, longer(getattr(self, name), predicates))

    def _run(self, numbered: Numbered, room: Flat) -> Run:
        begin(numbered.longs, numbered.ints, room.bytes, room.ints, room.longs, self.way)
        return _All(numbered, room)


class _All(Run):
    """One event, until no predicate is left."""

    def next(self) -> int:
        """The first predicate that has not come out."""
        unknown = np.flatnonzero(self._octets[: len(self._predicates)] == UNKNOWN)
        self._asked = int(unknown[0]) if len(unknown) else -1
        return int(self._predicates[self._asked]) if self._asked >= 0 else -1
