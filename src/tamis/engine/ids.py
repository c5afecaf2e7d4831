"""The id of each slot, for answers that look them up later.

An answer keeps its slots and a `SlotIds`: the arrays below, in which the ids of those slots must
stay what they were. A slot that is new takes its id in place, as no answer knows it. Before one
that was in use takes another, the arrays are left to the answers that still look at them, if any
does, and copied: once for all answers so far, at a cost that does not depend on what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.engine.saved_part import MappedTexts, SavedPart
from tamis.match.answers import SlotIds

Id = int | str


class IdTable:
    """Ids by slot: numbers in one array, texts in another once there are any."""

    def __init__(self) -> None:
        self._number = np.zeros(0, np.int64)
        self._text: NDArray[np.object_] | None = None  # None where the id is a number
        self._mapped: MappedTexts | None = None  # the same, from a file, until something changes
        self._texts = 0  # ids that are text
        self._top = 0  # slots from here on have never had an id
        self._seen: ReferenceType[SlotIds] | None = None  # what answers look at, while any does

    def now(self) -> SlotIds:
        """The ids of this moment."""
        ids = self._seen() if self._seen is not None else None
        if ids is None:
            texts = self._text if self._mapped is None else self._mapped
            ids = SlotIds(self._number, texts if self._texts else None)
            self._seen = ref(ids)
        return ids

    def put(self, slot: int, id: Id) -> None:
        """Give a slot its id."""
        self._prepare(slot, slot, isinstance(id, str))
        if isinstance(id, str):
            assert self._text is not None
            self._text[slot] = id
            self._texts += 1
        else:
            self._number[slot] = id
            if self._text is not None:
                self._text[slot] = None

    def put_all(self, slots: NDArray[np.int64], ids: Sequence[Id]) -> None:
        """Give many slots their ids, which are all numbers or all text."""
        texts = isinstance(ids[0], str)
        self._prepare(int(slots.min()), int(slots.max()), texts)
        if texts:
            assert self._text is not None
            self._text[slots] = ids
            self._texts += len(ids)
        else:
            self._number[slots] = ids
            if self._text is not None:
                self._text[slots] = None

    def drop(self, slot: int, id: Id) -> None:
        """A slot is in use no more. A number may stay; a text takes memory."""
        if isinstance(id, str):
            self._unmap()
            self._leave_seen()
            assert self._text is not None
            self._text[slot] = None
            self._texts -= 1

    def _prepare(self, low: int, high: int, texts: bool) -> None:
        """Make room for slots from `low` to `high`, without changing what answers look at."""
        self._unmap()
        if low < self._top or (texts and not self._texts):  # so far, ids were plain numbers
            self._leave_seen()
        if high >= len(self._number):
            more = max(high + 1, 2 * len(self._number), 16) - len(self._number)
            self._number = np.append(self._number, np.zeros(more, np.int64))
            if self._text is not None:
                self._text = np.append(self._text, np.full(more, None))
            self._seen = None  # answers so far look at the shorter arrays
        if texts and self._text is None:
            self._text = np.full(len(self._number), None)
        self._top = max(self._top, high + 1)

    def _leave_seen(self) -> None:
        """Leave the arrays to the answers that look at them, if any does, and go on with copies."""
        if self._seen is not None and self._seen() is not None:
            self._number = self._number.copy()
            self._text = None if self._text is None else self._text.copy()
        self._seen = None

    def saved(self) -> SavedPart:
        """All ids. A slot that is free has any."""
        arrays = {"number": self._number[: self._top]}
        if self._mapped is not None:
            texts = self._mapped.column
        elif self._texts and self._text is not None:
            texts = pa.array(self._text[: self._top], pa.large_string())
        else:
            return SavedPart(arrays, {"texts": 0}, {})
        return SavedPart(arrays, {"texts": self._texts}, {"texts": {"text": texts}})

    def restore(self, saved: SavedPart) -> None:
        """Take over what `saved` gave."""
        self._number, self._texts = saved.arrays["number"], saved.facts["texts"]
        self._top = len(self._number)
        if self._texts:
            self._mapped = MappedTexts(saved.columns["texts"]["text"])

    def _unmap(self) -> None:
        if self._mapped is not None:
            self._text, self._mapped = self._mapped.all(), None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}  # an answer does not travel with the table
