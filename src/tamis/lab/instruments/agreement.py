"""Comparison of two answers to the same events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.match.base import Matches


class Differences(NamedTuple):
    """Pairs of an event and a subscription that only one of two answers has."""

    missing: int  # only in the trusted answer
    extra: int  # only in the other answer, or there twice


def differences(tried: Matches, trusted: Matches) -> Differences:
    """Compare answers whose ids, or slots, are numbers from 0."""
    ids = [np.asarray(each.subscriptions, np.int64) for each in (tried, trusted)]
    width = 1 + max(int(each.max(initial=0)) for each in ids)
    found, right = (
        each.events * width + of for each, of in zip((tried, trusted), ids, strict=True)
    )
    distinct = np.unique(found)
    shared = len(np.intersect1d(distinct, right, assume_unique=True))
    return Differences(len(right) - shared, len(found) - shared)
