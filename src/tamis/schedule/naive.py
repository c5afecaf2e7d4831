"""Clause by clause, with a memory: the baseline of the paper."""

from __future__ import annotations

from tamis.schedule.base import ClauseByClause
from tamis.schedule.compiled.clause_order import IN_ORDER


class Naive(ClauseByClause):
    """Clauses as they come, predicates as they were written, until one kills.

    Results are remembered for the event, so that no predicate is evaluated twice. But a clause does
    not hear of results found for others: it learns that it is dead only on coming to the literal
    that killed it, and evaluates those before it for nothing.

    An event costs the literals of its survivors. Liu et al., DEBS 2007, section 5.3, where it is
    the algorithm that the others are compared with.
    """

    way = IN_ORDER
