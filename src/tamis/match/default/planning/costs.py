"""What each step takes, in nanoseconds, for `routes` to choose by.

Where clauses are few, any plan will do, and the usual costs are taken: a small engine starts at
once. Where they are many, the steps are measured on this machine, once a process (`measuring`).
What is measured is believed within a factor of four of what is usual, so that a machine that was
busy for a moment cannot spoil a plan.

With TAMIS_COSTS=usual in the environment the usual costs are taken always, and the same clauses and
events give the same plan on every machine.
"""

from __future__ import annotations

import os
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MatcherError
from tamis.match.default.planning.calibration import MeasuredCosts, measure
from tamis.match.default.structure.routes import DENSE_FROM

Floats = NDArray[np.float64]
NAMES = MeasuredCosts._fields  # of the first costs, in their order
USUAL = MeasuredCosts(probe=20.0, visit=3.0, verify=25.0, line=0.5, check=12.0, bit=0.6)
_VARIABLE = "TAMIS_COSTS"
_FEW = 20_000  # clauses: up to there nothing is measured
_FACTOR = 4.0
_DENSE_FROM = 1 / 64  # of events
_lock = Lock()
_known: list[MeasuredCosts] = []  # the costs of this machine, once they are measured
os.register_at_fork(after_in_child=lambda: globals().update(_lock=Lock()))  # it may be held


def costs(clauses: int) -> Floats:
    """The costs for so many clauses: `NAMES`, then what a layout fills in; see `routes`."""
    return _array(USUAL if _usual() or clauses < _FEW else measured())


def measured() -> MeasuredCosts:
    """The costs of this machine."""
    with _lock:
        if not _known:
            _known.append(believed(measure()))
        return _known[0]


def believed(found: MeasuredCosts) -> MeasuredCosts:
    """What was measured, within bounds."""
    limits = zip(found, USUAL, strict=True)
    return MeasuredCosts(
        *(min(max(one, usual / _FACTOR), usual * _FACTOR) for one, usual in limits)
    )


def named(array: Floats) -> dict[str, float]:
    """The costs of an array by name."""
    return dict(zip(NAMES, array.tolist(), strict=False))


def _usual() -> bool:
    wanted = os.environ.get(_VARIABLE) or "measured"
    if wanted not in ("usual", "measured"):
        raise MatcherError(f"{_VARIABLE} is 'usual' or 'measured', not {wanted!r}")
    return wanted == "usual"


def _array(found: MeasuredCosts) -> Floats:
    array = np.zeros(DENSE_FROM + 1)
    array[: len(found)] = found
    array[DENSE_FROM] = _DENSE_FROM
    return array
