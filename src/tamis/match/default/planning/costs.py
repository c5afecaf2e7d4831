"""The cost of each step in nanoseconds, from which `routes` chooses.

With few clauses any plan will do, so the usual (default) costs apply and a small engine starts
immediately. With many clauses the steps are measured on this machine, once per process (see
`calibration`). Measured costs are clamped to within a factor of four of the usual ones, so that a
machine that was briefly busy cannot spoil a plan.

With TAMIS_COSTS=usual in the environment, the usual costs always apply. The same clauses and events
then give the same plan on every machine.
"""

from __future__ import annotations

import os
from threading import Lock

import numpy as np

from tamis.errors import MatcherError
from tamis.files.arrays import Floats
from tamis.match.default.planning.calibration import MeasuredCosts, measure
from tamis.match.default.structure.routes import DENSE_FROM

NAMES = MeasuredCosts._fields  # names of the first costs, in order
USUAL = MeasuredCosts(probe=20.0, visit=3.0, verify=25.0, line=0.5, check=12.0, bit=0.6)
_VARIABLE = "TAMIS_COSTS"
_FEW = 20_000  # with fewer clauses nothing is measured
_FACTOR = 4.0
_DENSE_FROM = 1 / 64  # share of events
_lock = Lock()
_known: list[MeasuredCosts] = []  # the costs of this machine, once measured
os.register_at_fork(after_in_child=lambda: globals().update(_lock=Lock()))  # may be held at a fork


def costs(clauses: int) -> Floats:
    """The costs for that many clauses: `NAMES`, then those that a layout fills in (`routes`)."""
    return _array(USUAL if _usual() or clauses < _FEW else measured())


def measured() -> MeasuredCosts:
    """The costs of this machine. Measured on the first call."""
    with _lock:
        if not _known:
            _known.append(believed(measure()))
        return _known[0]


def believed(found: MeasuredCosts) -> MeasuredCosts:
    """The measured costs, clamped."""
    limits = zip(found, USUAL, strict=True)
    return MeasuredCosts(
        *(min(max(one, usual / _FACTOR), usual * _FACTOR) for one, usual in limits)
    )


def named(array: Floats) -> dict[str, float]:
    """The costs of an array, by name."""
    return dict(zip(NAMES, array.tolist(), strict=False))


def _usual() -> bool:
    wanted = os.environ.get(_VARIABLE) or "measured"
    if wanted not in ("usual", "measured"):
        raise MatcherError(f"{_VARIABLE} must be 'usual' or 'measured', got {wanted!r}")
    return wanted == "usual"


def _array(found: MeasuredCosts) -> Floats:
    array = np.zeros(DENSE_FROM + 1)
    array[: len(found)] = found
    array[DENSE_FROM] = _DENSE_FROM
    return array
