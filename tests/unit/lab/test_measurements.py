"""The measurements: what they compute, not how fast anything is."""

from __future__ import annotations

import numpy as np
import pytest

from tamis import TamisError
from tamis.lab.bench import matchers, measurements
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.yardstick import Yardstick


def test_a_wrong_matcher_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Yardstick, "match", lambda self, event: np.array([7]))
    with pytest.raises(TamisError, match="disagree"):
        list(matchers.measure(BenchSetting(matchers=("naive",)).quick()))


# That on Spark is measured in tests/integration/spark, where there is a session.
@pytest.mark.parametrize("name", [name for name in measurements.MEASUREMENTS if name != "spark"])
@pytest.mark.slow
def test_measurements_give_as_many_results_as_they_say(name: str) -> None:
    setting = BenchSetting(matchers=("scan",)).quick()
    measurement = measurements.MEASUREMENTS[name]
    given = list(measurement.run(setting))
    assert len(given) == measurement.steps(setting)
    assert {each.measurement for each in given if not isinstance(each, str)} == {name}


def test_measurements_are_chosen_by_name() -> None:
    assert [each.name for each in measurements.chosen(["match", "parse"])] == ["parse", "match"]
    usual = {each.name for each in measurements.chosen([])}
    named = {"scale", "churn", "operators", "spark", "service"}
    assert measurements.MEASUREMENTS.keys() - usual == named, "only on request"
    assert [each.name for each in measurements.chosen(["churn"])] == ["churn"]
    with pytest.raises(TamisError, match="did you mean 'parse'"):
        measurements.chosen(["parce"])
