"""TOPSS's workloads against section 5.1 of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from tamis import TamisError, workload
from tamis.workload.topss import SETTINGS, TopssSetting, make_predicates
from tests.unit.workload.brute import Predicates, match_rate


def test_w4_has_400_different_predicates_and_every_sixth_subscription_matches() -> None:
    """The number that the paper's memory for the bit matrix implies."""
    made = workload.make("topss", 50_000)
    assert match_rate(made.subscriptions, made.events(100)) == pytest.approx(0.176, rel=0.05)
    predicates = Predicates(made.subscriptions)
    value = predicates.value.to_pylist()
    assert len(set(zip(predicates.names, predicates.comparator, value, strict=True))) == 400
    assert predicates.lengths.mean() == pytest.approx(3, abs=0.03)
    assert set(predicates.lengths) == {1, 2, 3, 4, 5}
    _, counts = np.unique(predicates.comparator, return_counts=True)
    assert counts / counts.sum() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("setting", list(SETTINGS))
def test_attributes_are_different_and_values_in_their_domain(setting: str) -> None:
    made = workload.make("topss", 5000, setting=setting)
    predicates = Predicates(made.subscriptions)
    pairs = set(zip(predicates.owner, predicates.names, strict=True))
    assert len(pairs) == len(predicates.owner)
    assert predicates.lengths.max() == SETTINGS[setting].predicates
    value = np.asarray(predicates.value)
    for place, name in enumerate(SETTINGS[setting].names()):
        domains = SETTINGS[setting].domains
        low, high = domains[place % len(domains)]
        mine = value[predicates.names == name]
        assert low <= mine.min() <= mine.max() <= high
        kind = made.schema["attributes"][name]
        assert (kind["low"], kind["high"]) == (low - 2, high + 2)


def test_events_bind_every_attribute_in_the_paper() -> None:
    events = workload.make("topss", 1, setting="W3").events(100)
    assert events.num_columns == 120
    assert all(column.null_count == 0 for column in events.itercolumns())


def test_a_setting_of_ones_own_may_bind_fewer() -> None:
    own = TopssSetting(
        attributes=8, predicates=2, pairs=3, domains=((1, 4),), subscription_batch=1, event_batch=1
    )
    events = workload.make("topss", 10, setting=own).events(500)
    bound = np.stack([np.asarray(column.is_valid()) for column in events.itercolumns()])
    assert (bound.sum(axis=0) == 3).all()
    assert bound.mean(axis=1) == pytest.approx(3 / 8, abs=0.1)


@pytest.mark.parametrize("setting", ["W0", "W3", "W4"])
def test_predicates_can_be_asked_for_instead_of_subscriptions(setting: str) -> None:
    made = make_predicates(300, seed=3, setting=setting)
    predicates = Predicates(made.subscriptions)
    found = list(
        zip(predicates.names, predicates.comparator, predicates.value.to_pylist(), strict=True)
    )
    last = int(predicates.lengths[-1])
    assert len(set(found)) >= 300
    assert len(set(found[:-last])) < 300, "the last subscription is needed"
    assert made.parameters == {"n": len(predicates.lengths), "predicates": 300, "setting": setting}


def test_predicates_run_out() -> None:
    with pytest.raises(TamisError, match="400 different predicates"):
        make_predicates(390, setting="W4")
