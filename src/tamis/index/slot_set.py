"""A set of slots that a kernel can iterate over, for clauses that an index cannot hold."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.growth import HoldsArrays, grown

_FEW = 32  # more slots than this are removed in one pass


class SlotSet(HoldsArrays):
    """Slots in an array without gaps, and the place of each slot. add and remove O(1)."""

    def clear(self) -> None:
        self._slots = np.zeros(0, np.int64)
        self._place = np.zeros(0, np.int64)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def slots(self) -> Int64s:
        """The members, in no particular order."""
        return self._slots[: self._used]

    def add(self, slots: Int64s) -> None:
        """Add slots that are not members."""
        if len(slots) == 0:
            return
        self._slots = grown(self._slots, self._used + len(slots))
        self._place = grown(self._place, int(slots.max()) + 1)
        places = np.arange(self._used, self._used + len(slots))
        self._slots[places] = slots
        self._place[slots] = places
        self._used += len(slots)

    def remove(self, slots: Int64s) -> None:
        """Remove members. The last member takes the place of a removed one."""
        if len(slots) > _FEW:
            gone = np.zeros(self._used, np.bool_)
            gone[self._place[slots]] = True
            assert int(gone.sum()) == len(slots), "every slot is a member"
            kept = self.slots[~gone]
            self._used = len(kept)
            self._slots[: self._used] = kept
            self._place[kept] = np.arange(self._used)
            slots = slots[:0]
        for slot in slots.tolist():
            place, last = self._place[slot], self._slots[self._used - 1]
            assert self._slots[place] == slot, f"slot {slot} is not a member"
            self._slots[place] = last
            self._place[last] = place
            self._used -= 1
        if self._used == 0:
            self.clear()

    def check(self) -> None:
        """Raise if the two arrays disagree."""
        assert (self._place[self.slots] == np.arange(self._used)).all()
