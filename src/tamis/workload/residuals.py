"""Conditions that keep a residual, made from subscriptions of predicates.

A condition asks for the predicates of its subscription and for two `or`s of five alternatives. All
25 combinations are more than a condition is multiplied out to, so one `or` becomes a residual
(decision 0027). An alternative bounds one attribute, within the bounds of the predicates, so that
every combination is possible. Of a range it leaves an eighth on average, at either end; a point is
inside. So an `or` holds for about half of the events that are inside five ranges.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workload.base import Workload
from tamis.workload.draw import SUBSCRIPTIONS, Floats, require, stream
from tamis.workload.tables import COMPARATORS, EQ, GE, LE, conditions, joined, ragged, words

_ORS, _ALTERNATIVES = 2, 5
_LEFT = 0.25  # the largest share of a range that an alternative leaves


def with_residuals(made: Workload, every: int = 10) -> pa.Table:
    """Every tenth subscription of a workload, as `id` and `condition` in text, with a residual.

    The predicates compare numbers in [0, 1] by `=`, `<=` and `>=`.
    """
    rows = pa.array(np.arange(0, made.subscriptions.num_rows, every))
    some = made.subscriptions.take(rows)
    names = list(made.schema["attributes"])
    require(len(names) >= _ALTERNATIVES, f"needs {_ALTERNATIVES} attributes, got {len(names)}")
    low, high = _bounds(some, names)
    rng = stream(made.seed, SUBSCRIPTIONS, 1)
    shape = (len(rows), _ORS, _ALTERNATIVES)
    picked = rng.random((*shape[:2], len(names))).argsort(axis=2)[..., :_ALTERNATIVES]
    owner = np.arange(len(rows))[:, None, None]
    left = rng.uniform(0, _LEFT, shape) * (high - low)[owner, picked]
    at_most = rng.random(shape) < 0.5
    bound = np.where(at_most, low[owner, picked] + left, high[owner, picked] - left)
    alternatives = joined(
        " ",
        words(picked.ravel(), names),
        words(np.where(at_most, LE, GE).ravel(), COMPARATORS),
        pa.array(bound.ravel()).cast(pa.string()),
    )
    ors = _joined_lists(alternatives, _ALTERNATIVES, " or ")
    both = _joined_lists(joined("", "(", ors, ")"), _ORS, " and ")
    written = joined(" and ", conditions(some), both)
    return pa.table({"id": some.column("id"), "condition": written})


def _joined_lists(texts: pa.Array, size: int, separator: str) -> pa.Array:
    lengths = np.full(len(texts) // size, size)
    return pc.binary_join(ragged(lengths, texts), separator)


def _bounds(subscriptions: pa.Table, names: list[str]) -> tuple[Floats, Floats]:
    """The least and the largest value that the predicates accept, by subscription and attribute."""
    lists = subscriptions.column("predicates").combine_chunks()
    assert isinstance(lists, pa.ListArray)
    structs = lists.flatten()
    assert isinstance(structs, pa.StructArray)
    attribute, comparator, value, _ = structs.flatten()
    row = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    column = pc.index_in(attribute, pa.array(names)).to_numpy()
    sign = pc.index_in(comparator, pa.array(COMPARATORS)).to_numpy()
    require(bool(np.isin(sign, (EQ, LE, GE)).all()), "residuals are made of =, <= and >= only")
    low, high = np.zeros((len(lists), len(names))), np.ones((len(lists), len(names)))
    above, below = sign != LE, sign != GE
    low[row[above], column[above]] = value.to_numpy()[above]
    high[row[below], column[below]] = value.to_numpy()[below]
    return low, high
