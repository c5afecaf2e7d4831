"""The slots of each subscription, by id, and the subscription of each slot.

A subscription has one slot for each of its clauses. The first is its leader; its id and its
condition are kept there. Slots are recycled. Most subscriptions have one clause; if all do, the
slots of a result need no translation.

The dict of leaders by id says which subscriptions exist. It changes in one step: last when some are
added, first when one is removed. So after an interrupt at any moment, it and the conditions of its
leaders are right, and the engine is rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engine.condition_sources import ConditionSource, ConditionSources
from tamis.engine.ids import Id, IdTable
from tamis.engine.lazy_dict import LazyDict
from tamis.engine.priorities.priority_table import PriorityTable, Ranks
from tamis.engine.saved.saved_part import SavedPart
from tamis.errors import SubscriptionError
from tamis.files.arrays import Int32s, Int64s
from tamis.files.saved_checks import array_of, require, rising, whole, within
from tamis.index.growth import grown
from tamis.match.answers import FoundSlots, Matches, SlotIds
from tamis.match.bitmaps import Bitmaps
from tamis.model.condition import Condition
from tamis.model.domain import INT_HIGH, INT_LOW, RefusalError, Text, show

Slots = Int64s
_ALONE = -1
_SCRATCH = 1 << 20  # (event, leader) cells in which duplicates are found


class SlotTable:
    """Ids to slots and back."""

    def __init__(self) -> None:
        self._next = 0
        self._clear()

    def _clear(self) -> None:
        self._leader_of: LazyDict[Id, int] = LazyDict()
        self._followers: LazyDict[int, list[int]] = LazyDict()  # the other slots of a leader
        # The leader of each slot of a subscription with several clauses, else _ALONE. The last
        # entry is _ALONE: slots beyond the end read it.
        self._leader = np.full(1, _ALONE, np.int32)
        self._free: list[int] = []
        self._top = 0
        self._ids = IdTable()
        self._sources = ConditionSources()
        self._priorities = PriorityTable()

    def __len__(self) -> int:
        return len(self._leader_of)

    def __contains__(self, id: object) -> bool:
        return self._find(id) is not None

    def ids(self) -> list[Id]:
        """All ids, in order of arrival."""
        return list(self._leader_of)

    def check_new(self, id: Any) -> Id:
        """The id for a new subscription: the one given if it is free, or the next number."""
        if id is None:
            while self._next in self._leader_of:
                self._next += 1
            return self._next
        checked = check_id(id)
        if checked in self._leader_of:
            raise SubscriptionError(
                f"the id {show(id)} is taken; live subscriptions have unique ids"
            )
        return checked

    def slots(self, id: Any) -> Slots:
        """The slots of a subscription, its leader first."""
        leader = self._known(id)
        return np.array([leader, *(self._followers.find(leader) or ())], np.int64)

    def _known(self, id: Any) -> int:
        leader = self._find(id)
        if leader is None:
            raise SubscriptionError(f"no subscription has the id {show(id)}")
        return leader

    def _find(self, id: Any) -> int | None:
        """The leader of an id. 1.0 and True equal 1, but are not ids."""
        if isinstance(id, bool) or not isinstance(id, (int, str, np.integer)):
            return None
        return self._leader_of.find(id if isinstance(id, str) else int(id))

    def reserve(self, count: int) -> Slots:
        """Free slots; they stay free until `add`."""
        if count == 1:
            return np.array([self._free[-1] if self._free else self._top], np.int64)
        reused = self._free[-count:] if count else []
        fresh = count - len(reused)
        return np.concatenate(
            [np.array(reused, np.int64), np.arange(self._top, self._top + fresh, dtype=np.int64)]
        )

    def add(self, id: Id, slots: Slots, source: str | Condition, priority: int = 0) -> None:
        """Give a subscription slots that were just reserved."""
        leader, *followers = listed = slots.tolist()
        self._take(len(listed), max(listed))
        if followers:
            self._lead(slots, leader)
            self._followers[leader] = followers
        self._sources.keep(leader, source)
        self._ids.put(leader, id)
        self._next += id == self._next
        self._priorities.add(id, slots, priority)
        self._leader_of[id] = leader

    def add_table(
        self,
        ids: Sequence[Id],
        slots: Slots,
        counts: Slots,
        column: pa.Array,
        priorities: Int64s | None = None,
    ) -> None:
        """Give row i of a table the next `counts[i]` of the reserved slots."""
        self._take(len(slots), int(slots.max()))
        firsts = np.cumsum(counts) - counts
        leaders = slots[firsts]
        for row in np.flatnonzero(counts > 1).tolist():
            run = slots[firsts[row] : firsts[row] + counts[row]]
            self._lead(run, int(run[0]))
            self._followers[int(run[0])] = run[1:].tolist()
        self._sources.keep_table(leaders, column)
        self._ids.put_all(leaders, ids)
        self._priorities.add_table(ids, slots, counts, priorities)
        self._leader_of.put_all(zip(ids, leaders.tolist(), strict=True))

    def remove(self, id: Id) -> None:
        """Free the slots of a subscription."""
        leader = self._known(id)
        del self._leader_of[id]
        if not self._leader_of:
            self._clear()  # but keep counting: a number is never given out again
            return
        self._priorities.remove(id)
        self._vacate(id, leader)

    def move(self, id: Id, slots: Slots, source: str | Condition) -> None:
        """Give a subscription slots that were just reserved, in place of those that it has."""
        leader = self._known(id)
        self.add(id, slots, source, self._priorities.of(id))
        self._priorities.move(id, leader, slots)
        self._vacate(id, leader)

    def _vacate(self, id: Id, leader: int) -> None:
        followers = self._followers.find(leader)
        if followers:
            del self._followers[leader]
            self._leader[[leader, *followers]] = _ALONE
            self._free.extend(followers)
        self._free.append(leader)
        self._sources.drop(leader)
        self._ids.drop(leader, id)

    def priority(self, id: Id) -> int:
        """The priority of a subscription."""
        self._known(id)
        return self._priorities.of(id)

    def set_priority(self, id: Id, priority: int) -> None:
        """Give a subscription another priority."""
        self._priorities.change(id, self.slots(id), priority)

    def ranks(self) -> Ranks:
        """The priority and the arrival of the subscription of each slot."""
        return self._priorities.ranks(self._leader_of, self._leaders(), self._top)

    def _leaders(self) -> Slots:
        """The leader of each slot; a free slot is its own."""
        own = np.arange(self._top, dtype=np.int64)
        leaders = self._leader.take(own, mode="clip")
        return np.where(leaders == _ALONE, own, leaders)

    def source(self, id: Id) -> ConditionSource:
        """The condition of a subscription, as it was given."""
        return self._sources.of(self._known(id))

    def sources(self) -> Iterator[tuple[Id, int, ConditionSource]]:
        """The id, the leader and the condition of all subscriptions, in order of arrival."""
        for id, leader in self._leader_of.items():
            yield id, leader, self._sources.of(leader)

    def columns(self) -> Iterator[tuple[list[Id], pa.Array]]:
        """The conditions of all subscriptions in columns, with their ids."""
        for slots, rows, column in self._sources.columns():
            yield self._ids.now().of(slots).tolist(), column.take(pa.array(rows))

    def mentioning(self, names: Sequence[str]) -> list[int]:
        """The leaders whose conditions may mention one of these attributes; all that do."""
        return self._sources.mentioning(names)

    def sources_of(self, leaders: Sequence[int]) -> Iterator[tuple[Id, int, ConditionSource]]:
        """The id, the leader and the condition of some subscriptions."""
        ids = self._ids.now().of(np.array(leaders, np.int64)).tolist()
        for id, leader in zip(ids, leaders, strict=True):
            yield id, leader, self._sources.of(leader)

    def continue_from(self, old: SlotTable) -> None:
        """Take the order of arrival, and the next number, from a table with the same ids."""
        self._next = old._next
        leaders, self._leader_of = self._leader_of, LazyDict()
        self._leader_of.put_all((id, leaders[id]) for id in old._leader_of)
        self._priorities.continue_from(old._priorities, leaders)

    def check(self) -> dict[int, int]:
        """Raise if an invariant is broken; return the leader of each slot in use."""
        leaders = list(self._leader_of.values())
        owners = {leader: leader for leader in leaders}
        for leader, followers in self._followers.items():
            assert followers
            assert owners.get(leader) == leader, "followers have a leader"
            owners.update(dict.fromkeys(followers, leader))
        assert len(owners) == len(leaders) + sum(map(len, self._followers.values()))
        assert sorted([*owners, *self._free]) == list(range(self._top)), "in use or free"
        several = {slot: lead for slot, lead in owners.items() if lead in self._followers}
        known = np.flatnonzero(self._leader != _ALONE).tolist()
        assert {slot: int(self._leader[slot]) for slot in known} == several
        assert self._leader[-1] == _ALONE
        self._ids.check(dict(zip(leaders, self._leader_of, strict=True)))
        self._sources.check(leaders)
        self._priorities.check(self._leader_of, self._leaders(), self._top)
        return owners

    # -- slots to subscriptions --------------------------------------------------------------------

    def with_ids(self, found: Matches) -> Matches:
        """The matches with ids, each subscription once per event."""
        if self._followers:
            found = self._distinct(found)
        return Matches(found.starts, found.slots, self._ids.now())

    def current_ids(self) -> SlotIds:
        """The ids as of now. While somebody has them, all answers have the same."""
        return self._ids.now()

    def ids_of(self, slots: FoundSlots) -> list[Id]:
        """The ids of the slots that one event matched, each subscription once."""
        if self._followers:
            leaders = self._leader.take(slots, mode="clip")
            if leaders.max() != _ALONE:
                own = np.where(leaders == _ALONE, slots, leaders)
                slots = np.array(list(dict.fromkeys(own.tolist())), np.int64)
        return self._ids.listed(slots)

    def bits_with_ids(self, found: Bitmaps) -> Bitmaps:
        """The same for bits."""
        if self._followers:
            leaders = self._leader[np.minimum(found.slots, len(self._leader) - 1)]
            follow = np.flatnonzero((leaders != _ALONE) & (leaders != found.slots))
            used = np.flatnonzero(found.slots >= 0)
            bit_of = np.empty(self._top, np.int64)
            bit_of[found.slots[used]] = used
            found = found.fold(follow, bit_of[leaders[follow]])
        return Bitmaps(found.words, found.slots, self._ids.now())

    def owners(self, slots: FoundSlots) -> FoundSlots | None:
        """The leader of each slot; None if every slot is its own leader."""
        if not self._followers:
            return None
        leaders = self._leader.take(slots, mode="clip")
        return np.where(leaders == _ALONE, slots, leaders)

    def _distinct(self, found: Matches) -> Matches:
        """Each subscription once per event, as its leader, if several of its clauses matched.

        Some events at a time: each (event, leader) pair writes its number to one cell. Of equal
        pairs, only the last finds its own number there.
        """
        step = max(1, _SCRATCH // self._top)
        place = np.empty(min(step, len(found)) * self._top, np.int32)
        slots = np.empty_like(found.slots)
        gone = [np.zeros(0, np.int64)]
        end = 0
        for first in range(0, len(found), step):
            starts = found.starts[first : first + step + 1]
            part = found.slots[starts[0] : starts[-1]].copy()
            leaders = self._leader.take(part, mode="clip")
            several = np.flatnonzero(leaders != _ALONE)
            if len(several):
                leaders = leaders[several]
                events = np.searchsorted(starts, several + starts[0], side="right") - 1
                keys = events * self._top + leaders
                numbers = np.arange(len(keys), dtype=np.int32)
                place[keys] = numbers
                again = several[place[keys] != numbers]
                part[several] = leaders
                part = np.delete(part, again)
                gone.append(again + starts[0])
            slots[end : end + len(part)] = part
            end += len(part)
        left_out = np.searchsorted(np.concatenate(gone), found.starts)
        return Matches(found.starts - left_out, slots[:end])

    # -- saving ------------------------------------------------------------------------------------

    def saved(self) -> dict[str, SavedPart]:
        """The whole table, in parts."""
        followers = list(self._followers.values())
        own = SavedPart(
            {
                "order": np.array(list(self._leader_of.values()), np.int64),
                "leader": self._leader,
                "free": np.array(self._free, np.int64),
                "followed": np.array(list(self._followers), np.int64),
                "follower_starts": np.cumsum([0, *map(len, followers)], dtype=np.int64),
                "followers": np.array([slot for each in followers for slot in each], np.int64),
                **self._priorities.saved(self._leader_of),
            },
            {"next": self._next, "top": self._top},
            {},
        )
        return {"roster": own, "ids": self._ids.saved(), "sources": self._sources.saved()}

    def restore(self, parts: dict[str, SavedPart], live: Slots | None = None) -> None:
        """Restore what `saved` returned. The dict of ids is built lazily.

        With `live`, the slots of the matcher, every number is checked.
        """
        self._clear()
        self._ids.restore(parts["ids"])
        self._sources.restore(parts["sources"])
        arrays, facts, _ = parts["roster"]
        order, followed, runs, starts, free = (
            array_of(arrays, name)
            for name in ("order", "followed", "followers", "follower_starts", "free")
        )
        self._leader = array_of(arrays, "leader", np.int32)
        self._next, self._top = whole(facts, "next"), whole(facts, "top")
        taken = len(order) + len(runs)
        require(self._top == taken + len(free), "'top' counts the slots in use and the free ones")
        if live is not None:
            within("order", order, 0, len(parts["ids"].arrays["number"]))
            _check_slots(live, order, runs, free, self._top)
            _check_leaders(self._leader, order, followed, runs, starts)
            self._sources.check_saved(order)
        self._free, ids = free.tolist(), self._ids.now()
        if "priority" in arrays:
            chosen, given = array_of(arrays, "prioritised"), array_of(arrays, "priority")
            alike = len(np.unique(chosen)) == len(chosen) == len(given)
            known = bool(np.isin(chosen, order).all() and given.all())
            require(alike and known, "'prioritised' are leaders, each with a priority")
            self._priorities.restore(ids.of(chosen).tolist(), given)

        def leader_of() -> dict[Id, int]:
            found = dict(zip(ids.of(order).tolist(), order.tolist(), strict=True))
            require(len(found) == len(order), "no two subscriptions have one id")
            return found

        def followers() -> dict[int, list[int]]:
            each = np.split(runs, starts[1:-1])
            return {lead: run.tolist() for lead, run in zip(followed.tolist(), each, strict=True)}

        self._leader_of = LazyDict(leader_of, len(order))
        self._followers = LazyDict(followers, len(followed))

    def _take(self, slots: int, highest: int) -> None:
        del self._free[max(0, len(self._free) - slots) :]
        self._top = max(self._top, highest + 1)

    def _lead(self, slots: Slots, leader: int) -> None:
        self._leader = grown(self._leader, int(slots.max()) + 2, _ALONE)  # and the last entry
        self._leader[slots] = leader


def _check_slots(live: Slots, order: Slots, followers: Slots, free: Slots, top: int) -> None:
    """Every slot below `top` is used once or free once, and those in use are live."""
    every = np.concatenate([order, followers, free])
    within("order, followers and free", every, 0, top)
    uses = np.bincount(every, minlength=top)
    require(bool((uses == 1).all()), "every slot is in use once, or free once")
    uses[free] = 0
    require(np.array_equal(np.flatnonzero(uses), live), "the slots in use have clauses")


def _check_leaders(
    leader: Int32s, order: Slots, followed: Slots, followers: Slots, starts: Slots
) -> None:
    """Followers and their leader know each other."""
    rising("follower_starts", starts, len(followed), len(followers))
    within("followed", followed, 0, int(order.max(initial=-1)) + 1)
    fits = np.isin(followed, order).all() and len(np.unique(followed)) == len(followed)
    require(fits and bool((np.diff(starts) > 0).all()), "'followed' are leaders")
    top = max(len(leader), int(followed.max(initial=0)) + 1, int(followers.max(initial=0)) + 1)
    right = np.full(top, _ALONE, np.int32)
    right[followed] = followed
    right[followers] = np.repeat(followed, np.diff(starts))
    fits = len(leader) == top and leader[-1] == _ALONE and np.array_equal(leader, right)
    require(fits, "'leader' has the leader of each slot with several clauses")


def check_id(id: Any) -> Id:
    """Refuse an id that is neither a 64-bit integer nor non-empty text."""
    if isinstance(id, str):
        try:
            text = Text().value(id)
        except RefusalError as why:
            raise SubscriptionError(f"the id {why}") from None
        if not text:
            raise SubscriptionError(
                "an id cannot be empty text; leave it out, and the engine gives the next number"
            )
        return text
    whole = isinstance(id, (int, np.integer)) and not isinstance(id, bool)
    if whole and INT_LOW <= id <= INT_HIGH:
        return int(id)
    raise SubscriptionError(f"an id is a 64-bit integer or text, got {show(id)}")
