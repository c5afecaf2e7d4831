"""Ordered labels for text: an order-preserving integer for every constant of the subscriptions.

The constants of an attribute are sorted, each with an int64 label. Labels are sparse, so that a new
constant fits between its neighbours. Any other text gets the code just above the label of the
constant below it, strictly between its neighbours. When a gap is used up, the labels around it are
spread over the smallest range that is not crowded (tag-range relabelling, Bender et al. 2002). The
caller learns which labels moved, so that codes already in use can follow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import islice, pairwise
from operator import lt
from typing import NamedTuple

import numpy as np

from tamis.encode.intervals import TEXT_BOTTOM, TEXT_TOP, TextCut
from tamis.errors import SavedIndexError
from tamis.files.arrays import Bools, Int64s
from tamis.files.saved_checks import MOST, require, within

_SPACE = 1 << 61  # labels are within ±_SPACE, so their neighbours stay in the int64 range
_ROOM = 4  # least gap that fits a label and a code on either side
_STEP = 1 << 32  # gap at the ends, where constants often arrive in order
_RUN = 6  # constants that arrive in order take 1 / 2^_RUN of the gap each
_MANY = 64  # from this many new constants on, they are merged together
_LEAST_BITS = 20  # smallest range to spread: a smaller one would soon be full again
_CROWDED = 1.5  # how fast the tolerated density falls as the range doubles
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class Moved(NamedTuple):
    """Labels before and after a relabelling, both ascending."""

    old: Int64s
    new: Int64s

    def follow_lower(self, codes: Int64s) -> Int64s:
        """Move lower ends of intervals; a lower end is a label or one above it."""
        wanted = np.maximum(codes, LOWEST + 1) - 1
        return self._follow(codes, np.searchsorted(self.old, wanted), 0, 1)

    def follow_upper(self, codes: Int64s) -> Int64s:
        """Move upper ends; an upper end is a label or one below it."""
        return self._follow(codes, np.searchsorted(self.old, codes), -1, 0)

    def _follow(self, codes: Int64s, at: Int64s, least: int, most: int) -> Int64s:
        at = np.minimum(at, len(self.old) - 1)
        outer = (codes == LOWEST) | (codes == HIGHEST)  # unbounded ends; avoids overflow
        beside = np.where(outer, 0, codes) - self.old[at]
        moved = ~outer & (beside >= least) & (beside <= most)
        return np.where(moved, self.new[at] + beside, codes)


class SortedConstants(NamedTuple):
    """Constants in order, with their labels.

    Events may be encoded while another thread changes labels. So both lists are replaced together.
    A new constant enters them in place, its label first: codes may then be wrong, but not fail, and
    the batch is out of date when it is matched.
    """

    texts: list[str]
    labels: list[int]

    def code_between(self, text: str) -> int:
        """The code of a text that is no constant."""
        at = bisect_left(self.texts, text)
        if at:
            return self.labels[at - 1] + 1
        return self.labels[0] - 1 if self.labels else 0

    def between(self, low: str, high: str) -> tuple[int, list[str]]:
        """The constants above `low` and below `high`, and the place of the first."""
        first = bisect_right(self.texts, low)
        return first, self.texts[first : bisect_left(self.texts, high)]

    def codes_at(self, places: Int64s, exact: Bools) -> Int64s:
        """The codes of the constants at these places, or, if not exact, of texts below them."""
        labels = np.array([*self.labels, 0], np.int64)
        below = np.append(labels[:1] - (len(labels) > 1), labels[:-1] + 1)
        codes: Int64s = below[places]
        codes[exact] = labels[places[exact]]
        return codes


class LabelState(NamedTuple):
    """The state of labels, to be saved. `uses` is 0 for an unused constant."""

    texts: list[str]
    labels: Int64s
    uses: Int64s
    last: str | None
    side: int


class Labels:
    """The constants of one text attribute and their labels."""

    def __init__(self) -> None:
        self.constants = SortedConstants([], [])
        self.known: dict[str, int] = {}  # the label of each constant
        self._uses: dict[str, int] = {}
        self._last: str | None = None  # the constant that came last,
        self._side = 0  # and its side of the one before
        self.version = 0  # increases whenever the code of some text changes

    def __len__(self) -> int:
        return len(self.constants.texts)

    def add(self, counted: Mapping[str, int]) -> Moved | None:
        """Count uses of texts and label new ones; return the labels that moved."""
        fresh = [text for text in counted if text not in self.known]
        for text, uses in counted.items():
            self._uses[text] = self._uses.get(text, 0) + uses
        if not fresh:
            return None
        self.version += 1
        before: dict[str, int] = {}  # old labels of constants that moved
        for text in self._merge(sorted(fresh)) if len(fresh) > _MANY else fresh:
            self._insert(text, before)
        for text in fresh:
            before.pop(text, None)  # a new constant has no old label
        pairs = sorted((old, self.known[text]) for text, old in before.items())
        pairs = [pair for pair in pairs if pair[0] != pair[1]]
        return Moved(*np.array(pairs, np.int64).T.copy()) if pairs else None

    def drop(self, texts: Iterable[str]) -> None:
        """Release one use of each text.

        Unused constants stay until they are half of all: their labels are still in order, so no
        code changes, and dropping many at once is cheap.
        """
        for text in texts:
            uses = self._uses.get(text, 0) - 1
            if uses < 0:
                raise _unknown()
            if uses:
                self._uses[text] = uses
            else:
                del self._uses[text]
        if len(self._uses) * 2 < len(self):
            kept = [text for text in self.constants.texts if text in self._uses]
            self.known = {text: self.known[text] for text in kept}
            self.constants = SortedConstants(kept, list(self.known.values()))

    def lower(self, cut: TextCut) -> int:
        """The lowest code of an interval that starts at a cut."""
        if cut == TEXT_BOTTOM:
            return LOWEST
        return self.known[cut[1]] + cut[2]

    def upper(self, cut: TextCut) -> int:
        """The highest code of an interval that ends at a cut."""
        if cut == TEXT_TOP:
            return HIGHEST
        return self.known[cut[1]] - 1 + cut[2]

    def codes(self, texts: Iterable[str]) -> list[int]:
        """The codes of the texts of an event."""
        known, other = self.known, self.constants.code_between
        return [known[text] if text in known else other(text) for text in texts]

    def code(self, text: str) -> int:
        """The code of one text of an event."""
        found = self.known.get(text)
        return self.constants.code_between(text) if found is None else found

    def lower_text(self, code: int) -> str:
        """The constant with this `lower` code: its label is the code or one below it."""
        return self._at(bisect_left(self.constants.labels, code - 1))

    def upper_text(self, code: int) -> str:
        """The constant with this `upper` code: its label is the code or one above it."""
        return self._at(bisect_left(self.constants.labels, code))

    def _at(self, place: int) -> str:
        if place == len(self):
            raise _unknown()
        return self.constants.texts[place]

    def check(self, uses: Mapping[str, int] | None = None) -> None:
        """Raise if an invariant is broken, or the uses differ from these."""
        assert uses is None or self._uses == uses
        texts, labels = self.constants
        assert texts == sorted(set(texts)), "constants are sorted and distinct"
        assert set(texts) == self.known.keys() >= self._uses.keys()
        assert [self.known[text] for text in texts] == labels
        gaps = [b - a for a, b in pairwise(labels)]
        assert all(gap >= _ROOM // 2 for gap in gaps), "neighbours leave room for a code between"
        assert all(abs(label) <= _SPACE for label in labels)

    def _insert(self, text: str, before: dict[str, int]) -> None:
        texts, labels = self.constants
        at = bisect_left(texts, text)
        run = self._direction(at)
        while True:
            low = labels[at - 1] if at else None
            high = labels[at] if at < len(labels) else None
            if low is None and high is None:
                label = 0
            elif high is None:
                assert low is not None
                label = low + min(_STEP, (_SPACE - low) // 2)
            elif low is None:
                label = high - min(_STEP, (high + _SPACE) // 2)
            elif run > 0:
                label = low + max(_ROOM // 2, (high - low) >> _RUN)
            elif run < 0:
                label = high - max(_ROOM // 2, (high - low) >> _RUN)
            else:
                label = (low + high) // 2
            roomy = (low is None or label - low >= _ROOM // 2) and (
                high is None or high - label >= _ROOM // 2
            )
            if roomy:
                break
            self._spread(low if low is not None else -_SPACE, before)
        labels.insert(at, label)
        texts.insert(at, text)
        self.known[text] = label
        self._last = text

    def _direction(self, at: int) -> int:
        """+1 or -1 if constants arrive in order, each next to the one before.

        A run takes a small part of the gap each time; halving it would use it up in sixty steps.
        """
        side, texts = 0, self.constants.texts
        if at and texts[at - 1] == self._last:
            side = 1
        elif at < len(texts) and texts[at] == self._last:
            side = -1
        run = side if side == self._side else 0
        self._side = side
        return run

    def _merge(self, fresh: list[str]) -> list[str]:
        """Label many sorted texts in one pass, evenly in their gaps; return those without room."""
        left: list[str] = []
        texts: list[str] = []
        labels: list[int] = []
        known = self.constants
        places = [bisect_left(known.texts, text) for text in fresh]
        start = 0
        while start < len(fresh):
            end = start + 1
            while end < len(fresh) and places[end] == places[start]:
                end += 1
            at = places[start]
            low = known.labels[at - 1] if at else -_SPACE
            high = known.labels[at] if at < len(self) else _SPACE
            pitch = (high - low) // (end - start + 1)
            if pitch < _ROOM:
                left.extend(fresh[start:end])
            else:
                texts.extend(fresh[start:end])
                labels.extend(low + pitch * place for place in range(1, end - start + 1))
            start = end
        self.known.update(zip(texts, labels, strict=True))
        # Both are sorted runs in the same order: sorting merges them in one pass.
        self.constants = SortedConstants(sorted(known.texts + texts), sorted(known.labels + labels))
        return left

    def _spread(self, around: int, before: dict[str, int]) -> None:
        """Spread the labels of the smallest aligned range about `around` that is not crowded."""
        texts, labels = self.constants
        bits = _LEAST_BITS
        while True:
            size = 1 << bits
            start = (around + _SPACE) // size * size - _SPACE
            first, last = bisect_left(labels, start), bisect_right(labels, start + size - 1)
            # A range of 2^b may hold (2/_CROWDED)^b labels: a larger one must be emptier.
            whole = size >= 2 * _SPACE
            if (last - first) * _ROOM * 2 <= size and (
                last - first <= (2 / _CROWDED) ** bits or whole
            ):
                break
            bits += 1
        pitch = size // (last - first + 1)
        for place, at in enumerate(range(first, last), 1):
            before.setdefault(texts[at], labels[at])
            labels[at] = start + place * pitch
            self.known[texts[at]] = labels[at]

    # -- saving ------------------------------------------------------------------------------------

    def state(self) -> LabelState:
        """The whole state, to be saved."""
        texts, labels = self.constants
        return LabelState(
            texts,
            np.array(labels, np.int64),
            np.array([self._uses.get(text, 0) for text in texts], np.int64),
            self._last,
            self._side,
        )

    @classmethod
    def restored(cls, state: LabelState, *, verify: bool = True) -> Labels:
        """Labels from a saved state."""
        made = cls()
        require(len(state.texts) == len(state.labels) == len(state.uses), "texts have labels")
        fits = (state.last is None or isinstance(state.last, str)) and state.side in (-1, 0, 1)
        require(fits, "'last' is a text and 'side' is -1, 0 or 1")
        if verify:
            within("label", state.labels, -_SPACE, _SPACE + 1)
            within("uses", state.uses, 0, MOST)
            fits = bool((np.diff(state.labels) >= _ROOM // 2).all())
            require(fits and None not in state.texts, "labels leave room between them")
            fits = all(map(lt, state.texts, islice(state.texts, 1, None)))
            require(fits, "constants are sorted and distinct")
        made.constants = SortedConstants(state.texts, state.labels.tolist())
        made.known = dict(zip(*made.constants, strict=True))
        uses = zip(state.texts, state.uses.tolist(), strict=True)
        made._uses = {text: many for text, many in uses if many}
        made._last, made._side = state.last, state.side
        return made


def _unknown() -> SavedIndexError:
    return SavedIndexError(
        "the saved index is inconsistent: a clause has a text constant that is not counted"
    )
