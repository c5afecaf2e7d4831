"""The timing of repeated runs."""

from __future__ import annotations

import pytest

from tamis.lab.instruments.timing import Spread, fitting, repeated


def test_repeated_stops_at_its_budget_and_prepares_each_time() -> None:
    assert repeated(lambda: None, repeats=4, budget=10).repeats == 4
    assert repeated(lambda: None, repeats=4, budget=0).repeats == 1
    assert fitting(lambda: None, most=5, budget=100) == 5
    assert fitting(lambda: None, most=5, budget=0) == 1
    calls: list[str] = []
    repeated(
        lambda: calls.append("run"), repeats=2, budget=10, prepare=lambda: calls.append("prepare")
    )
    assert calls == ["prepare", "run", "prepare", "run"]


def test_a_spread_is_of_what_was_measured() -> None:
    spread = Spread.of(n * 1e-6 for n in range(1, 201))
    assert (spread.p50, spread.p99, spread.most) == pytest.approx((100, 198, 200))
    assert spread.count == 200
    assert Spread.of([5e-6]).p99 == pytest.approx(5)
