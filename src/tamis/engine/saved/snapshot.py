"""Snapshots of the parts of an engine, for pickling.

A pickler asks an engine for its parts and walks through them later; by then other threads may have
changed them. So it gets snapshots, taken under the lock. Each is pickled as the part itself.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Collection
from typing import Any

_PROTOCOL = 5


def parts_of(engine: Any, leave_out: Collection[str]) -> dict[str, Any]:
    """The parts of an engine at this moment; its lock is taken."""
    parts = {name: part for name, part in vars(engine).items() if name not in leave_out}
    for name in ("encoder", "slot_table", "patterns", "residuals"):
        parts[name] = pickled(parts[name])
    parts["matcher"] = copied(engine.matcher)
    parts["calls"] = reduced(engine.calls)
    return parts


class Snapshot:
    """A part at one moment: what its `__reduce__` returned."""

    def __init__(self, reduced: tuple[Any, ...] = ()) -> None:
        self.reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced

    def restored(self) -> Any:
        """The part itself."""
        return copy.deepcopy(self)  # goes through `__reduce__`


def pickled(part: Any) -> Snapshot:
    """A snapshot of a part of ours, which every pickler treats alike."""
    return Snapshot((pickle.loads, (pickle.dumps(part, _PROTOCOL),)))


def copied(part: Any) -> Snapshot:
    """A snapshot of a part whose class may be a user's, which picklers may treat differently."""
    made = Snapshot()
    made.reduced = copy.deepcopy(reduced(part).reduced, {id(part): made})
    return made


def reduced(part: Any) -> Snapshot:
    """A snapshot of a part whose state is a copy already."""
    function, *more = part.__reduce_ex__(_PROTOCOL)
    # Picklers refuse `__newobj__` for an object of another class than it creates.
    return Snapshot((_new if function.__name__ == "__newobj__" else function, *more))


def _new(kind: type, *given: Any) -> Any:
    return kind.__new__(kind, *given)
