"""The wide and sparse workload."""

from __future__ import annotations

import numpy as np
import pytest

from tamis import workload
from tests.unit.workload.brute import Predicates, match_rate


def test_events_have_only_columns_that_occur() -> None:
    events = workload.make("sparse", 1).events(100)
    bound = np.stack([np.asarray(column.is_valid()) for column in events.itercolumns()])
    assert (bound.sum(axis=0) == 30).all()
    assert bound.any(axis=1).all()
    assert events.num_columns < 1500


def test_subscriptions_prefer_popular_attributes() -> None:
    predicates = Predicates(workload.make("sparse", 50_000).subscriptions)
    assert set(predicates.lengths) == {3, 4, 5, 6}
    assert len(set(zip(predicates.owner, predicates.names, strict=True))) == len(predicates.owner)
    names, counts = np.unique(predicates.names, return_counts=True)
    assert names[counts.argmax()] == "a1"
    assert len(names) > 4500
    assert (predicates.comparator == "=").mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
def test_some_events_match() -> None:
    made = workload.make("sparse", 50_000)
    assert 0 < match_rate(made.subscriptions, made.events(50)) < 0.01
