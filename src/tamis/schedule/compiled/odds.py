"""Probabilities that stay away from 0 and 1, so that a division by them is safe."""

from __future__ import annotations

from tamis.index.kernel import inlined
from tamis.schedule.compiled.graph import LEAST


@inlined
def bounded(chance: float, doubt: float) -> float:
    """The optimistic end of an uncertain probability."""
    return min(max(chance + doubt, LEAST), 1 - LEAST)
