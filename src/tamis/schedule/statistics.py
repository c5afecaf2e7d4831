"""How often each predicate is true and what it costs, learned from results.

The probability of a predicate is the mean of a Beta distribution over its results. Older results
weigh less, so that the mean follows a change of the events. A mean of few results is doubtful: a
scheduler that always trusted it would never try again a predicate that began with bad luck. So
schedulers use the optimistic end of the doubt. They assume that a rarely seen predicate kills more
often than its mean says, evaluate it sooner, and so learn about it.

All predicates that one call answers cost the same, so costs are learned by call. A predicate takes
over the cost of its call when an event next needs it; so even a new predicate, or one not needed
for long, has an up-to-date cost.

Only evaluated predicates have results, often only after others were true. This does no harm under
the assumption that schedulers make anyway: predicates are independent of each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tamis.errors import SchedulerError
from tamis.files.arrays import Floats, Int8s, Int64s
from tamis.index.growth import grown
from tamis.index.kernel import kernel
from tamis.schedule.compiled.graph import FAULT, TRUE, check_outcome

_FEW = 8  # predicates: up to here a loop is faster than array operations


class PredicateEstimate(NamedTuple):
    """What past events say about a predicate: how often it was true, and what it cost."""

    p: float
    cost: float
    seen: int  # results behind these figures


class PredicateStatistics:
    """For each predicate `p`, `doubt` and `cost`, in arrays that grow with the predicates.

    Args:
        memory: how many results count; older ones fade out.
        p: the probability assumed for a new predicate, with the weight of two results.
        cost: the cost assumed for a new predicate, likewise.
        optimism: `doubt` is this many standard deviations of `p`.
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
        # For callers that check whether anything has changed.
        self.learned = 0  # results
        self.settings = 0  # calls of `set`, and of `expect` with results
        self.p = np.zeros(0)
        self.doubt = np.zeros(0)
        self.cost = np.zeros(0)
        self._seen = np.zeros(0)  # results; older ones count less
        self._timed = np.zeros(0)
        self.call_cost = np.zeros(0)  # by call; NaN where unknown
        self._call_timed = np.zeros(0)

    def __len__(self) -> int:
        return len(self.p)

    def fit(self, predicates: int) -> None:
        """Make room for this many predicates."""
        self.p = grown(self.p, predicates, self._p)
        self.cost = grown(self.cost, predicates, self._cost)
        self.doubt = grown(self.doubt, predicates, self._spread(self._p, 0.0))
        self._seen = grown(self._seen, predicates)
        self._timed = grown(self._timed, predicates)

    def expect(
        self,
        predicate: int,
        p: float | None = None,
        cost: float | None = None,
        seen: float = 0.0,
    ) -> None:
        """Reset a number that now stands for a new predicate, with these expectations.

        They weigh as much as `seen` results.
        """
        self.fit(predicate + 1)
        self.p[predicate] = self._p if p is None else _share(p)
        self.cost[predicate] = self._cost if cost is None else _cost(cost)
        self._seen[predicate] = self._timed[predicate] = min(seen, self._memory)
        self.doubt[predicate] = self._spread(float(self.p[predicate]), min(seen, self._memory))
        self.settings += bool(seen)

    def expect_call(self, call: int, cost: float, seen: float = 0.0) -> None:
        """Reset a number that now stands for a new call, with this expected cost."""
        self._fit_calls(call + 1)
        self.call_cost[call] = _cost(cost)
        self._call_timed[call] = min(seen, self._memory)

    def is_unseen(self, predicate: int) -> bool:
        """Whether a predicate has no results, only its expectations."""
        return not self._seen[predicate] and not self._timed[predicate]

    def is_untimed(self, call: int) -> bool:
        """Whether a call was never timed."""
        return not self._call_timed[call]

    def apply_call_costs(self, predicates: Int64s, calls: Int64s) -> None:
        """Give predicates the cost of their calls; a number below 0 stands for no call."""
        if not len(self.call_cost):
            return
        cost = self.call_cost.take(calls, mode="clip")
        known = (calls >= 0) & (calls < len(self.call_cost)) & ~np.isnan(cost)
        self.cost[predicates[known]] = cost[known]

    def _fit_calls(self, calls: int) -> None:
        self.call_cost = grown(self.call_cost, calls, np.nan)
        self._call_timed = grown(self._call_timed, calls)

    def set(self, predicates: object, p: object | None = None, cost: object | None = None) -> None:
        """Set the figures of one predicate or an array of them. Learning goes on from there."""
        which = np.atleast_1d(np.asarray(predicates, np.int64))
        if not len(which):
            return
        self.fit(int(which.max()) + 1)
        self.settings += 1
        if p is not None:
            given = np.asarray(p, np.float64)
            if not ((given >= 0) & (given <= 1)).all():
                raise SchedulerError("p is a probability, between 0 and 1")
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
        """Learn one result and its cost. A fault says nothing about the probability."""
        check_outcome(outcome)
        self.fit(predicate + 1)
        self.learned += 1
        if outcome != FAULT:
            # The expectation weighs as much as two results, and fades with them.
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

    def learn_results(self, predicates: Int64s, outcomes: Int8s) -> None:
        """Like `learn` for one result after the other, without costs; below 0: no result."""
        if len(predicates):
            self.fit(int(predicates.max()) + 1)
            self.learned += _learn_results(
                predicates, outcomes, self.p, self.doubt, self._seen, self._memory, self._optimism
            )

    def learn_call(self, call: int, cost: float, expected: float, times: int = 1) -> float:
        """Learn the cost of a call; returns its mean. An unknown call starts from `expected`."""
        self._fit_calls(call + 1)
        timed = min(float(self._call_timed[call]), self._memory - 1)
        known = float(self.call_cost[call])
        if math.isnan(known):
            known = expected
        known += (_cost(cost) - known) * times / (timed + 1 + times)
        self.call_cost[call] = known
        self._call_timed[call] = min(timed + times, self._memory)
        return known

    def learn_all(self, predicates: Int64s, outcomes: Int8s, cost: float | None = None) -> None:
        """Like `learn` for several different predicates, each with this cost."""
        if len(predicates) <= _FEW:
            for predicate, outcome in zip(predicates.tolist(), outcomes.tolist(), strict=True):
                self.learn(predicate, outcome, cost)
            return
        self.fit(int(predicates.max()) + 1)
        self.learned += len(predicates)
        answered = predicates[outcomes != FAULT]
        seen = np.minimum(self._seen[answered], self._memory - 1)
        p = self.p[answered]
        p += ((outcomes[outcomes != FAULT] == TRUE) - p) / (seen + 3)
        self._seen[answered] = seen + 1
        self.p[answered] = p
        self.doubt[answered] = self._optimism * np.sqrt(p * (1 - p) / (seen + 4))
        if cost is not None:
            timed = np.minimum(self._timed[predicates], self._memory - 1)
            self.cost[predicates] += (_cost(cost) - self.cost[predicates]) / (timed + 2)
            self._timed[predicates] = timed + 1

    def check(self) -> None:
        """Raise if a probability or a cost is out of range. For tests."""
        assert ((self.p >= 0) & (self.p <= 1)).all()
        assert ((self.cost >= 0) & np.isfinite(self.cost)).all()
        assert ((self.doubt >= 0) & (self.doubt <= self._optimism)).all()
        known = self.call_cost[~np.isnan(self.call_cost)]
        assert ((known >= 0) & np.isfinite(known)).all()
        assert ((self._seen >= 0) & (self._seen <= self._memory)).all()

    def _spread(self, p: float, seen: float) -> float:
        """`doubt` of a Beta distribution with mean p, after `seen` results and two expected."""
        return self._optimism * math.sqrt(p * (1 - p) / (seen + 3))


@kernel
def _learn_results(
    predicates: Int64s,
    outcomes: Int8s,
    p: Floats,
    doubt: Floats,
    seen: Floats,
    memory: float,
    optimism: float,
) -> int:
    """How many results there were."""
    learned = 0
    for i in range(len(predicates)):
        n, outcome = predicates[i], outcomes[i]
        learned += outcome >= 0
        if 0 <= outcome < FAULT:
            before = min(seen[n], memory - 1)
            p[n] += ((outcome == TRUE) - p[n]) / (before + 3)
            seen[n] = before + 1
            doubt[n] = optimism * math.sqrt(p[n] * (1 - p[n]) / (before + 4))
    return learned


def _share(p: float) -> float:
    if not 0 <= p <= 1:
        raise SchedulerError(f"p is a probability, between 0 and 1; got {p}")
    return float(p)


def _cost(cost: float) -> float:
    if not 0 <= cost < np.inf:
        raise SchedulerError(f"a cost is a finite number, 0 or more; got {cost}")
    return float(cost)
