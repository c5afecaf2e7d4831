"""The moment of a call: what `now` means for events that have no time of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tamis.encode.batch import EventBatch
from tamis.engine.element_engine import with_element_engines
from tamis.errors import EventError
from tamis.model.times.moments import clock, read_moment

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

Events = Iterable[Mapping[str, Any]] | EventBatch | Any
"""Events in a list or a table, or encoded ones."""
GivenMoment = datetime | str | None
"""A moment as callers give it: a `datetime`, or text in ISO 8601; None is the present."""


def depends_on_now(engine: Engine) -> bool:
    """Whether a live condition mentions `now`."""
    if engine.residuals.timed:
        return True
    return bool(engine.encoder.elements) and any(
        each.residuals.timed for each in with_element_engines(engine)
    )


def moment_of_call(engine: Engine, now: GivenMoment, events: Any = None) -> int | None:
    """The given moment, or the present one; None if nothing depends on it.

    Encoded events may have moments, which count: conditions on elements have read them already.
    """
    if isinstance(events, EventBatch) and events.moments is not None:
        if now is not None:
            raise EventError("the batch has a moment; give it to encode: encode(events, now=…)")
        return None
    if now is not None:
        return read_moment(now)
    return clock() if depends_on_now(engine) else None
