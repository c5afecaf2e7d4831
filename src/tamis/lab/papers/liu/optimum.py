"""Small instances of the evaluation problem, and their optimum by exhaustive search.

Predicates are bits. A clause is a mask of predicates, and an outcome the mask of those that are
true.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Floats, Int64s
from tamis.index.kernel import kernel
from tamis.schedule.base import ON_FALSE
from tamis.schedule.registry import create


class SmallInstance(NamedTuple):
    """Clauses over few predicates. Each predicate is in some clause."""

    clauses: list[list[int]]
    p: Floats
    cost: Floats

    @property
    def longest(self) -> int:
        return max(map(len, self.clauses))

    @property
    def masks(self) -> Int64s:
        """The clauses as masks."""
        return np.array([sum(1 << each for each in clause) for clause in self.clauses], np.int64)

    @property
    def chances(self) -> Floats:
        """The probability of each outcome."""
        found = np.ones(1)
        for p in self.p:
            found = np.concatenate([found * (1 - p), found * p])
        return found

    def costs_of(self, scheduler: str) -> Floats:
        """What a scheduler spends on each outcome."""
        made = create(scheduler)
        for number, clause in enumerate(self.clauses):
            made.add(number, clause, [ON_FALSE] * len(clause), number)
        width = len(self.p)
        made.statistics.set(np.arange(width), p=self.p, cost=self.cost)
        every = np.arange(len(self.clauses))
        outcomes = (np.arange(1 << width)[:, None] >> np.arange(width) & 1).astype(np.int8)
        trails = (made.simulate(every, outcome).trail for outcome in outcomes)
        return np.array([self.cost[trail].sum() for trail in trails])


def draw_instance(
    rng: np.random.Generator, predicates: int, clauses: int, longest: int, factor: float
) -> SmallInstance:
    """Random clauses of up to `longest` predicates, one of this length; costs from 1 to `factor`.

    Predicates that no clause has are left out.
    """
    lengths = rng.integers(1, longest, clauses, endpoint=True)
    lengths[0] = longest
    drawn = [rng.permutation(predicates)[:length] for length in lengths]
    used = np.unique(np.concatenate(drawn))
    renamed = [np.searchsorted(used, clause).tolist() for clause in drawn]
    rng.shuffle(renamed)
    return SmallInstance(
        renamed, rng.uniform(0.02, 0.98, len(used)), factor ** rng.random(len(used))
    )


@kernel
def best_policy_cost(clauses: Int64s, p: Floats, cost: Floats) -> float:
    """The least expected cost of any order that may depend on the results so far.

    A state has a digit to base 3 for each predicate: unknown, true or false. A result makes the
    state a larger number, so that states in descending order find their successors solved.
    """
    width = len(p)
    powers = np.ones(width + 1, np.int64)
    for t in range(width):
        powers[t + 1] = 3 * powers[t]
    spent = np.zeros(powers[width])
    for state in range(powers[width] - 1, -1, -1):
        true = false = 0
        rest = state
        for t in range(width):
            digit = rest % 3
            rest //= 3
            true |= (digit == 1) << t
            false |= (digit == 2) << t
        needed = 0
        for clause in clauses:
            if clause & false == 0:
                needed |= clause & ~true
        if needed == 0:
            continue
        least = np.inf
        for t in range(width):
            if needed >> t & 1:
                after = p[t] * spent[state + powers[t]] + (1 - p[t]) * spent[state + 2 * powers[t]]
                least = min(least, cost[t] + after)
        spent[state] = least
    return float(spent[0])


@kernel
def least_proofs(clauses: Int64s, cost: Floats) -> Floats:
    """For each outcome, the least cost of results that decide all clauses.

    This is the optimum of one who knows the outcome. All predicates of a clause that matches have
    to be evaluated, and a false one of each other clause.
    """
    width = len(cost)
    price = np.zeros(1 << width)
    for mask in range(1, 1 << width):
        low = 0
        while mask >> low & 1 == 0:
            low += 1
        price[mask] = price[mask & (mask - 1)] + cost[low]
    found = np.empty(1 << width)
    for outcome in range(1 << width):
        false = ((1 << width) - 1) & ~outcome
        needed = 0
        for clause in clauses:
            if clause & false == 0:
                needed |= clause
        least = np.inf
        some = false
        while True:
            kills = True
            for clause in clauses:
                kills &= clause & false == 0 or clause & some != 0
            if kills:
                least = min(least, price[some])
            if some == 0:
                break
            some = (some - 1) & false
        found[outcome] = price[needed] + least
    return found
