"""The approximation with a guarantee."""

from __future__ import annotations

from tamis.schedule.base import ClauseByClause
from tamis.schedule.compiled.clause_order import SEQUENTIAL


class SequentialScheduler(ClauseByClause):
    """Pick an undecided clause, evaluate all its predicates that any clause needs; repeat.

    The loop over the predicates goes on after the clause has died. The proof needs this: every
    algorithm that decides the clause has to evaluate one of these predicates, this one evaluates at
    most d of them, and no two picks have one in common. So it takes at most d times as many
    evaluations as the optimum, where d is the length of the longest clause; with different costs, d
    times their largest ratio. To stop at the first predicate that kills is often cheaper.

    The paper picks any clause, and its predicates in any order; here they come in the given order.
    An event takes time proportional to the literals of its survivors. Liu et al., DEBS 2007,
    section 4.1, algorithm 1.
    """

    way = SEQUENTIAL
