"""Who sits in which slot: subscriptions by id, their slots, and where their condition is kept.

A subscription takes one slot for each of its clauses; the first is its leader, under which all
that is known of it is kept. Slots are recycled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.errors import SubscriptionError
from tamis.model.condition import Condition
from tamis.model.domain import INT_HIGH, INT_LOW, RefusalError, Text, show

Id = int | str
Slots = NDArray[np.int64]


class TableRow(NamedTuple):
    """A condition kept as a row of the table it came with."""

    column: pa.Array
    row: int


Source = str | Condition | TableRow


class Roster:
    """Ids to slots and back."""

    def __init__(self) -> None:
        self._next = 0
        self._clear()

    def _clear(self) -> None:
        self._leader_of: dict[Id, int] = {}
        self._followers: dict[int, list[int]] = {}  # leaders of subscriptions of several clauses
        self._leader = np.zeros(0, np.int64)  # of each slot
        self._several = np.zeros(0, np.bool_)  # whether the slot's subscription has others
        self._number = np.zeros(0, np.int64)  # id of each leader, where it is a number
        self._text: NDArray[np.object_] | None = None  # and where it is text
        self._free: list[int] = []
        self._top = 0
        self._texts = 0
        self._single: dict[int, str | Condition] = {}  # sources of subscriptions that came alone
        self._column: dict[int, tuple[pa.Array, int]] = {}  # number -> (column, rows still live)
        self._column_of = np.zeros(0, np.int32)
        self._row_of = np.zeros(0, np.int64)
        self._columns_made = 0

    def __len__(self) -> int:
        return len(self._leader_of)

    def __contains__(self, id: object) -> bool:
        return self._find(id) is not None

    def ids(self) -> list[Id]:
        """All ids, in the order in which they came."""
        return list(self._leader_of)

    def check_new(self, id: Any) -> Id:
        """An id for a new subscription, as given or the next number; refuses one that is taken."""
        if id is None:
            while self._next in self._leader_of:
                self._next += 1
            return self._next
        checked = check_id(id)
        if checked in self._leader_of:
            raise SubscriptionError(f"the id {show(id)} is taken; ids are unique while they live")
        return checked

    def slots(self, id: Any) -> Slots:
        """The slots of a subscription, its leader first."""
        leader = self._find(id)
        if leader is None:
            raise SubscriptionError(f"there is no subscription {show(id)}")
        return np.array([leader, *self._followers.get(leader, ())], np.int64)

    def _find(self, id: Any) -> int | None:
        """The leader of an id. 1.0 and True equal 1, but are no ids."""
        if isinstance(id, bool) or not isinstance(id, (int, str, np.integer)):
            return None
        return self._leader_of.get(id if isinstance(id, str) else int(id))

    def reserve(self, count: int) -> Slots:
        """Free slots, which stay free until `enter`."""
        reused = self._free[-count:] if count else []
        fresh = count - len(reused)
        return np.concatenate(
            [np.array(reused, np.int64), np.arange(self._top, self._top + fresh, dtype=np.int64)]
        )

    def enter(self, id: Id, slots: Slots, source: str | Condition) -> None:
        """A subscription takes slots that were just reserved."""
        self._take(slots)
        leader = int(slots[0])
        self._leader_of[id] = leader
        self._leader[slots] = leader
        self._several[slots] = len(slots) > 1
        if len(slots) > 1:
            self._followers[leader] = slots[1:].tolist()
        self._single[leader] = source
        self._name(np.array([leader]), [id])

    def enter_table(self, ids: Sequence[Id], slots: Slots, counts: Slots, column: pa.Array) -> None:
        """Subscriptions of a table: row i takes the next `counts[i]` of the reserved slots."""
        self._take(slots)
        firsts = np.cumsum(counts) - counts
        leaders = slots[firsts]
        self._leader[slots] = np.repeat(leaders, counts)
        self._several[slots] = np.repeat(counts > 1, counts)
        self._leader_of.update(zip(ids, leaders.tolist(), strict=True))
        for row in np.flatnonzero(counts > 1).tolist():
            run = slots[firsts[row] + 1 : firsts[row] + counts[row]]
            self._followers[int(leaders[row])] = run.tolist()
        number = self._columns_made
        self._columns_made += 1
        self._column[number] = (column, len(ids))
        self._column_of[leaders] = number
        self._row_of[leaders] = np.arange(len(ids))
        self._name(leaders, ids)

    def leave(self, id: Id) -> None:
        """A subscription gives its slots back."""
        slots = self.slots(id)
        leader = self._leader_of.pop(id)
        self._followers.pop(leader, None)
        self._free.extend(slots.tolist())
        self._single.pop(leader, None)
        number = int(self._column_of[leader])
        if number >= 0:
            column, live = self._column[number]
            self._column_of[leader] = -1
            if live == 1:
                del self._column[number]
            elif len(column) > 4 * live + 1024:  # do not keep a table for a few of its rows
                mine = np.flatnonzero(self._column_of == number)
                self._column[number] = (column.take(pa.array(self._row_of[mine])), live - 1)
                self._row_of[mine] = np.arange(len(mine))
            else:
                self._column[number] = (column, live - 1)
        if self._text is not None and isinstance(id, str):
            self._text[leader] = None
            self._texts -= 1
        if not self._leader_of:
            self._clear()  # but numbers go on: an id given out is not given out again

    def source(self, id: Id) -> Source:
        """What a subscription's condition was given as."""
        leader = int(self.slots(id)[0])
        number = int(self._column_of[leader])
        if number >= 0:
            return TableRow(self._column[number][0], int(self._row_of[leader]))
        return self._single[leader]

    # -- slots to subscriptions --------------------------------------------------------------------

    def distinct(self, starts: Slots, slots: Slots) -> tuple[Slots, Slots]:
        """Each subscription once per event, as its leader, when several of its clauses matched."""
        leaders = self._leader[slots]
        if not self._followers or len(slots) == 0:
            return starts, leaders
        several = np.flatnonzero(self._several[slots])  # only these can stand twice
        if len(several) < 2:
            return starts, leaders
        events = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        keys = events[several] * len(self._leader) + leaders[several]
        order = np.argsort(keys, kind="stable")
        again = order[1:][keys[order][1:] == keys[order][:-1]]
        keep = np.ones(len(slots), np.bool_)
        keep[several[again]] = False
        counts = np.bincount(events[keep], minlength=len(starts) - 1)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), leaders[keep]

    def of(self, slots: Slots) -> NDArray[Any]:
        """The ids of leaders: int64, or objects where some id is text."""
        if self._text is None or self._texts == 0:
            return self._number[slots]
        texts = self._text[slots]
        numbers = self._number[slots].astype(object)
        return np.where(texts == np.array(None), numbers, texts)

    def _take(self, slots: Slots) -> None:
        reused = min(len(slots), len(self._free))
        if reused:
            del self._free[-reused:]
        self._top = max(self._top, int(slots.max(initial=-1)) + 1)
        if self._top > len(self._leader):
            size = max(self._top, 2 * len(self._leader), 16)
            grow = size - len(self._leader)
            self._leader = np.append(self._leader, np.zeros(grow, np.int64))
            self._several = np.append(self._several, np.zeros(grow, np.bool_))
            self._number = np.append(self._number, np.zeros(grow, np.int64))
            self._row_of = np.append(self._row_of, np.zeros(grow, np.int64))
            self._column_of = np.append(self._column_of, np.full(grow, -1, np.int32))
            if self._text is not None:
                self._text = np.append(self._text, np.full(grow, None))

    def _name(self, leaders: Slots, ids: Sequence[Id]) -> None:
        if isinstance(ids[0], int):
            self._number[leaders] = ids
            self._next += ids[0] == self._next and len(ids) == 1
            if self._text is not None:
                self._text[leaders] = None
        else:
            if self._text is None:
                self._text = np.full(len(self._leader), None)
            self._text[leaders] = ids
            self._texts += len(ids)


def check_id(id: Any) -> Id:
    """An id is a 64-bit integer or text that is not empty."""
    if isinstance(id, str):
        try:
            text = Text().value(id)
        except RefusalError as why:
            raise SubscriptionError(f"the id {why}") from None
        if text:
            return text
    whole = isinstance(id, (int, np.integer)) and not isinstance(id, bool)
    if whole and INT_LOW <= id <= INT_HIGH:
        return int(id)
    raise SubscriptionError(f"an id is a 64-bit integer or text, got {show(id)}")
