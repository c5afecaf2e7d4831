"""Arrays of answers, and the verification of candidates against the clause table, for kernels."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int8s, Int64s
from tamis.index.clauses import ClauseArrays, holds
from tamis.index.elementary_predicates import EXACT, IF_SINGLE
from tamis.index.kernel import inlined, kernel

NOTHING = -1  # in place of an exactness: every clause is evaluated


@inlined
def answer_arrays(pairs: Int64s, width: int) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    """New arrays for the answer to a batch whose events have the starts `pairs`.

    These are the starts and slots of the answer, counters of the work done (see `Tally.count`), and
    for `bind` the first and last value by attribute. Inlined: with arrays that a call returns, the
    loops of a kernel take up to twice as long.
    """
    starts, slots = np.zeros(len(pairs), np.int64), np.empty(1024, np.int64)
    first, last = np.zeros(width, np.int64), np.zeros(width, np.int64)
    return starts, slots, np.zeros(5, np.int64), first, last


@kernel
def trusted(several: bool) -> int:
    """The exactness up to which predicates decide a clause, for an event with `several` values."""
    return EXACT if several else IF_SINGLE


@kernel
def keep_matching(
    clauses: ClauseArrays,
    first: Int64s,
    last: Int64s,
    code: Int64s,
    exact: Int8s,
    trust: int,
    out: Int64s,
    found: int,
    full: int,
) -> tuple[int, int]:
    """Keep those of the slots `out[found:full]` whose clause holds; returns the new `found`.

    Only clauses whose exactness (`exact`, by slot) is above `trust` are evaluated. The event's
    values are given as for `holds`. The second result is the number of terms evaluated.
    """
    looked = 0
    for at in range(found, full):
        slot = out[at]
        ok = exact[slot] <= trust
        if not ok:
            ok, terms = holds(clauses, slot, first, last, code)
            looked += terms
        out[found] = slot
        found += ok
    return found, looked
