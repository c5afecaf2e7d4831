"""Growth, judgements and figures in one line."""

from __future__ import annotations

import pytest

from tamis.lab.experiments.experiment import Standing
from tamis.lab.papers.checks import ends, growth_exponent, judge, judge_all, listed, percent


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    assert growth_exponent({x: 3 * x**power for x in (1, 10, 50, 400)}) == pytest.approx(power)


def test_judgements() -> None:
    assert judge(True, "3", "because", opposite=True).standing is Standing.CONFIRMED
    assert judge(False, "3", "because", opposite=True).standing is Standing.CONTRARY
    assert judge(False, "3", "because").standing is Standing.NOT_CONFIRMED
    assert judge_all([True, True], "3", "because").standing is Standing.CONFIRMED
    assert judge_all([True, False], "3", "because").standing is Standing.NOT_CONFIRMED
    assert judge_all([False, False], "3", "because").standing is Standing.CONTRARY


def test_too_few_points_are_no_verdict() -> None:
    with pytest.raises(ValueError, match="no point"):
        judge_all([], "3", "because")
    with pytest.raises(ValueError, match="two points"):
        growth_exponent({5: 1.0})


def test_only_what_is_not_confirmed_needs_a_reason() -> None:
    assert judge(True, "3", "because").why == ""
    assert judge(False, "3", "because").why == "because"


def test_figures_in_one_line() -> None:
    assert listed({2_000: 31.2, 80_000: 40_000.0, "uniform": 1.0}) == (
        "2,000: 31, 80,000: 40,000, uniform: 1"
    )
    assert ends({10: 1.0, 5: 2.0, 80: 3.0}) == (2.0, 3.0)
    assert [percent(share) for share in (0.614, 0.0614, -0.03)] == ["61 %", "6.1 %", "-3.0 %"]
