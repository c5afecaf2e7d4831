"""The graph of clauses and predicates: the literals of all clauses, in one flat array.

A literal is one number, `8 * predicate + mask`. Bit `outcome` of the mask says whether that outcome
kills the clause, so a test is one shift without a branch. FALSE kills a positive call, TRUE a
negated one, neither a call that binds or tests variables. A FAULT kills all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.errors import SchedulerError
from tamis.files.arrays import Int32s, Int64s, zeros
from tamis.index.growth import grown

ON_FALSE, ON_TRUE, NEVER = 0, 1, 2  # which outcome kills the clause; a fault always does
FALSE, TRUE, FAULT = 0, 1, 2  # outcomes of a predicate

BITS = 3  # of a mask
MASK = (1 << BITS) - 1
KILLS = 1 << FALSE | 1 << TRUE  # the bits of a mask that are not about faults
LEAST = 1e-6  # probabilities stay this far from 0 and 1, and costs from 0
LARGEST = (1 << (31 - BITS)) - 1  # the highest number of a predicate or a clause
_MASKS = {
    ON_FALSE: 1 << FALSE | 1 << FAULT,
    ON_TRUE: 1 << TRUE | 1 << FAULT,
    NEVER: 1 << FAULT,
}


class GraphArrays(NamedTuple):
    """What kernels read: the literals of clause c are `pool[start[c] : start[c] + size[c]]`."""

    start: Int64s
    size: Int32s  # 0 where there is no such clause
    group: Int32s  # dense number of its owner
    pool: Int32s


class ClauseGraph:
    """Clauses by number. Adding or removing a clause takes time proportional to its literals.

    A removed clause leaves a gap, which the next clause of the same length fills. The graph keeps
    no lists from predicates to clauses: an event needs them for its survivors only, and builds them
    in its own graph (`event_graph`).
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.arrays = zeros(GraphArrays)
        self.degree = np.zeros(0, np.int32)  # per predicate: clauses that have it
        self.call = np.zeros(
            0, np.int32
        )  # per predicate: the call that answers it; -1: a call of its own
        self._in_use: dict[int, int] = {}  # per call: how many of its predicates some clause has
        self._shared = 0  # calls that answer several predicates
        self._owner: dict[int, int] = {}  # of each clause
        self._groups: dict[int, list[int]] = {}  # owner: number, clauses
        self._free_groups: list[int] = []
        self._free: dict[int, list[int]] = {}  # places, by length
        self._top = 0

    def __len__(self) -> int:
        return len(self._owner)

    def __contains__(self, clause: object) -> bool:
        return clause in self._owner

    @property
    def groups(self) -> int:
        """One more than the highest group number in use."""
        return len(self._groups) + len(self._free_groups)

    @property
    def has_alternatives(self) -> bool:
        """Whether some owner has several clauses."""
        return len(self._groups) < len(self._owner)

    @property
    def has_shared_calls(self) -> bool:
        """Whether one call answers several predicates of the clauses."""
        return self._shared > 0

    @property
    def predicates(self) -> int:
        """At least one more than the highest number of a predicate."""
        return len(self.degree)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(part.nbytes for part in (*self.arrays, self.degree, self.call))

    def clauses(self) -> Int64s:
        """The numbers of all clauses, ascending."""
        return np.flatnonzero(self.arrays.size)

    def literals(self, clause: int) -> Int32s:
        """The literals of a clause. The caller may reorder them in place."""
        start = self.arrays.start[clause]
        return self.arrays.pool[start : start + self.arrays.size[clause]]

    def add(self, clause: int, predicates: Sequence[int], kills: Sequence[int], owner: int) -> None:
        """Add a clause. A predicate that occurs twice in it becomes one literal."""
        if clause in self._owner:
            raise SchedulerError(f"clause {clause} exists already; remove it first")
        if not 0 <= clause <= LARGEST:
            raise SchedulerError(f"clauses are numbered 0 to {LARGEST}, got {clause}")
        literals = _literals(clause, predicates, kills)
        place = self._place(len(literals))
        self._fit(clause, max(literals) >> BITS)
        start, size, group, pool = self.arrays
        for i, literal in enumerate(literals):
            pool[place + i] = literal
            self.degree[literal >> BITS] += 1
            if self.degree[literal >> BITS] == 1:
                self._count(literal >> BITS, 1)
        start[clause] = place
        size[clause] = len(literals)
        if owner not in self._groups:
            number = self._free_groups.pop() if self._free_groups else len(self._groups)
            self._groups[owner] = [number, 0]
        self._groups[owner][1] += 1
        group[clause] = self._groups[owner][0]
        self._owner[clause] = owner

    def assign_call(self, predicate: int, call: int) -> None:
        """Declare which call answers a predicate. One call answers all its predicates at once."""
        if not 0 <= predicate <= LARGEST or not 0 <= call <= LARGEST:
            raise SchedulerError(
                f"predicates and calls are numbered 0 to {LARGEST}, got {predicate} and {call}"
            )
        self.call = grown(self.call, predicate + 1, -1)
        used = predicate < len(self.degree) and self.degree[predicate] > 0
        if used:
            self._count(predicate, -1)
        self.call[predicate] = call
        if used:
            self._count(predicate, 1)

    def _count(self, predicate: int, by: int) -> None:
        """Count a predicate that the first clause uses, or the last one no longer does."""
        call = int(self.call[predicate]) if predicate < len(self.call) else -1
        if call >= 0:
            before = self._in_use.pop(call, 0)
            if before + by:
                self._in_use[call] = before + by
            self._shared += (before + by > 1) - (before > 1)

    def calls(self, predicates: Int64s) -> Int64s:
        """The call of each predicate; a number below 0 where a predicate has its own."""
        if not len(self.call):
            return -1 - predicates
        call = self.call.take(predicates, mode="clip").astype(np.int64)
        alone = (call < 0) | (predicates >= len(self.call))
        call[alone] = -1 - predicates[alone]
        return call

    def remove(self, clause: int) -> None:
        """Remove a clause."""
        if clause not in self._owner:
            raise SchedulerError(f"there is no clause {clause} to remove")
        owner = self._owner.pop(clause)
        if not self._owner:
            self._reset()
            return
        for predicate in (self.literals(clause) >> BITS).tolist():
            self.degree[predicate] -= 1
            if not self.degree[predicate]:
                self._count(predicate, -1)
        size = int(self.arrays.size[clause])
        self._free.setdefault(size, []).append(int(self.arrays.start[clause]))
        self.arrays.size[clause] = 0
        group = self._groups[owner]
        group[1] -= 1
        if not group[1]:
            self._free_groups.append(group[0])
            del self._groups[owner]

    def check(self) -> None:
        """Raise if the pool has overlaps or leaks, or a count is wrong. Slow; for tests."""
        start, size, group, pool = self.arrays
        clauses = self.clauses()
        assert set(clauses.tolist()) == set(self._owner)
        taken = np.zeros(self._top, np.int64)
        degree = np.zeros_like(self.degree)
        for clause in clauses:
            taken[start[clause] : start[clause] + size[clause]] += 1
            mine = self.literals(int(clause))
            assert len(set((mine >> BITS).tolist())) == len(mine), "no predicate twice"
            assert ((mine >> FAULT) & 1).all(), "a fault kills"
            degree[mine >> BITS] += 1
        for length, places in self._free.items():
            for place in places:
                taken[place : place + length] += 1
        assert (taken == 1).all(), "each place belongs to one clause, or is free"
        assert self._top <= len(pool)
        assert (degree == self.degree).all()
        calls = self.calls(np.flatnonzero(degree))
        called, counts = np.unique(calls[calls >= 0], return_counts=True)
        assert dict(zip(called.tolist(), counts.tolist(), strict=True)) == self._in_use
        assert self.has_shared_calls == bool((counts > 1).any())
        members: dict[int, int] = {}
        for clause, owner in self._owner.items():
            assert group[clause] == self._groups[owner][0]
            members[owner] = members.get(owner, 0) + 1
        assert members == {owner: count for owner, (_, count) in self._groups.items()}
        numbers = [number for number, _ in self._groups.values()] + self._free_groups
        assert sorted(numbers) == list(range(self.groups))

    def _place(self, length: int) -> int:
        free = self._free.get(length)
        if free:
            return free.pop()
        place = self._top
        self._top += length
        self.arrays = self.arrays._replace(pool=grown(self.arrays.pool, self._top))
        return place

    def _fit(self, clause: int, predicate: int) -> None:
        start, size, group = (grown(each, clause + 1) for each in self.arrays[:3])
        self.arrays = GraphArrays(start, size, group, self.arrays.pool)
        self.degree = grown(self.degree, predicate + 1)


