"""Verification of candidates against the clause table, for kernels."""

from __future__ import annotations

from tamis.index.array_types import Int8s, Int64s
from tamis.index.clauses import ClauseArrays, holds
from tamis.index.elementary_predicates import EXACT, IF_SINGLE
from tamis.index.kernel import kernel

NOTHING = -1  # in place of an exactness: every clause is evaluated


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
    slots: Int64s,
) -> tuple[int, int]:
    """Move the slots whose clause holds to the front, in place.

    Only clauses whose exactness (`exact`, by slot) is above `trust` are evaluated. The event's
    values are given as for `holds`. Returns the number of slots kept and of terms evaluated.
    """
    kept = 0
    looked = 0
    for slot in slots:
        ok = exact[slot] <= trust
        if not ok:
            ok, terms = holds(clauses, slot, first, last, code)
            looked += terms
        slots[kept] = slot
        kept += ok
    return kept, looked
