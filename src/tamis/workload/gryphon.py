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

The theorem of the paper is about the worst set of subscriptions, and its remark on events about the
worst event. `make_worst_set` and `make_worst_event` make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.workload.base import Workload, attribute_names, plain_schema, recorded
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Floats,
    Ints,
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
    _require_sizes(attributes, values)
    require(0 < popularity <= 1, f"popularity is a probability above 0, got {popularity}")
    require(0 <= factor <= 1, f"factor lies between 0 and 1, got {factor}")
    if matches is not None:
        factor = _factor(matches, n, attributes, values, popularity)
    rng = stream(seed, SUBSCRIPTIONS)
    tested = nonempty(rng, n, _popularities(attributes, popularity, factor))
    attribute = np.broadcast_to(np.arange(attributes, dtype=np.int32), tested.shape)[tested]
    rank = weighted(rng, np.cumsum(zipf_weights(values, exponent)), len(attribute))
    return _workload(
        tested.sum(axis=1),
        attribute,
        rank + 1,
        attributes,
        values,
        seed,
        parameters | {"factor": factor},
    )


def make_worst_set(n: int, *, seed: int = 0, attributes: int = 30, values: int = 5) -> Workload:
    """The `n` subscriptions for which a uniform event visits most nodes of the matching tree.

    A subscription adds the nodes below its last test to the tree. If the last of its j tests is on
    attribute b of K, counted from 0, these are K - b nodes, and an event visits them with
    probability 1/V^j. The n subscriptions with the largest product are the worst set: for each of
    them, the one without its last test has a larger product and is in the set as well. A test on
    the last attribute comes before all others, because every event visits the stars that lead to
    it. The subscription without any test is left out.
    """
    parameters = recorded(locals())
    _require_sizes(attributes, values)
    most = (values + 1) ** attributes - 1
    require(1 <= n <= most, f"there are 1 to {most:,} subscriptions with a test, not {n:,}")
    lengths, attribute, value = (
        np.concatenate(part) for part in zip(*_worst_first(n, attributes, values), strict=True)
    )
    return _workload(lengths, attribute, value, attributes, values, seed, parameters)


def worst_visits(made: Workload) -> float:
    """Nodes of the tree of a worst set that a uniform event visits on average."""
    size, width, values = (made.parameters[name] for name in ("n", "attributes", "values"))
    groups = _worst_groups(size, width, values)
    visits = (many * (width - last) / values**tests for tests, last, many, _ in groups)
    return float(width + sum(visits))


def make_worst_event(n: int, *, seed: int = 0, attributes: int = 30, values: int = 5) -> Workload:
    """`n` different subscriptions that all ask for value 1, and events that have it everywhere.

    Such an event follows all edges and visits all nodes of the matching tree. Each attribute is
    tested with probability 1/2.
    """
    parameters = recorded(locals())
    _require_sizes(attributes, values)
    most = 2**attributes - 1
    require(1 <= n <= most // 2, f"draws 1 to {most // 2:,} different subscriptions, not {n:,}")
    rng = stream(seed, SUBSCRIPTIONS)
    tested = np.zeros((0, attributes), np.bool_)
    while len(tested) < n:
        more = nonempty(rng, n - len(tested), np.full(attributes, 0.5))
        tested = np.unique(np.concatenate([tested, more]), axis=0)
    attribute = np.broadcast_to(np.arange(attributes, dtype=np.int32), tested.shape)[tested]
    ones = np.ones(len(attribute), np.int64)
    made = _workload(tested.sum(axis=1), attribute, ones, attributes, values, seed, parameters)
    return replace(made, draw=partial(_events, names=attribute_names(attributes), values=1))


def _worst_groups(n: int, attributes: int, values: int) -> Iterator[tuple[int, int, int, int]]:
    """Number of tests, last attribute, number of subscriptions, and how many of them to skip."""
    yield 1, attributes - 1, 1, 0
    n -= 1
    groups = [
        (tests, last) for tests in range(1, attributes + 1) for last in range(tests - 1, attributes)
    ]
    for tests, last in sorted(groups, key=lambda each: (each[1] - attributes) / values ** each[0]):
        skip = int((tests, last) == (1, attributes - 1))
        many = min(n, comb(last, tests - 1) * values**tests - skip)
        if many:
            yield tests, last, many, skip
        n -= many
        if not n:
            return


def _worst_first(n: int, attributes: int, values: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Lengths, attributes and values of the worst subscriptions, group by group."""
    for tests, last, many, skip in _worst_groups(n, attributes, values):
        stop = skip + many
        digits = np.arange(min(stop, values**tests))[:, None] // values ** np.arange(tests) % values
        sets = list(islice(combinations(range(last), tests - 1), -(-stop // len(digits))))
        before = np.array(sets, np.int32).reshape(len(sets), tests - 1)
        places = np.column_stack([before, np.full(len(sets), last, np.int32)])
        yield (
            np.full(many, tests),
            np.repeat(places, len(digits), axis=0)[skip:stop].ravel(),
            np.tile(digits + 1, (len(sets), 1))[skip:stop].ravel(),
        )


def _require_sizes(attributes: int, values: int) -> None:
    require(attributes >= 1 and values >= 1, "needs at least one attribute and one value")


def _workload(
    lengths: Ints,
    attribute: Ints,
    value: Ints,
    attributes: int,
    values: int,
    seed: int,
    parameters: dict[str, Any],
) -> Workload:
    """Subscriptions of equalities; the columns hold them one after the other."""
    names = attribute_names(attributes)
    return Workload(
        "gryphon",
        plain_schema(
            {name: {"kind": "integer", "low": 1, "high": values} for name in names}, "mandatory"
        ),
        subscriptions_table(
            lengths,
            names,
            attribute,
            np.full(len(attribute), EQ, dtype=np.int8),
            value.astype(np.float64),
        ),
        seed,
        parameters,
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
