"""Clause by clause, with a memory: the baseline of the paper."""

from __future__ import annotations

from tamis.schedule.base import ClauseByClause
from tamis.schedule.compiled.clause_order import IN_ORDER


class NaiveScheduler(ClauseByClause):
    """Clauses in the given order, predicates as written, until one kills.

    Results are kept for the event, so no predicate is evaluated twice. But a result reaches only
    the clause that asked for it. Another clause that it kills learns of this only on coming to the
    literal, and evaluates those before it for nothing.

    An event takes time proportional to the literals of its survivors. Liu et al., DEBS 2007,
    section 5.3: the baseline of the paper.
    """

    way = IN_ORDER
