"""Priorities of subscriptions, and their order of arrival, which decides between equal ones.

Most engines have no priorities, and nobody asks for the first match. So priorities are kept by id,
and what a search for the first match needs, by slot, is made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.engine.ids import Id
from tamis.errors import SubscriptionError
from tamis.files.arrays import Int64s
from tamis.index.growth import grown
from tamis.model.domain import INT_HIGH, INT_LOW, show


class Ranks(NamedTuple):
    """By slot: of two slots, the one of higher priority is first, or else the earlier one."""

    priority: Int64s
    arrival: Int64s


def check_priority(given: Any) -> int:
    """Refuse a priority that is no 64-bit integer."""
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    if whole and INT_LOW <= given <= INT_HIGH:
        return int(given)
    raise SubscriptionError(f"a priority is a 64-bit integer, got {show(given)}")


class PriorityTable:
    """The priorities that are not 0, by id; an interrupt may leave some of ids that are gone."""

    def __init__(self) -> None:
        self._of: dict[Id, int] = {}
        self._ranks: Ranks | None = None
        self._next = 0  # arrival of the next subscription

    def of(self, id: Id) -> int:
        """The priority of a subscription."""
        return self._of.get(id, 0)

    def add(self, id: Id, slots: Int64s, priority: int) -> None:
        """A subscription arrives."""
        self._keep(id, priority)
        self._place(slots, priority, self._next)
        self._next += 1

    def add_table(
        self, ids: Sequence[Id], slots: Int64s, counts: Int64s, priorities: Int64s | None
    ) -> None:
        """Subscriptions arrive; each has so many of the slots."""
        given = np.zeros(len(ids), np.int64) if priorities is None else priorities
        for row in np.flatnonzero(given).tolist():
            self._of[ids[row]] = int(given[row])
        if self._ranks is not None:
            arrivals = np.arange(self._next, self._next + len(ids))
            self._place(slots, np.repeat(given, counts), np.repeat(arrivals, counts))
            self._next += len(ids)

    def change(self, id: Id, slots: Int64s, priority: int) -> None:
        """Give a subscription another priority."""
        ranks, self._ranks = self._ranks, None  # made again, if this is interrupted
        self._keep(id, priority)
        if ranks is not None:
            ranks.priority[slots] = priority
        self._ranks = ranks

    def move(self, id: Id, leader: int, slots: Int64s) -> None:
        """A subscription gets other slots, and keeps its turn."""
        if self._ranks is not None:
            self._place(slots, self.of(id), self._ranks.arrival[leader])

    def remove(self, id: Id) -> None:
        """A subscription has gone."""
        self._of.pop(id, None)

    def _keep(self, id: Id, priority: int) -> None:
        if priority:
            self._of[id] = priority
        elif self._of:
            self._of.pop(id, None)

    def _place(self, slots: Int64s, priority: Any, arrival: Any) -> None:
        if self._ranks is None:
            return
        size = int(slots.max()) + 1
        self._ranks = ranks = Ranks(*(grown(each, size) for each in self._ranks))
        ranks.priority[slots], ranks.arrival[slots] = priority, arrival

    def ranks(self, leader_of: Mapping[Id, int], leader: Int64s, top: int) -> Ranks:
        """The ranks of all slots; `leader` has the leader of each, in order of arrival by id."""
        if self._ranks is None:
            self._next = len(leader_of)  # before the ranks: an interrupt may come between
            self._ranks = self._made(leader_of, leader, top)
        return self._ranks

    def _made(self, leader_of: Mapping[Id, int], leader: Int64s, top: int) -> Ranks:
        made = Ranks(np.zeros(top, np.int64), np.zeros(top, np.int64))
        made.arrival[np.fromiter(leader_of.values(), np.int64, len(leader_of))] = np.arange(
            len(leader_of)
        )
        for id, priority in self._of.items():
            if id in leader_of:
                made.priority[leader_of[id]] = priority
        return Ranks(made.priority[leader], made.arrival[leader])

    def continue_from(self, old: PriorityTable, live: Collection[object]) -> None:
        """Take the priorities of live subscriptions from another table."""
        self._of = {id: priority for id, priority in old._of.items() if id in live}
        self._ranks = None

    def check(self, leader_of: Mapping[Id, int], leader: Int64s, top: int) -> None:
        """Raise if an invariant is broken."""
        assert all(self._of.values())
        assert self._of.keys() <= set(leader_of)
        if self._ranks is None:
            return
        right = self._made(leader_of, leader, top)
        slots = np.flatnonzero(np.isin(leader, list(leader_of.values())))
        assert np.array_equal(self._ranks.priority[slots], right.priority[slots])
        ours, theirs = (
            np.unique(each.arrival[slots], return_inverse=True)[1] for each in (self._ranks, right)
        )
        assert np.array_equal(ours, theirs), "the turns are in order of arrival"

    def saved(self, leader_of: Mapping[Id, int]) -> dict[str, Int64s]:
        """The priorities, with the leaders that have them; empty without priorities."""
        if not self._of:
            return {}
        return {
            "prioritised": np.array([leader_of[id] for id in self._of], np.int64),
            "priority": np.array([*self._of.values()], np.int64),
        }

    def restore(self, ids: Sequence[Id], priorities: Int64s) -> None:
        """Restore what `saved` returned, with the ids of the leaders."""
        self._of = dict(zip(ids, priorities.tolist(), strict=True))
