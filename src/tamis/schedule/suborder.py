"""Linked chains in an order that makes the most of what they have in common."""

from __future__ import annotations

import numpy as np

from tamis.errors import SchedulerError
from tamis.schedule.base import ClauseByClause
from tamis.schedule.compiled.chains import (
    Floats,
    edges,
    join,
    places,
    scores,
    sort_chains,
    walk,
)
from tamis.schedule.compiled.clause_order import LINKED
from tamis.schedule.compiled.graph import Int64s, longer
from tamis.schedule.statistics import Statistics

_CHANGED = 1 / 8  # share of the clauses that come or go before all are put into order anew
_DRIFT = 0.1  # share by which chains come to cost more or less before that
_SOME = 16  # clauses that may come or go anyway
_MANY = 16  # survivors are sorted, unless there are more than the rest by this factor


class SubOrder(ClauseByClause):
    """Each clause is a chain, the literal that kills for least on top; chains go one after another.

    A result is passed on to all chains that have the predicate, and kills those that it kills.
    Which of two chains should go first follows from what they have in common; the order of all is
    put together from such pairs, the one that saves most first, into paths.

    The paper weighs all pairs. Only chains with a common predicate make a difference, and among the
    holders of one predicate the better of two is the one with the higher P/C, a number that each
    has for itself; so the holders are sorted by it and only neighbours are weighed, with all that
    they have in common. Where its text is lost or unclear (4.2.1, 4.2.2, the sign of the weights),
    this is a reconstruction. Of literals that kill for the same cost the more popular comes first,
    which the paper leaves open.

    Where costs differ, the paper has them in the weights of pairs only (4.3), and its chains go by
    the chance to kill alone: `chains="selectivity"`. By default they go by cost / chance to kill,
    which is best for a chain alone and spends less than half as much where costs differ by 1,000.

    A new clause gets a place by a score of its own. All are put into order anew when many have
    come or gone, or chains have come to cost something else. An event costs the literals of its
    survivors, and sorting them. Liu et al., DEBS 2007, section 4.2.
    """

    way = LINKED

    def __init__(self, statistics: Statistics | None = None, chains: str = "cost") -> None:
        if chains not in ("cost", "selectivity"):
            raise SchedulerError(f'chains go by "cost" or by "selectivity", got {chains!r}')
        self._by_cost = chains == "cost"
        super().__init__(statistics)
        self._forget()

    def _forget(self) -> None:
        self._order = np.zeros(0, np.int64)  # clauses; some are gone, or have come back elsewhere
        self._listed = np.zeros(0, np.bool_)  # by clause: whether its entry in the order holds
        self._rank = np.zeros(0)  # by clause: its place in the order
        self._spent = np.zeros(0)  # by clause: what its chain was expected to cost, then
        self._scores = np.zeros(0)  # of all at the last order, ascending
        self._popular = np.zeros(0, np.int32)  # by predicate: its holders, then
        self._new: dict[int, None] = {}  # clauses that have no rank yet
        self._unlisted: dict[int, None] = {}  # that have one, but are not in the order
        self._changed = 0
        self._known = self._news()

    def order(self) -> Int64s:
        """All clauses, in the order in which they are evaluated."""
        self._refresh()
        return self._merged().copy()

    def check(self) -> None:
        super().check()
        order = self.order()
        assert np.array_equal(np.sort(order), self.graph.clauses()), "each clause once"
        assert (np.diff(self._rank[order]) >= 0).all()

    def _added(self, clause: int) -> None:
        if clause >= len(self._rank):
            self._rank = longer(self._rank, clause + 1)
            self._listed = longer(self._listed, clause + 1)
            self._spent = longer(self._spent, clause + 1)
        self._new[clause] = None
        self._changed += 1

    def _removed(self, clause: int) -> None:
        self._listed[clause] = False
        self._new.pop(clause, None)
        self._unlisted.pop(clause, None)
        self._changed += 1
        if not len(self.graph):
            self._forget()

    def _ordered(self, clauses: Int64s) -> Int64s:
        self._refresh()
        if _MANY * len(clauses) < len(self.graph):
            return clauses[np.argsort(self._rank[clauses], kind="stable")]
        # So many survive that it is cheaper to go through all than to sort these.
        order = self._merged()
        here = np.zeros(len(self._rank), np.bool_)
        here[clauses] = True
        return order[here[order]]

    def _merged(self) -> Int64s:
        """The order, with all in it that have a rank."""
        if self._unlisted or len(self._order) > len(self.graph):
            new = np.fromiter(self._unlisted, np.int64)
            order = np.concatenate([self._order[self._listed[self._order]], new])
            # All but the new ones are in order already, which a stable sort makes use of.
            self._order = order[np.argsort(self._rank[order], kind="stable")]
            self._listed[new] = True
            self._unlisted.clear()
        return self._order

    def _refresh(self) -> None:
        """Give new clauses a place; or all of them, if enough has changed."""
        much = self._changed > max(_SOME, _CHANGED * len(self.graph)) or not len(self._scores)
        if much or self._drifted():
            self._reorder()
        elif self._new:
            new = np.fromiter(self._new, np.int64)
            self._spent[new], score = self._scored(new)
            # As far back in the order as it would be if that were by score.
            self._rank[new] = len(self._scores) - np.searchsorted(self._scores, score) - 0.5
            self._unlisted.update(self._new)
            self._new.clear()

    def _reorder(self) -> None:
        self._follow_calls()
        clauses = self.graph.clauses()
        self._popular = self.graph.degree.copy()
        start, size, _, pool = self.graph.links
        told = (self.statistics.p, self.statistics.doubt, self.statistics.cost)
        self._spent[clauses], score = self._scored(clauses)
        literals = int(size[clauses].sum())
        predicate, clause, ratio = places(start, size, pool, clauses, *told, literals)
        by_ratio = np.lexsort((-ratio, predicate))
        before, after, saved = edges(
            start, size, pool, predicate[by_ratio], clause[by_ratio], *told
        )
        by_saving = np.argsort(saved, kind="stable")
        before, after = before[by_saving], after[by_saving]
        following, leading = join(before, after, len(self._rank))
        heads = clauses[leading[clauses] < 0]
        # Paths as they were added; clauses that are on none come last.
        heads = heads[np.argsort(following[heads] < 0, kind="stable")]
        self._order = walk(heads, following)
        self._listed[:] = False
        self._listed[clauses] = True
        self._rank[self._order] = np.arange(len(clauses))
        self._scores = np.sort(score)
        self._new.clear()
        self._unlisted.clear()
        self._changed = 0
        self._known = self._news()

    def _scored(self, clauses: Int64s) -> tuple[Floats, Floats]:
        """Sort chains; what each is expected to cost, and its score."""
        start, size, _, pool = self.graph.links
        told = (self.statistics.p, self.statistics.doubt, self.statistics.cost)
        if self.graph.predicates > len(self._popular):
            self._popular = longer(self._popular, self.graph.predicates)
        p, doubt, cost = told
        to_sort_by = cost if self._by_cost else np.ones_like(cost)
        sort_chains(start, size, pool, self._popular, clauses, p, doubt, to_sort_by)
        return scores(start, size, pool, self.graph.degree, clauses, *told)

    def _follow_calls(self) -> None:
        """All predicates cost what their calls do, also those that no event has needed lately."""
        if self.graph.shared:
            every = np.arange(self.graph.predicates)
            self.statistics.follow(every, self.graph.calls(every))

    def _news(self) -> tuple[int, int]:
        return self.statistics.learned, self.statistics.settings

    def _drifted(self) -> bool:
        """Whether chains have come to cost something else. Looked at after as many results as there
        are clauses, so that it costs each result a little."""
        learned, settings = self._news()
        if settings == self._known[1] and learned - self._known[0] < len(self.graph):
            return False
        self._known = learned, settings
        self._follow_calls()
        start, size, _, pool = self.graph.links
        told = (self.statistics.p, self.statistics.doubt, self.statistics.cost)
        known = np.flatnonzero(self._listed)
        spent, _ = scores(start, size, pool, self.graph.degree, known, *told)
        before = self._spent[known]
        return bool(np.abs(spent - before).sum() > _DRIFT * before.sum())
