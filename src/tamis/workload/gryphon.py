"""The simulated load of Gryphon's matching tree (Aguilera et al., PODC 1999), last section.

A schema of several attributes with a few values each. An attribute is tested with a probability
that falls from one attribute to the next by a constant factor; tested values follow a Zipf law;
events bind every attribute, uniformly. Only equalities.

The numbers are missing from our copy of the paper. Chosen here: 30 attributes, 5 values, factor
0.85, Zipf exponent 1. Also chosen:

- *The first attribute* is tested with probability 0.98, not 1: then even the best attribute for an
  index is sometimes not tested, which factoring has to cope with.
- *Which value is popular*: value 1 on every attribute.
- *Subscriptions without a test* are drawn again.
- *"the number of matches per event is held"* while the subscriptions grow, but not how: `matches`
  solves for the popularity factor that gives this number on average.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from tamis.workload.base import Workload, attribute_names, plain_schema, recorded
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Floats,
    nonempty,
    require,
    require_count,
    root,
    stream,
    weighted,
    zipf_weights,
)
from tamis.workload.tables import EQ, events_table, subscriptions_table


def make(
    n: int,
    *,
    seed: int = 0,
    attributes: int = 30,
    values: int = 5,
    popularity: float = 0.98,
    factor: float = 0.85,
    exponent: float = 1.0,
    matches: float | None = None,
) -> Workload:
    """`n` subscriptions of the matching tree's simulations.

    Args:
        n: number of subscriptions.
        seed: the same seed gives the same workload.
        attributes: K, the number of attributes.
        values: V, the number of values of each.
        popularity: probability that a subscription tests the first attribute.
        factor: how much less often each further attribute is tested than the one before it.
        exponent: of the Zipf law of tested values.
        matches: subscriptions that an event matches on average; replaces `factor`.
    """
    parameters = recorded(locals())
    require_count(n)
    require(attributes >= 1 and values >= 1, "needs at least one attribute and one value")
    require(0 < popularity <= 1, f"popularity is a probability above 0, got {popularity}")
    require(0 <= factor <= 1, f"factor lies between 0 and 1, got {factor}")
    if matches is not None:
        factor = _factor(matches, n, attributes, values, popularity)
    rng = stream(seed, SUBSCRIPTIONS)
    tested = nonempty(rng, n, _popularities(attributes, popularity, factor))
    attribute = np.broadcast_to(np.arange(attributes, dtype=np.int32), tested.shape)[tested]
    rank = weighted(rng, np.cumsum(zipf_weights(values, exponent)), len(attribute))
    names = attribute_names(attributes)
    table = subscriptions_table(
        tested.sum(axis=1),
        names,
        attribute,
        np.full(len(attribute), EQ, dtype=np.int8),
        (rank + 1).astype(np.float64),
    )
    return Workload(
        "gryphon",
        plain_schema(
            {name: {"kind": "integer", "low": 1, "high": values} for name in names}, "mandatory"
        ),
        table,
        seed,
        parameters | {"factor": factor},
        partial(_events, names=names, values=values),
    )


def _popularities(attributes: int, popularity: float, factor: float) -> Floats:
    return popularity * factor ** np.arange(attributes, dtype=np.float64)


def match_rate(attributes: int, values: int, popularity: float, factor: float) -> float:
    """Share of the subscriptions that a uniform event matches on average.

    A test holds with probability 1/V for any value. Subscriptions without a test are
    drawn again, hence the division.
    """
    q = _popularities(attributes, popularity, factor)
    nothing = np.prod(1 - q)
    return float((np.prod(1 - q * (1 - 1 / values)) - nothing) / (1 - nothing))


def _factor(matches: float, n: int, attributes: int, values: int, popularity: float) -> float:
    def surplus(factor: float) -> float:
        return n * match_rate(attributes, values, popularity, factor) - matches

    reachable = surplus(0.0) >= 0 >= surplus(1.0)
    low, high = surplus(1.0) + matches, surplus(0.0) + matches
    require(
        reachable,
        f"{n} subscriptions can match an event {low:.3g} to {high:.3g} times, not {matches:.3g}",
    )
    return root(surplus, 0.0, 1.0)


def _events(rng: np.random.Generator, n: int, *, names: list[str], values: int) -> pa.Table:
    return events_table({name: rng.integers(1, values, size=n, endpoint=True) for name in names})
