"""The hulls of clauses on one attribute, for structures that cut space by attribute."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Bools, Floats, Int64s
from tamis.index.clauses import MISSING, SOME, ClauseArrays
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.kernel import kernel

SAMPLES = 64  # boundaries to estimate the share of events inside an interval


@kernel
def hulls(clauses: ClauseArrays, slots: Int64s, attribute: int) -> tuple[Bools, Int64s, Int64s]:
    """Whether each clause requires the attribute, and the codes that bound its values."""
    has = np.zeros(len(slots), np.bool_)
    low = np.full(len(slots), LOWEST, np.int64)
    high = np.full(len(slots), HIGHEST, np.int64)
    for i in range(len(slots)):
        row = clauses.start[slots[i]]
        end = row + clauses.size[slots[i]]
        while row < end and clauses.attribute[row] < attribute:
            row += 1
        while row < end and clauses.attribute[row] == attribute:
            if clauses.kind[row] == MISSING:
                row += 1
                continue
            if clauses.kind[row] == SOME and not has[i]:  # the first SOME term, all its rows
                low[i] = clauses.low[row]
                term = clauses.term[row]
                while row + 1 < end and clauses.term[row + 1] == term:
                    row += 1
                high[i] = clauses.high[row]
            has[i] = True
            row += 1
    return has, low, high


@kernel
def weigh(
    clauses: ClauseArrays, slots: Int64s, samples: Int64s, share: Floats
) -> tuple[Floats, Int64s]:
    """For each attribute, the saving of a partition by it: clauses times the share ruled out."""
    score = np.zeros(len(share))
    counts = np.zeros(len(share), np.int64)
    for slot in slots:
        before = -1
        for row in range(clauses.start[slot], clauses.start[slot] + clauses.size[slot]):
            a = clauses.attribute[row]
            if clauses.kind[row] != SOME or a == before:
                continue
            before = a
            inside = 0
            for i in range(SAMPLES):
                inside += clauses.low[row] <= samples[a, i] <= clauses.high[row]
            covered = inside / SAMPLES
            score[a] += 1.0 - 0.5 * (covered + share[a] * (covered > 0.0))
            counts[a] += 1
    return score, counts
