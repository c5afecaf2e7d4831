"""The approximation with a guarantee."""

from __future__ import annotations

from tamis.schedule.base import ClauseByClause
from tamis.schedule.compiled.clause_order import SEQUENTIAL


class Sequential(ClauseByClause):
    """Pick an undecided clause, evaluate all its predicates that anyone needs; and again.

    The loop over the predicates goes on after the clause picked has died. That is what the proof
    needs: whatever algorithm decides the clause has to evaluate one of these predicates, this one
    evaluates at most d of them, and no two picks have one in common. So it takes at most d times as
    many evaluations as the best, d being the length of the longest clause; with costs that differ,
    d times their largest ratio as much. It is often worse than to stop at the first that kills.

    The paper picks any clause, and its predicates in any order; here they come as they are given.
    An event costs the literals of its survivors. Liu et al., DEBS 2007, section 4.1, algorithm 1.
    """

    way = SEQUENTIAL
