"""The id of each slot. Results resolve ids lazily and keep the ids as of the match.

A result keeps its slots and a `SlotIds`, which refers to the arrays below. The ids of the result's
slots must not change in them. A new slot gets its id in place, since no result refers to it. Before
a used slot gets another id, the arrays are copied if a result still refers to them: once for all
results so far, at a cost that does not depend on their size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.engine.saved.saved_part import MappedTexts, SavedPart, texts
from tamis.files.arrays import Int64s
from tamis.files.saved_checks import array_of, require, whole
from tamis.match.answers import FoundSlots, SlotIds

Id = int | str
_FEW = 16  # ids


class IdTable:
    """Ids by slot: numbers in one array, and texts in another if there are any."""

    def __init__(self) -> None:
        self._number = np.zeros(0, np.int64)
        self._text: NDArray[np.object_] | None = None  # None for an id that is a number
        self._mapped: MappedTexts | None = None  # the same, from a file, until something changes
        self._texts = 0  # number of ids that are text
        self._top = 0  # slots from here on have never had an id
        self._seen: ReferenceType[SlotIds] | None = None  # what results refer to, while any does

    def now(self) -> SlotIds:
        """The ids as of now."""
        ids = self._seen() if self._seen is not None else None
        if ids is None:
            known = self._text if self._mapped is None else self._mapped
            ids = SlotIds(self._number, known if self._texts else None)
            self._seen = ref(ids)
        return ids

    def listed(self, slots: FoundSlots) -> list[Id]:
        """The ids of slots as of now, resolved at once."""
        if not self._texts:
            found: list[Id] = self._number[slots].tolist()
        elif len(slots) > _FEW or self._text is None:
            found = self.now().of(slots).tolist()
        else:  # a few steps of NumPy take longer
            numbers, texts = self._number, self._text
            found = [
                int(numbers[slot]) if texts[slot] is None else texts[slot]
                for slot in slots.tolist()
            ]
        return found

    def put(self, slot: int, id: Id) -> None:
        """Set the id of a slot."""
        self._put(slot, id, slot, slot, isinstance(id, str), 1)

    def put_all(self, slots: Int64s, ids: Sequence[Id]) -> None:
        """Set the ids of many slots: all numbers or all text."""
        low, high = int(slots.min()), int(slots.max())
        self._put(slots, ids, low, high, isinstance(ids[0], str), len(ids))

    def _put(self, slots: Any, ids: Any, low: int, high: int, text: bool, many: int) -> None:
        self._prepare(low, high, text)
        if text:
            assert self._text is not None
            self._text[slots] = ids
            self._texts += many
        else:
            self._number[slots] = ids
            if self._text is not None:
                self._text[slots] = None

    def drop(self, slot: int, id: Id) -> None:
        """Forget the id of a slot. A number may stay; a text takes memory."""
        if isinstance(id, str):
            self._unmap()
            self._copy_on_write()
            assert self._text is not None
            self._text[slot] = None
            self._texts -= 1

    def _prepare(self, low: int, high: int, text: bool) -> None:
        """Make room for slots from `low` to `high`, without changing what results refer to."""
        self._unmap()
        if low < self._top or (text and not self._texts):  # results so far know numbers only
            self._copy_on_write()
        if high >= len(self._number):
            more = max(high + 1, 2 * len(self._number), 16) - len(self._number)
            self._number = np.append(self._number, np.zeros(more, np.int64))
            if self._text is not None:
                self._text = np.append(self._text, np.full(more, None))
            self._seen = None  # results so far refer to the shorter arrays
        if text and self._text is None:
            self._text = np.full(len(self._number), None)
        self._top = max(self._top, high + 1)

    def _copy_on_write(self) -> None:
        """Copy on write: leave the arrays to the results that refer to them, if any."""
        if self._seen is not None and self._seen() is not None:
            self._number = self._number.copy()
            self._text = None if self._text is None else self._text.copy()
        self._seen = None

    def check(self, ids: Mapping[int, Id]) -> None:
        """Raise if these are not the ids by slot."""
        slots = np.fromiter(ids, np.int64, len(ids))
        assert self.now().of(slots).tolist() == list(ids.values())
        texts = [slot for slot, id in ids.items() if isinstance(id, str)]
        assert self._texts == len(texts)
        if self._text is not None:
            assert np.flatnonzero(self._text != None).tolist() == sorted(texts)  # noqa: E711

    def saved(self) -> SavedPart:
        """All ids. A free slot may have any."""
        arrays = {"number": self._number[: self._top]}
        if self._mapped is not None:
            column = self._mapped.column
        elif self._texts and self._text is not None:
            column = pa.array(self._text[: self._top], pa.large_string())
        else:
            return SavedPart(arrays, {"texts": 0}, {})
        return SavedPart(arrays, {"texts": self._texts}, {"texts": {"text": column}})

    def restore(self, saved: SavedPart) -> None:
        """Restore what `saved` returned."""
        self._number = array_of(saved.arrays, "number")
        self._top = len(self._number)
        self._texts = whole(saved.facts, "texts", most=self._top)
        if self._texts:
            column = texts(saved, "texts", "text")
            require(len(column) == self._top, "there is one text for each number of an id")
            self._mapped = MappedTexts(column)

    def _unmap(self) -> None:
        if self._mapped is not None:
            self._text, self._mapped = self._mapped.all(), None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}  # results are not pickled with the table
