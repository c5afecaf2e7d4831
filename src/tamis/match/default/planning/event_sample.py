"""The events that a plan was made for and those seen since, and when to compare the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Pairs

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
_EVENTS = 1024  # of a sample
_TOO_FEW = 64  # events to make a plan for, once there are more
_LOOK = 32_768  # events from one look to the next at most
_RECENT = 256  # batches that are remembered until the next look
_DRIFT = 0.25  # share of events by which two samples differ much
_ENOUGH = 64  # values of an attribute, to say where they lie


class EventSample(NamedTuple):
    """Pairs of some events."""

    attribute: NDArray[np.int32]
    code: Int64s
    events: int

    @staticmethod
    def of(pairs: Pairs) -> EventSample:
        """The first events of a batch."""
        events = min(len(pairs.starts) - 1, _EVENTS)
        part = slice(int(pairs.starts[0]), int(pairs.starts[events]))
        return EventSample(pairs.attribute[part].copy(), pairs.code[part].copy(), events)

    def joined(self, *others: EventSample) -> EventSample:
        """All of them, or the last events where they are many."""
        kept: list[EventSample] = []
        room = _EVENTS
        for each in (*others[::-1], self):
            keep = min(each.events, room)
            part = slice(len(each.code) - len(each.code) * keep // max(1, each.events), None)
            kept.append(EventSample(each.attribute[part], each.code[part], keep))
            room -= keep
        kept.reverse()
        return EventSample(
            np.concatenate([each.attribute for each in kept]),
            np.concatenate([each.code for each in kept]),
            _EVENTS - room,
        )

    def differs(self, other: Outline) -> bool:
        """Whether events have changed so much that a plan for the others may be a bad one.

        Compared is how often each attribute is bound, and the quartiles of its values.
        """
        width = len(other.many)
        asked = self.attribute < width
        attribute, code = self.attribute[asked], self.code[asked]
        many = np.bincount(attribute, minlength=width)
        share = many / max(1, self.events) - other.many / max(1, other.events)
        # Two samples of the same events differ too, the smaller they are the more.
        chance = 2 / max(1, min(self.events, other.events)) ** 0.5
        if (np.abs(share) > _DRIFT + chance).any():
            return True
        enough = np.minimum(many, other.many) >= _ENOUGH
        for cuts, below in zip(other.quartiles, other.below, strict=True):
            here = np.bincount(attribute, code < cuts[attribute], width)
            if (np.abs(here / np.maximum(many, 1) - below)[enough] > _DRIFT).any():
                return True
        return False

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For saving."""
        return {"sample.attribute": self.attribute, "sample.code": self.code}

    @staticmethod
    def restored(arrays: Mapping[str, NDArray[Any]], events: int) -> EventSample:
        """What `arrays` gave."""
        return EventSample(arrays["sample.attribute"], arrays["sample.code"], events)


class Outline(NamedTuple):
    """What later samples are compared with, by attribute: it is the same for all of them."""

    events: int
    many: Int64s  # values
    quartiles: Int64s  # a row for each of the three
    below: Floats  # the share of values below each

    @staticmethod
    def of(sample: EventSample, width: int) -> Outline:
        """Of a sample, for a table of so many attributes."""
        many = np.bincount(sample.attribute[sample.attribute < width], minlength=width)
        quartiles, below = np.zeros((3, width), np.int64), np.zeros((3, width))
        for a in np.flatnonzero(many).tolist():
            code = np.sort(sample.code[sample.attribute == a])
            quartiles[:, a] = code[[len(code) // 4, len(code) // 2, 3 * len(code) // 4]]
            below[:, a] = np.searchsorted(code, quartiles[:, a]) / len(code)
        return Outline(sample.events, many, quartiles, below)


def no_sample() -> EventSample:
    """Of no events."""
    return EventSample(np.zeros(0, np.int32), np.zeros(0, np.int64), 0)


class EventWatch:
    """What a matcher has seen of events, and whether its plan is still good for them."""

    def __init__(self) -> None:
        self.planned_for = self.sample = no_sample()
        self._recent: list[EventSample] = []  # the latest since the last look
        self._seen = 0  # events since then
        self._matched = 0  # events since the plan
        self._outline: Outline | None = None  # of those that it was made for

    def see(self, batch: EventBatch, *, must: bool) -> bool:
        """Take note of a batch; whether it is time to look, as it is where one `must`."""
        self._seen += len(batch)
        self._matched += len(batch)
        due = self._due()
        if (must or self._seen >= due - _EVENTS) and len(self._recent) < _RECENT:
            self._recent.append(EventSample.of(batch.pairs))
        if not must and self._seen < due:
            return False
        self.sample = self.sample.joined(*self._recent)
        self._seen = 0
        self._recent.clear()
        return True

    def planned(self, sample: EventSample) -> None:
        """A plan was made for these events."""
        self.planned_for, self._outline, self._matched = sample, None, 0

    @property
    def enough(self) -> bool:
        """Whether the plan was made for the first few events, and there are enough by now."""
        return self.planned_for.events < _TOO_FEW <= self.sample.events

    def differs(self, width: int) -> bool:
        """Whether events have become others, of a table of so many attributes."""
        if self._outline is None or len(self._outline.many) != width:
            self._outline = Outline.of(self.planned_for, width)
        return self.sample.differs(self._outline)

    def _due(self) -> int:
        """After how many events the next look is due.

        The first batches may be of any size, and a plan for too few events must not outlive them.
        Later, to look should take little beside matching: the longer a plan has been good, the
        longer it is until the next look.
        """
        if self.planned_for.events < _TOO_FEW:
            return _TOO_FEW - self.sample.events
        return min(max(2 * self.sample.events, self._matched // 4), _LOOK)
