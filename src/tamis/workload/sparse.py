"""A wide and sparse workload: thousands of attributes, of which each event binds a few.

The papers' schemas are narrow (6 to 120 attributes) and mostly dense. Catalogues, logs and
telemetry are not: the schema is the union of what thousands of publishers say. Here attributes have
Zipf popularity, the same for subscribers and publishers; a subscription constrains 3 to 6 of 5,000
attributes, an event binds 30. No paper has this workload. It shows which matchers pay for
attributes that an event does not bind.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.workload.base import Workload, attribute_names, plain_schema, recorded
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Floats,
    by_weight,
    distinct,
    first,
    require,
    require_count,
    stream,
    zipf_weights,
)
from tamis.workload.tables import EQ, GE, LE, events_table, subscriptions_table


def make(
    n: int,
    *,
    seed: int = 0,
    attributes: int = 5000,
    shortest: int = 3,
    longest: int = 6,
    pairs: int = 30,
    values: int = 100,
    equalities: float = 0.5,
    exponent: float = 1.0,
) -> Workload:
    """`n` subscriptions over a wide schema.

    Args:
        n: number of subscriptions.
        seed: the same seed gives the same workload.
        attributes: width of the schema.
        shortest: fewest predicates of a subscription.
        longest: most predicates of a subscription.
        pairs: attributes that an event binds.
        values: distinct values of each attribute, uniform, in subscriptions and events.
        equalities: share of `=` among the predicates; the others are `<=` and `>=`, half each.
        exponent: of the Zipf law of attributes' popularity.
    """
    parameters = recorded(locals())
    require_count(n)
    require(1 <= shortest <= longest <= attributes, "needs 1 <= shortest <= longest <= attributes")
    require(1 <= pairs <= attributes, f"an event binds 1 to {attributes} attributes, got {pairs}")
    require(values >= 1, f"an attribute needs at least one value, got {values}")
    require(0 <= equalities <= 1, f"equalities is a share, got {equalities}")
    rng = stream(seed, SUBSCRIPTIONS)
    cumulative = np.cumsum(zipf_weights(attributes, exponent))
    lengths = rng.integers(shortest, longest, size=n, endpoint=True)
    kept = first(lengths, longest)
    attribute = distinct(rng, n, longest, by_weight(cumulative, np.int32))[kept]
    comparator = np.where(rng.random(len(attribute)) < 0.5, LE, GE)
    comparator[rng.random(len(attribute)) < equalities] = EQ
    value = rng.integers(values, size=len(attribute)).astype(np.float64)
    names = attribute_names(attributes)
    kind = {"kind": "integer", "low": 0, "high": values - 1}
    return Workload(
        "sparse",
        plain_schema({name: dict(kind) for name in names}, "optional"),
        subscriptions_table(lengths, names, attribute, comparator, value),
        seed,
        parameters,
        partial(_events, names=names, cumulative=cumulative, pairs=pairs, values=values),
    )


def _events(
    rng: np.random.Generator,
    n: int,
    *,
    names: list[str],
    cumulative: Floats,
    pairs: int,
    values: int,
) -> pa.Table:
    """Only attributes that some event binds become columns: the others would be all null."""
    bound = distinct(rng, n, pairs, by_weight(cumulative, np.int32))
    value = rng.integers(values, size=bound.shape)
    order = np.argsort(bound, axis=None, kind="stable")
    occurring, starts, counts = np.unique(
        bound.ravel()[order], return_index=True, return_counts=True
    )
    rows, drawn = order // pairs, value.ravel()[order]
    columns: dict[str, Any] = {}
    for attribute, start, count in zip(occurring, starts, counts, strict=True):
        here = slice(start, start + count)
        column = np.zeros(n, dtype=np.int64)
        absent = np.ones(n, dtype=np.bool_)
        column[rows[here]] = drawn[here]
        absent[rows[here]] = False
        columns[names[attribute]] = pa.array(column, mask=absent)
    return events_table(columns)
