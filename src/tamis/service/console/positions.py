"""Where events happen: their attribute `position`, as the operators for places read it."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

POSITION = "position"


class _PlacedEvent(msgspec.Struct):
    """What the map reads of an event."""

    position: Any = None


_decoder = msgspec.json.Decoder(_PlacedEvent)


def position_of(event: str) -> list[float] | None:
    """Longitude and latitude of an event; None if it has no position.

    >>> position_of('{"position": {"lat": 40.7, "lon": -73.9}}')
    [-73.9, 40.7]
    """
    try:
        found = _decoder.decode(event).position
        if isinstance(found, dict):
            found = found.get("coordinates", [found.get("lon"), found.get("lat")])
        longitude, latitude = (float(each) for each in found[:2])
    except (msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    return [longitude, latitude] if isfinite(longitude) and isfinite(latitude) else None
