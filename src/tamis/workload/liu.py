"""The workload of expensive operators (Liu et al., DEBS 2007), section 5.2.

Subscriptions are conjunctions of *operators*, shared between many of them; what counts is how many
operators a scheduler evaluates per event. So this workload has no attributes and no values: a
predicate is a number, a subscription a list of different numbers, and an event the vector of which
predicates are true of it.

The generator of the paper: N_p predicates, each with a popularity weight, uniform in [0, 1] or
Zipf; N_s subscriptions of 3 to `longest` predicates, picked in proportion to their weight; events
that match 0.2 % of the subscriptions on average.

The paper does not say *how* the events come to match 0.2 %. Here predicates are true independently
of each other, each with its own probability. The probabilities are calibrated on the subscriptions
drawn, such that the mean over subscriptions of the product of their predicates' probabilities is
0.002. They are all equal (`"equal"`, about 0.17 for lengths 3 to 5), or u^gamma with u uniform and
gamma calibrated (`"heterogeneous"`). Some predicates occur in no subscription, above all under
Zipf: report `used` with any count of evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workload.base import recorded
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Bools,
    Floats,
    Ints,
    by_weight,
    distinct,
    event_stream,
    first,
    require,
    require_count,
    root,
    stream,
    zipf_weights,
)
from tamis.workload.tables import ragged

_BLOCK = 1 << 22  # truth values drawn at a time: 32 MB of random numbers


@dataclass(frozen=True, eq=False)
class OperatorWorkload:
    """Subscriptions over numbered predicates, and how often each predicate is true.

    `subscriptions` is a table of `id` and `predicates`, a list of int32 that index
    `probabilities`.
    """

    name: str
    subscriptions: pa.Table
    probabilities: Floats
    seed: int
    parameters: dict[str, Any]

    @property
    def used(self) -> int:
        """Predicates that occur in some subscription: the most that can be evaluated."""
        return len(pc.unique(pc.list_flatten(self.subscriptions["predicates"])))

    def truths(self, n: int, seed: int | None = None) -> Bools:
        """`n` events as rows of truth values, a column per predicate."""
        require_count(n, "events")
        rng = event_stream(self.seed, seed)
        truths = np.empty((n, len(self.probabilities)), dtype=np.bool_)
        step = max(1, _BLOCK // len(self.probabilities))
        for start in range(0, n, step):
            block = truths[start : start + step]
            np.less(rng.random(block.shape), self.probabilities, out=block)
        return truths


def make(
    n: int,
    *,
    seed: int = 0,
    predicates: int = 40_000,
    shortest: int = 3,
    longest: int = 5,
    popularity: str = "uniform",
    exponent: float = 1.0,
    probabilities: str = "heterogeneous",
    matching: float = 0.002,
) -> OperatorWorkload:
    """`n` subscriptions of the experiments with expensive operators.

    Args:
        n: N_s, the number of subscriptions (2,000 to 80,000 in the paper).
        seed: the same seed gives the same workload.
        predicates: N_p, the number of predicates (1,000 to 40,000).
        shortest: fewest predicates of a subscription (3).
        longest: most predicates of a subscription (5 to 11).
        popularity: weights of the predicates, "uniform" in [0, 1] or "zipf".
        exponent: of the Zipf law (0.8, 1, 1.2).
        probabilities: how often a predicate is true, "equal" or "heterogeneous".
        matching: share of the subscriptions that an event matches on average.
    """
    parameters = recorded(locals())
    require(n >= 1, f"the probabilities are calibrated on at least one subscription, got {n}")
    require(1 <= shortest <= longest <= predicates, "needs 1 <= shortest <= longest <= predicates")
    require(0 < matching < 1, f"matching is a share between 0 and 1, got {matching}")
    rng = stream(seed, SUBSCRIPTIONS)
    cumulative = np.cumsum(_weights(rng, predicates, popularity, exponent))
    lengths = rng.integers(shortest, longest, size=n, endpoint=True)
    picks = distinct(rng, n, longest, by_weight(cumulative))[first(lengths, longest)]
    starts = np.cumsum(lengths) - lengths
    lists = ragged(lengths, pa.array(picks.astype(np.int32)))
    return OperatorWorkload(
        "liu",
        pa.table({"id": np.arange(n, dtype=np.int64), "predicates": lists}),
        _calibrated(_scores(rng, predicates, probabilities), picks, starts, matching),
        seed,
        parameters,
    )


def _weights(rng: np.random.Generator, predicates: int, popularity: str, exponent: float) -> Floats:
    if popularity == "zipf":
        # Popularity and truth are independent draws, so the ranks need no shuffling.
        return zipf_weights(predicates, exponent)
    require(popularity == "uniform", f'popularity is "uniform" or "zipf", got {popularity!r}')
    return rng.random(predicates)


def _scores(rng: np.random.Generator, predicates: int, probabilities: str) -> Floats:
    """Logarithms of the probabilities before calibration, which scales them."""
    if probabilities == "equal":
        return np.full(predicates, -1.0)
    known = probabilities == "heterogeneous"
    require(known, f'probabilities are "equal" or "heterogeneous", got {probabilities!r}')
    return np.log1p(-rng.random(predicates))  # of 1 - u, which is never 0


def _calibrated(scores: Floats, picks: Ints, starts: Ints, matching: float) -> Floats:
    """Probabilities exp(gamma·score), with gamma such that the mean product is `matching`.

    The product over a subscription is exp(gamma·sum of its scores), so one sum per subscription is
    all the bisection needs. The mean falls from 1 as gamma rises from 0.
    """
    sums = np.add.reduceat(scores[picks], starts)

    def surplus(gamma: float) -> float:
        return float(np.exp(gamma * sums).mean()) - matching

    # With this gamma even the likeliest subscription is true no more often than `matching`.
    highest = np.log(matching) / sums.max()
    return np.exp(root(surplus, 0.0, float(highest)) * scores)
