"""ClauseParts of an engine as they are now, for whoever pickles it.

A pickler asks an engine for its parts, and goes through them after that; by then other threads may
have changed one part or another. So what it gets are parts that change no more, made while nobody
else has the turn. Each of them is pickled as the part itself.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

_PROTOCOL = 5


class Snapshot:
    """A part as it was, by what it is made again of: what `__reduce__` returns."""

    def __init__(self, reduced: tuple[Any, ...] = ()) -> None:
        self.reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced

    def thawed(self) -> Any:
        """The part itself."""
        return copy.deepcopy(self)  # which asks `__reduce__`


def in_bytes(part: Any) -> Snapshot:
    """A part of ours: it has nothing that picklers differ in."""
    return Snapshot((pickle.loads, (pickle.dumps(part, _PROTOCOL),)))


def copied(part: Any) -> Snapshot:
    """A part of a class that may be somebody else's, which each pickler has its own way with."""
    made = Snapshot()
    made.reduced = copy.deepcopy(as_told(part).reduced, {id(part): made})
    return made


def as_told(part: Any) -> Snapshot:
    """A part whose state, as it gives it, is a copy already."""
    function, *more = part.__reduce_ex__(_PROTOCOL)
    # Picklers refuse this function for what is of another class than it makes.
    return Snapshot((_new if function.__name__ == "__newobj__" else function, *more))


def _new(kind: type, *given: Any) -> Any:
    return kind.__new__(kind, *given)
