"""The subscriptions whose notifications somebody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.store.subscription_snapshot import Id

_FEW = 1000  # ids from which on a set is worth its memory


class WantedIds:
    """Ids of subscriptions, to choose pairs by. They are made once, and asked for each page."""

    def __init__(self, ids: Iterable[Id]) -> None:
        self._ids = ids if isinstance(ids, list | set) else list(ids)
        self._set: set[Id] | None = self._ids if isinstance(self._ids, set) else None
        self._array: pa.Array | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._ids)

    def chosen(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Which of some ids are wanted. The work is that of the fewer ones."""
        if len(self._ids) > _FEW + 4 * len(ids):  # Arrow would hash all of them at each call
            if self._set is None:
                self._set = set(self._ids)
            wanted = self._set
            return np.fromiter((id in wanted for id in ids.to_pylist()), bool, len(ids))
        if self._array is None or len(self._array) != len(self._ids):
            self._array = pa.array(list(self._ids), ids.type)
        return np.asarray(pc.is_in(ids, value_set=self._array))
