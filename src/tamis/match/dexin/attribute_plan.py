"""Plans of DEXIN: which attributes rule out, which ones check what is left, and in which order.

An attribute that lets the share ρ of all subscriptions through costs 1 - ρ when it rules out
(exclusive), whenever that is; when it checks (inclusive) it costs what those before it left over.
Costs are in units of the number of subscriptions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import kernel

FIRST_FIT, OPTIMAL, EXCLUSIVE, INCLUSIVE = 0, 1, 2, 3
WIDEST = 22  # attributes whose subsets an optimal plan tries, at most: four million of them


class PlannedAttributes(NamedTuple):
    """The attributes to plan for; places are those of `attribute`, of which some are in use."""

    attribute: NDArray[np.int64]
    rate: NDArray[np.float64]  # ρ
    several: NDArray[np.bool_]  # several values: to be checked, never to rule out
    exclusive: NDArray[np.bool_]  # what the plan says


@kernel
def make_plan(
    candidates: PlannedAttributes, many: int, how: int
) -> tuple[NDArray[np.int64], float]:
    """Plan for the first `many` candidates; gives their order by ρ, and the cost μ."""
    order = np.argsort(candidates.rate[:many])
    candidates.exclusive[:many] = how == EXCLUSIVE
    if how == FIRST_FIT:
        _first_fit(candidates, order)
    elif how == OPTIMAL:
        _optimal(candidates, order)
    return order, _cost(candidates, order)


@kernel
def _cost(candidates: PlannedAttributes, order: NDArray[np.int64]) -> float:
    """Σ (1 - ρ) over the exclusive ones; each of the others sees what all before it left."""
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
def _first_fit(candidates: PlannedAttributes, order: NDArray[np.int64]) -> None:
    """Lowest matching rate first: exclusive as long as that is cheaper than checking."""
    left = 1.0
    for k in range(len(order)):
        i = order[k]
        if candidates.several[i]:
            continue
        if left < 1.0 and left <= 1.0 - candidates.rate[i]:
            break  # never at the first one, of which nothing is left over yet
        candidates.exclusive[i] = True
        left *= candidates.rate[i]


@kernel
def _optimal(candidates: PlannedAttributes, order: NDArray[np.int64]) -> None:
    """Try every set of exclusive attributes but the empty one.

    In the order of a Gray code, one attribute changes sides from each set to the next. Past
    `WIDEST` attributes the ones with the highest rates are checked, not tried.
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
