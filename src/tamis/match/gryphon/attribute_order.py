"""A total order of attributes, most popular first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.index.growth import HoldsArrays


class AttributeOrder(HoldsArrays):
    """Attributes and their places in the order. New ones go to the end; places never change."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most  # maximum number of places; later attributes get none
        self.place = np.zeros(0, np.int64)  # by attribute; -1: no place
        self.attributes = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.attributes)

    def admit(self, uses: NDArray[Any]) -> None:
        """Assign places to attributes without one; `uses` has one entry per use of an attribute."""
        if len(uses) and int(uses.max()) < len(self.place) and (self.place[uses] >= 0).all():
            return
        counts = np.bincount(uses, minlength=len(self.place))
        if len(counts) > len(self.place):
            fresh = np.full(len(counts) - len(self.place), -1, np.int64)
            self.place = np.concatenate([self.place, fresh])
        new = np.flatnonzero((counts > 0) & (self.place < 0))
        new = new[np.argsort(-counts[new], kind="stable")]
        if self._most is not None:
            new = new[: self._most - len(self.attributes)]
        self.place[new] = np.arange(len(new)) + len(self.attributes)
        self.attributes = np.concatenate([self.attributes, new])

    def check(self) -> None:
        """Raise if the two arrays disagree."""
        assert (self.place[self.attributes] == np.arange(len(self.attributes))).all()
        assert int((self.place >= 0).sum()) == len(self.attributes)
