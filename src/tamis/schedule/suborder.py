"""Linked chains, in an order that makes the most of their common predicates."""

from __future__ import annotations

import numpy as np

from tamis.errors import SchedulerError
from tamis.files.arrays import Floats, Int64s
from tamis.index.growth import grown
from tamis.schedule.base import ClauseByClause
from tamis.schedule.compiled.chains import (
    join_paths,
    score_chains,
    sort_chains,
    turn_ratios,
    walk_paths,
    weigh_neighbours,
)
from tamis.schedule.compiled.clause_order import LINKED
from tamis.schedule.statistics import PredicateStatistics

_CHANGED = 1 / 8  # reorder all after this share of the clauses was added or removed
_DRIFT = 0.1  # or after the cost of chains changed by this share
_SOME = 16  # changes that never cause a reordering
_MANY = 16  # sort the survivors if there are this many times as many clauses, else scan the order


class SubOrderScheduler(ClauseByClause):
    """Each clause is a chain, with the cheapest killing literal on top; one chain after another.

    A result goes to all chains that contain the predicate, and may kill several of them. The common
    predicates of two chains decide which of the two should go first. The order of all chains is
    joined from such pairs into paths, beginning with the pair that saves most.

    The paper weighs all pairs. Only chains with a common predicate make a difference, and among the
    holders of one predicate the better of two has the higher P/C, a number of each chain alone. So
    the holders are sorted by P/C, and only neighbours are weighed, with all their common
    predicates. Where the text of the paper is lost or unclear (4.2.1, 4.2.2, the sign of the
    weights), this is a reconstruction. Ties between literals go to the more popular predicate; the
    paper leaves this open.

    Where costs differ, the paper uses them in the weights of pairs only (4.3), and sorts chains by
    the probability to kill alone: `chains="selectivity"`. The default sorts them by
    cost / probability to kill. This is optimal for a single chain, and costs less than half as much
    where costs differ by a factor of 1,000.

    A new clause gets its place by a score of its own. All clauses are reordered after many changes,
    or when the cost of chains has changed. An event takes time proportional to the literals of its
    survivors, plus sorting them. Liu et al., DEBS 2007, section 4.2.
    """

    way = LINKED

    def __init__(self, statistics: PredicateStatistics | None = None, chains: str = "cost") -> None:
        if chains not in ("cost", "selectivity"):
            raise SchedulerError(f'chains is "cost" or "selectivity", got {chains!r}')
        self._by_cost = chains == "cost"
        super().__init__(statistics)
        self._reset_order()

    def _reset_order(self) -> None:
        self._order = np.zeros(0, np.int64)  # clauses; some were removed, or added again elsewhere
        self._listed = np.zeros(0, np.bool_)  # by clause: whether its entry in the order is valid
        self._rank = np.zeros(0)  # by clause: its place in the order
        self._spent = np.zeros(0)  # by clause: expected cost of its chain at the last order
        self._scores = np.zeros(0)  # of all clauses at the last order, ascending
        self._popular = np.zeros(0, np.int32)  # by predicate: its holders at the last order
        self._new: dict[int, None] = {}  # clauses without a rank
        self._unlisted: dict[int, None] = {}  # clauses with a rank that are not in the order
        self._changed = 0
        self._learned = self._learned_so_far()

    def order(self) -> Int64s:
        """All clauses, in the order in which they are evaluated."""
        self._refresh()
        return self._merged().copy()

    def check(self) -> None:
        super().check()
        order = self.order()
        assert np.array_equal(np.sort(order), self.graph.clauses()), "each clause once"
        assert (np.diff(self._rank[order]) >= 0).all()

    def _clause_added(self, clause: int) -> None:
        self._rank = grown(self._rank, clause + 1)
        self._listed = grown(self._listed, clause + 1)
        self._spent = grown(self._spent, clause + 1)
        self._new[clause] = None
        self._changed += 1

    def _clause_removed(self, clause: int) -> None:
        self._listed[clause] = False
        self._new.pop(clause, None)
        self._unlisted.pop(clause, None)
        self._changed += 1
        if not len(self.graph):
            self._reset_order()

    def _ordered(self, clauses: Int64s) -> Int64s:
        self._refresh()
        if _MANY * len(clauses) < len(self.graph):
            return clauses[np.argsort(self._rank[clauses], kind="stable")]
        # With so many survivors, a scan of all clauses is cheaper than a sort.
        order = self._merged()
        here = np.zeros(len(self._rank), np.bool_)
        here[clauses] = True
        return order[here[order]]

    def _merged(self) -> Int64s:
        """The order of all clauses that have a rank."""
        if self._unlisted or len(self._order) > len(self.graph):
            new = np.fromiter(self._unlisted, np.int64)
            order = np.concatenate([self._order[self._listed[self._order]], new])
            # All but the new ones are sorted already, which makes a stable sort fast.
            self._order = order[np.argsort(self._rank[order], kind="stable")]
            self._listed[new] = True
            self._unlisted.clear()
        return self._order

    def _refresh(self) -> None:
        """Rank the new clauses, or all of them if enough has changed."""
        much = self._changed > max(_SOME, _CHANGED * len(self.graph)) or not len(self._scores)
        if much or self._drifted():
            self._reorder()
        elif self._new:
            new = np.fromiter(self._new, np.int64)
            self._spent[new], score = self._scored(new)
            # As far back as it would be in an order by score.
            self._rank[new] = len(self._scores) - np.searchsorted(self._scores, score) - 0.5
            self._unlisted.update(self._new)
            self._new.clear()

    def _reorder(self) -> None:
        self._apply_call_costs()
        clauses = self.graph.clauses()
        self._popular = self.graph.degree.copy()
        start, size, _, pool = self.graph.arrays
        known = (self.statistics.p, self.statistics.doubt, self.statistics.cost)
        self._spent[clauses], score = self._scored(clauses)
        literals = int(size[clauses].sum())
        predicate, clause, ratio = turn_ratios(start, size, pool, clauses, *known, literals)
        by_ratio = np.lexsort((-ratio, predicate))
        before, after, saved = weigh_neighbours(
            start, size, pool, predicate[by_ratio], clause[by_ratio], *known
        )
        by_saving = np.argsort(saved, kind="stable")
        before, after = before[by_saving], after[by_saving]
        following, leading = join_paths(before, after, len(self._rank))
        heads = clauses[leading[clauses] < 0]
        # Paths in the order of their heads; clauses without a path come last.
        heads = heads[np.argsort(following[heads] < 0, kind="stable")]
        self._order = walk_paths(heads, following)
        self._listed[:] = False
        self._listed[clauses] = True
        self._rank[self._order] = np.arange(len(clauses))
        self._scores = np.sort(score)
        self._new.clear()
        self._unlisted.clear()
        self._changed = 0
        self._learned = self._learned_so_far()

    def _scored(self, clauses: Int64s) -> tuple[Floats, Floats]:
        """Sort chains; returns the expected cost and the score of each."""
        start, size, _, pool = self.graph.arrays
        self._popular = grown(self._popular, self.graph.predicates)
        p, doubt, cost = self.statistics.p, self.statistics.doubt, self.statistics.cost
        to_sort_by = cost if self._by_cost else np.ones_like(cost)
        sort_chains(start, size, pool, self._popular, clauses, p, doubt, to_sort_by)
        return score_chains(start, size, pool, self.graph.degree, clauses, p, doubt, cost)

    def _apply_call_costs(self) -> None:
        """Give every predicate the cost of its call, even if no event has needed it lately."""
        if self.graph.has_shared_calls:
            every = np.arange(self.graph.predicates)
            self.statistics.apply_call_costs(every, self.graph.calls(every))

    def _learned_so_far(self) -> tuple[int, int]:
        return self.statistics.learned, self.statistics.settings

    def _drifted(self) -> bool:
        """Whether the cost of chains has changed. Checked after as many results as there are
        clauses, so that each result pays a little."""
        learned, settings = self._learned_so_far()
        if settings == self._learned[1] and learned - self._learned[0] < len(self.graph):
            return False
        self._learned = learned, settings
        self._apply_call_costs()
        start, size, _, pool = self.graph.arrays
        known = (self.statistics.p, self.statistics.doubt, self.statistics.cost)
        listed = np.flatnonzero(self._listed)
        spent, _ = score_chains(start, size, pool, self.graph.degree, listed, *known)
        before = self._spent[listed]
        return bool(np.abs(spent - before).sum() > _DRIFT * before.sum())
