"""How often each predicate is true and what it costs, learned from what was evaluated.

The share of true results is the mean of a Beta distribution over the results so far; older results
weigh less, so that a change of the events is followed. What was seen rarely is doubtful, and a
scheduler that always believed the mean would never look again at a predicate that began with bad
luck. So schedulers are told the better end of the doubt: a predicate that was seen rarely is taken
to kill more often than its mean says, is evaluated sooner for it, and is known better afterwards.

What one call of an operator answers costs the same, whoever asks for it: costs of calls are learned
by call. Those of its predicates follow when these are next looked at; so a predicate that is new,
or that has not been needed for long, is not taken to cost what its call has turned out not to.

Only evaluated predicates are seen, often after others came out right. Schedulers take predicates to
be independent of each other anyway, and under that assumption this does no harm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SchedulerError
from tamis.schedule.compiled.graph import FAULT, TRUE, Int8s, Int64s, check_outcome, longer

Floats = NDArray[np.float64]
_FEW = 8  # predicates: one by one they are quicker than by array


class Known(NamedTuple):
    """What is known of a predicate from past events: how often it was true, and what it cost."""

    p: float
    cost: float
    seen: int  # results that say so


class Statistics:
    """For each predicate: `p`, `doubt` and `cost`, as arrays that grow with the predicates.

    Args:
        memory: how many results count; the older ones fade out.
        p: taken for a predicate of which nothing is known, with the weight of two results.
        cost: likewise.
        optimism: `doubt` is so many standard deviations of what is known of `p`.
    """

    def __init__(
        self, memory: float = 1000.0, p: float = 0.5, cost: float = 1.0, optimism: float = 0.5
    ) -> None:
        if not memory >= 1:
            raise SchedulerError(f"memory is a number of results, 1 or more; got {memory}")
        if not optimism >= 0:
            raise SchedulerError(f"optimism is 0 or more, got {optimism}")
        self._memory = memory
        self._optimism = optimism
        self._p = _share(p)
        self._cost = _cost(cost)
        # For those who want to know whether there is news.
        self.learned = 0  # results
        self.settings = 0  # times that somebody said what is so
        self.p = np.zeros(0)
        self.doubt = np.zeros(0)
        self.cost = np.zeros(0)
        self._seen = np.zeros(0)  # results, the older ones faded
        self._timed = np.zeros(0)
        self.call_cost = np.zeros(0)  # by call; NaN where nothing is known
        self._call_timed = np.zeros(0)

    def __len__(self) -> int:
        return len(self.p)

    def fit(self, predicates: int) -> None:
        """Have at least so many predicates."""
        have = len(self.p)
        if predicates > have:
            self.p = longer(self.p, predicates, self._p)
            self.cost = longer(self.cost, predicates, self._cost)
            self.doubt = longer(self.doubt, predicates)
            self._seen = longer(self._seen, predicates)
            self._timed = longer(self._timed, predicates)
            self.doubt[have:] = self._spread(self._p, 0.0)

    def expect(
        self,
        predicate: int,
        p: float | None = None,
        cost: float | None = None,
        seen: float = 0.0,
    ) -> None:
        """A new predicate has this number: forget the old one, and expect that of it.

        What was `seen` so often elsewhere weighs like as many results.
        """
        self.fit(predicate + 1)
        self.p[predicate] = self._p if p is None else _share(p)
        self.cost[predicate] = self._cost if cost is None else _cost(cost)
        self._seen[predicate] = self._timed[predicate] = min(seen, self._memory)
        self.doubt[predicate] = self._spread(float(self.p[predicate]), min(seen, self._memory))
        self.settings += bool(seen)

    def expect_call(self, call: int, cost: float, seen: float = 0.0) -> None:
        """A new call has this number: forget the old one, and expect that of it."""
        self._fit_calls(call + 1)
        self.call_cost[call] = _cost(cost)
        self._call_timed[call] = min(seen, self._memory)

    def untold(self, predicate: int) -> bool:
        """Whether nothing is known of a predicate but what it began with."""
        return not self._seen[predicate] and not self._timed[predicate]

    def untimed(self, call: int) -> bool:
        """Whether nothing is known of a call but what it began with."""
        return not self._call_timed[call]

    def follow(self, predicates: Int64s, calls: Int64s) -> None:
        """Predicates come to cost what their calls do; a call below 0 is no call."""
        if not len(self.call_cost):
            return
        cost = self.call_cost.take(calls, mode="clip")
        known = (calls >= 0) & (calls < len(self.call_cost)) & ~np.isnan(cost)
        self.cost[predicates[known]] = cost[known]

    def _fit_calls(self, calls: int) -> None:
        if calls > len(self.call_cost):
            self.call_cost = longer(self.call_cost, calls, np.nan)
            self._call_timed = longer(self._call_timed, calls)

    def set(self, predicates: object, p: object | None = None, cost: object | None = None) -> None:
        """Say what is so, of one predicate or an array of them. Learning goes on from there."""
        which = np.atleast_1d(np.asarray(predicates, np.int64))
        if not len(which):
            return
        self.fit(int(which.max()) + 1)
        self.settings += 1
        if p is not None:
            given = np.asarray(p, np.float64)
            if not ((given >= 0) & (given <= 1)).all():
                raise SchedulerError("p is a probability: between 0 and 1")
            self.p[which] = given
            self.doubt[which] = 0.0
            self._seen[which] = self._memory
        if cost is not None:
            given = np.asarray(cost, np.float64)
            if not ((given >= 0) & np.isfinite(given)).all():
                raise SchedulerError("a cost is a finite number, 0 or more")
            self.cost[which] = given
            self._timed[which] = self._memory

    def learn(self, predicate: int, outcome: int, cost: float | None = None) -> None:
        """One result, and what it cost. A fault tells nothing about how often it is true."""
        check_outcome(outcome)
        self.fit(predicate + 1)
        self.learned += 1
        if outcome != FAULT:
            # What was expected weighs as two results, and fades with them.
            seen = min(float(self._seen[predicate]), self._memory - 1)
            p = float(self.p[predicate])
            p += ((outcome == TRUE) - p) / (seen + 3)
            self._seen[predicate] = seen + 1
            self.p[predicate] = p
            self.doubt[predicate] = self._spread(p, seen + 1)
        if cost is not None:
            timed = min(float(self._timed[predicate]), self._memory - 1)
            self.cost[predicate] += (_cost(cost) - self.cost[predicate]) / (timed + 2)
            self._timed[predicate] = timed + 1

    def learn_call(self, call: int, cost: float, expected: float) -> float:
        """What a call cost; its mean. Unless something was expected of it, that is `expected`."""
        self._fit_calls(call + 1)
        timed = min(float(self._call_timed[call]), self._memory - 1)
        known = float(self.call_cost[call])
        if math.isnan(known):
            known = expected
        known += (_cost(cost) - known) / (timed + 2)
        self.call_cost[call] = known
        self._call_timed[call] = timed + 1
        return known

    def learn_all(self, predicates: Int64s, outcomes: Int8s, cost: float | None = None) -> None:
        """The same as `learn` of several different predicates, each of which cost so much."""
        if len(predicates) <= _FEW:
            for predicate, outcome in zip(predicates.tolist(), outcomes.tolist(), strict=True):
                self.learn(predicate, outcome, cost)
            return
        self.fit(int(predicates.max()) + 1)
        self.learned += len(predicates)
        told = predicates[outcomes != FAULT]
        seen = np.minimum(self._seen[told], self._memory - 1)
        p = self.p[told]
        p += ((outcomes[outcomes != FAULT] == TRUE) - p) / (seen + 3)
        self._seen[told] = seen + 1
        self.p[told] = p
        self.doubt[told] = self._optimism * np.sqrt(p * (1 - p) / (seen + 4))
        if cost is not None:
            timed = np.minimum(self._timed[predicates], self._memory - 1)
            self.cost[predicates] += (_cost(cost) - self.cost[predicates]) / (timed + 2)
            self._timed[predicates] = timed + 1

    def check(self) -> None:
        """Raise if something is no probability or no cost. For tests."""
        assert ((self.p >= 0) & (self.p <= 1)).all()
        assert ((self.cost >= 0) & np.isfinite(self.cost)).all()
        assert ((self.doubt >= 0) & (self.doubt <= self._optimism)).all()
        known = self.call_cost[~np.isnan(self.call_cost)]
        assert ((known >= 0) & np.isfinite(known)).all()
        assert ((self._seen >= 0) & (self._seen <= self._memory)).all()

    def _spread(self, p: float, seen: float) -> float:
        """Of a Beta distribution with mean p, after so many results and the two expected ones."""
        return self._optimism * math.sqrt(p * (1 - p) / (seen + 3))


def _share(p: float) -> float:
    if not 0 <= p <= 1:
        raise SchedulerError(f"p is a probability, between 0 and 1; got {p}")
    return float(p)


def _cost(cost: float) -> float:
    if not 0 <= cost < np.inf:
        raise SchedulerError(f"a cost is a finite number, 0 or more; got {cost}")
    return float(cost)
