"""Plans of DEXIN: which attributes exclude, which ones check the rest, and in which order.

Let ρ be the share of all subscriptions that an attribute lets through. As an exclusive attribute
(it rules out subscriptions) it costs 1 - ρ, at any position. As an inclusive attribute (it checks
the remaining ones) it costs the share that the attributes before it left. Costs are in units of
the number of subscriptions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Floats, Int64s
from tamis.index.kernel import kernel

FIRST_FIT, OPTIMAL, EXCLUSIVE, INCLUSIVE = 0, 1, 2, 3
GIVEN = 4  # the caller has decided
WIDEST = 22  # maximum number of attributes whose subsets an optimal plan tries: four million


class PlannedAttributes(NamedTuple):
    """The attributes to plan for; only the first entries of the arrays are in use."""

    attribute: Int64s
    rate: Floats  # ρ
    several: Bools  # several values: inclusive only
    exclusive: Bools  # the plan's decision


@kernel
def make_plan(candidates: PlannedAttributes, many: int, how: int) -> tuple[Int64s, float]:
    """Plan for the first `many` candidates; returns their order by ρ and the cost μ."""
    order = np.argsort(candidates.rate[:many])
    if how != GIVEN:
        candidates.exclusive[:many] = how == EXCLUSIVE
    if how == FIRST_FIT:
        _first_fit(candidates, order)
    elif how == OPTIMAL:
        _optimal(candidates, order)
    return order, _cost(candidates, order)


@kernel
def _cost(candidates: PlannedAttributes, order: Int64s) -> float:
    """Σ (1 - ρ) over the exclusive attributes; each inclusive one costs the share still left."""
    cost, left = 0.0, 1.0
    for i in order:
        if candidates.exclusive[i]:
            cost += 1.0 - candidates.rate[i]
            left *= candidates.rate[i]
    for i in order:
        if not candidates.exclusive[i]:
            cost += left
            left *= candidates.rate[i]
    return cost


@kernel
def _first_fit(candidates: PlannedAttributes, order: Int64s) -> None:
    """Lowest matching rate first: exclusive as long as that is cheaper than checking."""
    left = 1.0
    for k in range(len(order)):
        i = order[k]
        if candidates.several[i]:
            continue
        if left < 1.0 and left <= 1.0 - candidates.rate[i]:
            break  # never at the first attribute, where left is still 1
        candidates.exclusive[i] = True
        left *= candidates.rate[i]


@kernel
def _optimal(candidates: PlannedAttributes, order: Int64s) -> None:
    """Try every non-empty set of exclusive attributes.

    The sets are in Gray code order, so that one attribute changes from each set to the next. Beyond
    `WIDEST` attributes, those with the highest rates are always inclusive.
    """
    able = np.empty(len(order), np.int64)
    m = 0
    for i in order:
        if not candidates.several[i] and m < WIDEST:
            able[m] = i
            m += 1
    best, best_cost = 0, np.inf
    for step in range(1, 1 << m):
        bit = 0
        while (step >> bit) & 1 == 0:
            bit += 1
        candidates.exclusive[able[bit]] ^= True
        cost = _cost(candidates, order)
        if cost < best_cost:
            best, best_cost = step ^ (step >> 1), cost
    for bit in range(m):
        candidates.exclusive[able[bit]] = (best >> bit) & 1 == 1
