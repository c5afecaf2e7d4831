"""The workloads of DEXIN (Fan, Liu, Tang, 2016), section 4.

M attributes whose values are η distinct numbers in [0, 1]. Every subscription constrains every
attribute, by a point or by a range of width θ; every event binds every attribute. Either all values
are drawn (uniform or Zipf), or subscriptions are drawn around events such that an event matches a
fixed share ξ of them (section 4.1.7).

What the paper leaves open, and the choices made here:

- *λ, "the proportion of point-based constraints in a subscription"*, reads two ways that differ a
  thousandfold. `"probability"`, the default: each constraint is a point with probability λ, so a
  third of the subscriptions have none at λ = 0.1 and M = 10, and about 340 in a million match an
  event. `"share"`: each subscription has λM points, here one, and 0.2 in a million match. Where λM
  is not whole, the share is met on average: some subscriptions have one point more.
- *Values* lie on an even grid, 0 and 1 included; θ is rounded to the grid and the low end is drawn
  from the grid points up to 1 - θ. A range may shrink to one value; it stays two predicates.
- *Zipf*: exponent 1, ranks in the order of the values, so that 0 is the most popular one and a
  "local area" of the index fills up, as the paper says. It governs points, the low ends of ranges
  and the values of events. `"mixed"` tosses a coin for each attribute (figures 15 and 16).
- *Fixed matching rate.* Of "a range-based or point-based constraint that only covers the value" the
  range is written `>= v and <= v`. The other constraints are points or ranges around the value, at
  a uniform place. There are as many events as fit, ⌊1/ξ⌋; what subscriptions remain belong to one
  more event that is never published. `events` repeats them at random: at ξ = 20 % there are five
  different events. An event matches another's subscription only if both share a value, so a few
  more than ξ may match where values are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from tamis.workload.base import Workload, attribute_names, plain_schema, recorded
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Bools,
    Floats,
    Ints,
    require,
    require_count,
    stream,
    weighted,
    zipf_weights,
)
from tamis.workload.tables import EQ, GE, LE, events_table, subscriptions_table

DISTRIBUTIONS = ("uniform", "zipf", "mixed")
READINGS = ("probability", "share")


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """The η values 0, 1/(η-1), …, 1 by their index, and which attributes draw them by Zipf."""

    cardinality: int
    cumulative: Floats
    skewed: tuple[bool, ...]

    @property
    def last(self) -> int:
        return self.cardinality - 1

    def draw(
        self, rng: np.random.Generator, attribute: int, size: int, last: Ints | None = None
    ) -> Ints:
        """Indexes of values of an attribute, none above `last`."""
        if self.skewed[attribute]:
            return weighted(rng, self.cumulative, size, last)
        return rng.integers(self.last if last is None else last, size=size, endpoint=True)

    def columns(self, rng: np.random.Generator, n: int) -> Ints:
        """Events, as an (n, M) matrix of indexes."""
        drawn = [self.draw(rng, attribute, n) for attribute in range(len(self.skewed))]
        return np.stack(drawn, axis=1)


def make(
    n: int,
    *,
    seed: int = 0,
    attributes: int = 10,
    cardinality: int = 10_000,
    points: float = 0.1,
    reading: str = "probability",
    theta: float | tuple[float, float] = (0.2, 0.8),
    distribution: str = "uniform",
    exponent: float = 1.0,
    matching: float | None = None,
) -> Workload:
    """`n` subscriptions of DEXIN's experiments.

    Args:
        n: N, the number of subscriptions (0.25 to 1.75 million in the paper).
        seed: the same seed gives the same workload.
        attributes: M (2 to 22).
        cardinality: η, the number of distinct values (100 to 1,000,000).
        points: λ, the proportion of points among the constraints (0.1 to 0.9).
        reading: of λ, "probability" or "share"; see above.
        theta: θ, the width of ranges: one number, or the bounds between which it is uniform.
        distribution: "uniform", "zipf" or "mixed".
        exponent: of the Zipf law.
        matching: ξ, the share of the subscriptions that an event matches (0.001 to 0.2); None
            leaves it to chance.
    """
    parameters = recorded(locals())
    narrow, wide = theta if isinstance(theta, tuple | list) else (theta, theta)
    require_count(n)
    require(attributes >= 1, f"needs at least one attribute, got {attributes}")
    require(cardinality >= 2, f"the values 0 and 1 make a cardinality of 2, got {cardinality}")
    require(0 <= points <= 1, f"points is a proportion between 0 and 1, got {points}")
    require(reading in READINGS, f"the reading of points is one of {READINGS}, got {reading!r}")
    require(0 <= narrow <= wide <= 1, f"theta is a width or two within 0 and 1, got {theta}")
    known = distribution in DISTRIBUTIONS
    require(known, f"the distribution is one of {DISTRIBUTIONS}, got {distribution!r}")

    rng = stream(seed, SUBSCRIPTIONS)
    coin = rng.random(attributes) < 0.5
    skewed = coin if distribution == "mixed" else np.full(attributes, distribution == "zipf")
    grid = ValueGrid(
        cardinality,
        np.cumsum(zipf_weights(cardinality, exponent)),
        tuple(skewed.tolist()),
    )
    is_point = _points(rng, n, attributes, points, reading)
    if matching is None:
        low, high = _ends(rng, grid, is_point, (narrow, wide))
        draw = partial(_events, grid=grid)
    else:
        events, owner = _owners(rng, grid, n, matching)
        low, high = _ends(rng, grid, is_point, (narrow, wide), events[owner])
        draw = partial(_published_events, grid=grid, published=events[:-1])
    return Workload(
        "dexin",
        plain_schema(dict.fromkeys(attribute_names(attributes), "decimal"), "mandatory"),
        _table(low, high, is_point, grid.last),
        seed,
        parameters | {"theta": (narrow, wide)},
        draw,
    )


def _points(
    rng: np.random.Generator, n: int, attributes: int, points: float, reading: str
) -> Bools:
    """Which constraints are points, as an (n, M) matrix."""
    if reading == "probability":
        return rng.random((n, attributes)) < points
    wanted = np.floor(points * attributes + rng.random(n))
    rank = rng.random((n, attributes)).argsort(axis=1)  # a random permutation in each row
    return rank < wanted[:, None]


def _owners(
    rng: np.random.Generator, grid: ValueGrid, n: int, matching: float
) -> tuple[Ints, Ints]:
    """Events, and for each subscription the event it is drawn around.

    The last event is never published: it owns the subscriptions that do not divide evenly.
    """
    require(0 < matching <= 1, f"matching is a share above 0, got {matching}")
    # The product and the quotient may be slightly below the exact whole number.
    each, published = int(matching * n + 1e-9), int(1 / matching + 1e-9)
    require(each >= 1, f"{n} subscriptions are too few for a matching rate of {matching}")
    owner = np.full(n, published)
    owner[: published * each] = np.repeat(np.arange(published), each)
    return grid.columns(rng, published + 1), rng.permutation(owner)


def _ends(
    rng: np.random.Generator,
    grid: ValueGrid,
    is_point: Bools,
    theta: tuple[float, float],
    centre: Ints | None = None,
) -> tuple[Ints, Ints]:
    """The ends of constraints, drawn independently of events, or such that they cover `centre`.

    `centre` has the values of each subscription's own event; one constraint covers no other value.
    """
    low, high = np.empty(is_point.shape, np.int32), np.empty(is_point.shape, np.int32)
    n, attributes = is_point.shape
    if centre is not None:
        only = rng.integers(attributes, size=(n,))
        is_point = is_point | (only[:, None] == np.arange(attributes))
    for attribute in range(attributes):  # a column at a time keeps the temporaries small
        width = np.rint(rng.uniform(*theta, size=n) * grid.last).astype(np.int64)
        width[is_point[:, attribute]] = 0
        if centre is None:
            low[:, attribute] = grid.draw(rng, attribute, n, grid.last - width)
        else:
            lowest = np.maximum(centre[:, attribute] - width, 0)
            highest = np.minimum(centre[:, attribute], grid.last - width)
            low[:, attribute] = rng.integers(lowest, highest, endpoint=True)
        high[:, attribute] = low[:, attribute] + width
    return low, high


def _table(low: Ints, high: Ints, is_point: Bools, last: int) -> pa.Table:
    """A point is one predicate, a range two: `>=` its low end, then `<=` its high end."""
    shape = (*is_point.shape, 2)
    kept = np.ones(shape, dtype=np.bool_)
    kept[..., 1] = ~is_point
    value = np.stack((low, high), axis=2)[kept] / last
    comparator = np.full(shape, LE, dtype=np.int8)
    comparator[..., 0] = np.where(is_point, EQ, GE)
    attribute = np.arange(shape[1], dtype=np.int16)[None, :, None]
    return subscriptions_table(
        kept.sum(axis=(1, 2)),
        attribute_names(shape[1]),
        np.broadcast_to(attribute, shape)[kept],
        comparator[kept],
        value,
    )


def _values(indexes: Ints, grid: ValueGrid) -> pa.Table:
    # The same division as for subscriptions, so that equal indexes are equal doubles.
    columns = zip(attribute_names(indexes.shape[1]), indexes.T / grid.last, strict=True)
    return events_table(dict(columns))


def _events(rng: np.random.Generator, n: int, *, grid: ValueGrid) -> pa.Table:
    return _values(grid.columns(rng, n), grid)


def _published_events(
    rng: np.random.Generator, n: int, *, grid: ValueGrid, published: Ints
) -> pa.Table:
    return _values(published[rng.integers(len(published), size=n)], grid)