def check_outcome(outcome: int) -> None:
    """Raise if this is not an outcome."""
    if outcome not in (FALSE, TRUE, FAULT):
        raise SchedulerError(f"an outcome is FALSE (0), TRUE (1) or FAULT (2), got {outcome}")


def _literals(clause: int, predicates: Sequence[int], kills: Sequence[int]) -> list[int]:
    if len(predicates) != len(kills):
        raise SchedulerError(
            f"clause {clause} has {len(predicates)} predicates, but {len(kills)} entries in kills"
        )
    if not len(predicates):
        raise SchedulerError(f"clause {clause} has no predicates; it needs at least one")
    masks: dict[int, int] = {}
    for predicate, kill in zip(predicates, kills, strict=True):
        if not 0 <= predicate <= LARGEST:
            raise SchedulerError(
                f"predicates are numbered 0 to {LARGEST}, got {predicate} in clause {clause}"
            )
        if kill not in _MASKS:
            raise SchedulerError(
                f"predicate {predicate} of clause {clause} kills ON_FALSE (0), ON_TRUE (1) or"
                f" NEVER (2), got {kill}"
            )
        masks[int(predicate)] = masks.get(int(predicate), 0) | _MASKS[int(kill)]
    return [predicate << BITS | mask for predicate, mask in masks.items()]
