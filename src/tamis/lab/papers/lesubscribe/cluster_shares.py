"""Subscriptions divided by their clusters, for matchers in several processes."""

from __future__ import annotations

import numpy as np

from tamis.encode.terms import Terms
from tamis.files.arrays import Int64s
from tamis.index.clauses import SOME


def cluster_share(terms: Terms, part: int, parts: int) -> Int64s:
    """The clauses of one of `parts` processes.

    A cluster, the clauses whose equalities are on the same attributes, goes to one process as a
    whole, the largest first, to the process that has the fewest clauses. Clauses without an
    equality have no cluster and are dealt in turn.
    """
    equal = (terms.kind == SOME) & (terms.low == terms.high)
    clause = np.repeat(np.arange(terms.clauses), np.diff(terms.starts))[equal]
    schema = np.zeros(terms.clauses, np.int64)
    np.bitwise_or.at(schema, clause, np.int64(1) << terms.attribute[equal].astype(np.int64))
    schemas, sizes = np.unique(schema[schema != 0], return_counts=True)
    loads = np.zeros(parts, np.int64)
    mine: list[int] = []
    for at in np.argsort(-sizes, kind="stable").tolist():
        lightest = int(loads.argmin())
        loads[lightest] += sizes[at]
        if lightest == part:
            mine.append(int(schemas[at]))
    clustered = np.flatnonzero(np.isin(schema, mine))
    return np.sort(np.concatenate([clustered, np.flatnonzero(schema == 0)[part::parts]]))
