"""Whether two answers to the same events are the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.match.base import Matches


class Differences(NamedTuple):
    """Pairs of an event and a subscription on which two answers differ."""

    missing: int  # only in the answer that is trusted
    extra: int  # only in the other, or more than once there


def differences(tried: Matches, trusted: Matches) -> Differences:
    """Compare answers whose ids, or slots, are numbers from 0 up."""
    ids = [np.asarray(each.subscriptions, np.int64) for each in (tried, trusted)]
    width = 1 + max(int(each.max(initial=0)) for each in ids)
    found, right = (
        each.events * width + of for each, of in zip((tried, trusted), ids, strict=True)
    )
    distinct = np.unique(found)
    shared = len(np.intersect1d(distinct, right, assume_unique=True))
    return Differences(len(right) - shared, len(found) - shared)
