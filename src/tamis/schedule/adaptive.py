"""Ours: next the predicate that is expected to save most for its cost, given what is known."""

from __future__ import annotations

import numpy as np

from tamis.schedule.base import Run, Scheduler
from tamis.schedule.compiled import greedy as pricing
from tamis.schedule.compiled.clause_order import IN_ORDER, Flat, Singles, begin
from tamis.schedule.compiled.event_graph import Numbered
from tamis.schedule.compiled.graph import Int8s, Int32s, Int64s
from tamis.schedule.compiled.greedy_state import priced_flat
from tamis.schedule.statistics import Statistics


class Adaptive(Scheduler):
    """No order is fixed: after each result, the predicate with the best score is next.

    At first the score is the number of undecided clauses that it can be expected to kill, by its
    cost. It stays near the truth while many are undecided. Later, when clauses are left that few
    predicates can kill, prices are made: killing a clause is worth what it would cost to kill it
    otherwise, by its cheapest other predicate, shared among all that this one would kill. And a
    predicate that a clause will need anyway, because the rest of it comes out right, costs only as
    much as it is not needed; one that is the last to decide a clause is evaluated at once. Scores
    fall as clauses are decided, so that the best is found in buckets that are gone through once;
    prices are made from 4,096 undecided clauses on, anew after each halving, and for each step when
    few are left.

    On 10,000 clauses over 5,000 predicates, prices save 2 % of the evaluations, and 3 % of the cost
    where costs differ by 1,000. An event costs the literals of its survivors, some three times.
    Without a paper; the plain score is the greedy of set cover.
    """

    def __init__(self, statistics: Statistics | None = None) -> None:
        super().__init__(statistics)
        self._spares = np.zeros(0, np.float32)
        self._spare_of: Numbered | None = None
        self._spare_at = 0
        self._calls = np.zeros(0, np.int32)

    def _room(self, numbered: Numbered) -> Flat:
        return priced_flat(numbered)

    def _run(self, numbered: Numbered, room: Flat) -> Run:
        known, who = numbered
        octets, ints, longs, floats = room
        told = self.statistics
        begin(known, who, octets, ints, longs, IN_ORDER)
        spare = self._unneeded(numbered)
        pricing.value(
            known, who, ints, longs, floats, told.p, told.doubt, told.cost, spare, self._calls
        )
        return PricedRun(numbered, room)

    def _unneeded(self, numbered: Numbered) -> Singles:
        """For each predicate the chance that nobody needs it; and who shares a call.

        Of the same survivors as before it is known, unless much has been learned since.
        """
        told = self.statistics
        news = told.learned + len(told) * told.settings
        same = self._spare_of is numbered
        if not same or news - self._spare_at > len(numbered.predicates):
            self._spare_of, self._spare_at = numbered, news
            if not same:
                shared = self._together
                self._calls = np.zeros(0, np.int32) if shared is None else shared.dense
            self._spares = pricing.unneeded(numbered.longs, numbered.ints, told.p, told.doubt)
        return self._spares


class PricedRun(Run):
    """A run that chooses by prices."""

    def _tell(self, places: Int64s, outcomes: Int8s) -> Int32s:
        return pricing.tell(
            self._known,
            self._who,
            self._octets,
            self._ints,
            self._longs,
            places,
            outcomes,
            (self._floats,),
        )

    def _step(self, outcomes: Int8s, told: int, outcome: int) -> int:
        return pricing.step(
            self._known,
            self._who,
            self._octets,
            self._ints,
            self._longs,
            outcomes,
            told,
            outcome,
            self._floats,
        )
