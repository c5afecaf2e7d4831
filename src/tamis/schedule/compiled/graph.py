"""Who has which predicate: clauses of literals, in one flat array.

A literal is one number, `8 * predicate + mask`. Bit `outcome` of the mask says whether that outcome
kills the clause, so asking is one shift and no branch: a positive call dies of FALSE, a negated one
of TRUE, one that binds or tests variables of neither; all die of a FAULT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SchedulerError

Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
_Kind = TypeVar("_Kind", bound=np.generic)

ON_FALSE, ON_TRUE, NEVER = 0, 1, 2  # when a literal kills its clause, besides on a fault
FALSE, TRUE, FAULT = 0, 1, 2  # what became of a predicate

BITS = 3  # of a mask
MASK = (1 << BITS) - 1
LARGEST = (1 << (31 - BITS)) - 1  # the highest number of a predicate or a clause
_MASKS = {
    ON_FALSE: 1 << FALSE | 1 << FAULT,
    ON_TRUE: 1 << TRUE | 1 << FAULT,
    NEVER: 1 << FAULT,
}


class Links(NamedTuple):
    """As kernels see it: the literals of clause c are `pool[start[c] : start[c] + size[c]]`."""

    start: Int64s
    size: Int32s  # 0 where there is no such clause
    group: Int32s  # dense number of its owner
    pool: Int32s


class Graph:
    """Clauses by number. Adding and removing cost the literals of the clause.

    Clauses that go leave places of their length, which the next clauses of that length take. The
    lists from predicates to clauses are not kept: an event needs them for its survivors only, and
    makes them as it numbers those.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.links = Links(
            np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), _empty()
        )
        self.degree = _empty()  # per predicate: clauses that have it
        self.call = _empty()  # per predicate: which call answers it; -1 one of its own
        self._in_use: dict[int, int] = {}  # per call: its predicates that some clause has
        self._shared = 0  # calls that have several
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
        """One more than the highest number of an owner in use."""
        return len(self._groups) + len(self._free_groups)

    @property
    def alone(self) -> bool:
        """Whether no owner has alternatives."""
        return len(self._groups) == len(self._owner)

    @property
    def shared(self) -> bool:
        """Whether one call answers several predicates that clauses have."""
        return self._shared > 0

    @property
    def predicates(self) -> int:
        """One more than the highest number of a predicate seen, at least."""
        return len(self.degree)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(part.nbytes for part in (*self.links, self.degree, self.call))

    def clauses(self) -> Int64s:
        """The numbers of all clauses, ascending."""
        return np.flatnonzero(self.links.size)

    def literals(self, clause: int) -> Int32s:
        """The literals of a clause; may be put into another order in place."""
        start = self.links.start[clause]
        return self.links.pool[start : start + self.links.size[clause]]

    def add(self, clause: int, predicates: Sequence[int], kills: Sequence[int], owner: int) -> None:
        """Put a clause in. A predicate that stands in it twice becomes one literal."""
        if clause in self._owner:
            raise SchedulerError(f"clause {clause} is there already; remove it first")
        if not 0 <= clause <= LARGEST:
            raise SchedulerError(f"clauses are numbered 0 to {LARGEST}, got {clause}")
        literals = _literals(clause, predicates, kills)
        place = self._place(len(literals))
        self._fit(clause, max(literals) >> BITS)
        start, size, group, pool = self.links
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

    def share(self, predicate: int, call: int) -> None:
        """Say by which call a predicate is answered: all that have the same come out together."""
        if not 0 <= predicate <= LARGEST or not 0 <= call <= LARGEST:
            raise SchedulerError(
                f"predicates and calls are numbered 0 to {LARGEST}, got {predicate} and {call}"
            )
        if predicate >= len(self.call):
            self.call = longer(self.call, predicate + 1, -1)
        used = predicate < len(self.degree) and self.degree[predicate] > 0
        if used:
            self._count(predicate, -1)
        self.call[predicate] = call
        if used:
            self._count(predicate, 1)

    def _count(self, predicate: int, by: int) -> None:
        """A predicate has come into use, or has gone out of it."""
        call = int(self.call[predicate]) if predicate < len(self.call) else -1
        if call >= 0:
            before = self._in_use.pop(call, 0)
            if before + by:
                self._in_use[call] = before + by
            self._shared += (before + by > 1) - (before > 1)

    def calls(self, predicates: Int64s) -> Int64s:
        """The call of each of these predicates; of one that has its own, a number below 0."""
        if not len(self.call):
            return -1 - predicates
        call = self.call.take(predicates, mode="clip").astype(np.int64)
        alone = (call < 0) | (predicates >= len(self.call))
        call[alone] = -1 - predicates[alone]
        return call

    def remove(self, clause: int) -> None:
        """Take a clause out."""
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
        size = int(self.links.size[clause])
        self._free.setdefault(size, []).append(int(self.links.start[clause]))
        self.links.size[clause] = 0
        known = self._groups[owner]
        known[1] -= 1
        if not known[1]:
            self._free_groups.append(known[0])
            del self._groups[owner]

    def check(self) -> None:
        """Raise if places overlap or get lost, or a count is off. Slow; for tests."""
        start, size, group, pool = self.links
        clauses = self.clauses()
        assert set(clauses.tolist()) == set(self._owner)
        taken = np.zeros(self._top, np.int64)
        degree = np.zeros_like(self.degree)
        for clause in clauses:
            taken[start[clause] : start[clause] + size[clause]] += 1
            mine = self.literals(int(clause))
            assert len(set((mine >> BITS).tolist())) == len(mine), "a predicate once a clause"
            assert ((mine >> FAULT) & 1).all(), "a fault kills"
            degree[mine >> BITS] += 1
        for length, places in self._free.items():
            for place in places:
                taken[place : place + length] += 1
        assert (taken == 1).all(), "each place is a clause's, or free"
        assert self._top <= len(pool)
        assert (degree == self.degree).all()
        calls = self.calls(np.flatnonzero(degree))
        called, counts = np.unique(calls[calls >= 0], return_counts=True)
        assert dict(zip(called.tolist(), counts.tolist(), strict=True)) == self._in_use
        assert self.shared == bool((counts > 1).any())
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
        if self._top > len(self.links.pool):
            self.links = self.links._replace(pool=longer(self.links.pool, self._top))
        return place

    def _fit(self, clause: int, predicate: int) -> None:
        if clause >= len(self.links.size):
            start, size, group, pool = self.links
            grown = clause + 1
            self.links = Links(
                longer(start, grown), longer(size, grown), longer(group, grown), pool
            )
        if predicate >= len(self.degree):
            self.degree = longer(self.degree, predicate + 1)


def longer(array: NDArray[_Kind], wanted: int, fill: float = 0) -> NDArray[_Kind]:
    """The array with room for at least `wanted` items, filled up at its end."""
    have = len(array)
    grown = np.full(max(wanted, have + have // 2, 8), fill, array.dtype)
    grown[:have] = array
    return grown


def check_outcome(outcome: int) -> None:
    """Raise if this is none."""
    if outcome not in (FALSE, TRUE, FAULT):
        raise SchedulerError(f"an outcome is FALSE (0), TRUE (1) or FAULT (2), got {outcome}")


def _literals(clause: int, predicates: Sequence[int], kills: Sequence[int]) -> list[int]:
    if len(predicates) != len(kills):
        raise SchedulerError(
            f"clause {clause} has {len(predicates)} predicates, but says of {len(kills)} when they"
            " kill"
        )
    if not len(predicates):
        raise SchedulerError(f"clause {clause} has no predicates: there is nothing to schedule")
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


def _empty() -> Int32s:
    return np.zeros(0, np.int32)
