"""The NumPy yardstick for events that come one at a time, as dicts.

The yardstick of batches gets encoded events. Here the encoding is a part of the time: one search in
a sorted list for each attribute.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.lab.instruments.yardstick import Yardstick


class DictYardstick(Yardstick):
    """Brute force in NumPy over dicts, which have no nulls."""

    def __init__(self, subscriptions: pa.Table, events: pa.Table) -> None:
        """`events` are a sample that decides the order of the attributes."""
        super().__init__(subscriptions, events)
        self._constants = [
            (column.scale.name, column.scale.constants.tolist()) for column in self._columns
        ]

    def match_dict(self, event: Mapping[str, Any]) -> list[int]:
        """The rows of the subscriptions that match an event."""
        ranks = [_rank(constants, event.get(name)) for name, constants in self._constants]
        found: list[int] = self.match(np.array(ranks)).tolist()
        return found


def _rank(constants: list[Any], value: Any) -> int:
    """0 is null, 2i + 2 is constant i, odd numbers lie between."""
    if value is None:
        return 0
    at = bisect_left(constants, value)
    return 2 * at + (2 if at < len(constants) and constants[at] == value else 1)
