"""The row of residuals: both engines are right, take turns, and have no figures if they are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tamis import TamisError, workload
from tamis.engine.residuals.residual_filter import ResidualFilter
from tamis.lab.bench import residuals
from tamis.lab.bench.peers import ROWS, Row, measure, steps
from tamis.lab.bench.residuals import _overhead
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.results.records import RefusedResult, ResidualResult
from tamis.match import registry
from tests.unit.lab.examples import Greedy, Lossy, entry

QUICK = BenchSetting(matchers=("scan",), rows=("residuals",)).quick()


@pytest.fixture
def matching(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload in which a few hundred subscriptions are enough for matches."""
    often = workload.variants.Variant("often", "dexin", {"matching": 0.1})
    monkeypatch.setitem(workload.VARIANTS, "often", often)
    monkeypatch.setitem(ROWS, "residuals", Row("often", 400, residuals=True))


def _only(setting: BenchSetting) -> ResidualResult:
    (found,) = (each for each in measure(setting) if not isinstance(each, str))
    assert isinstance(found, ResidualResult)
    return found


@pytest.mark.usefixtures("matching")
def test_the_result_is_complete() -> None:
    found = _only(replace(QUICK, seconds=10.0))  # enough for the whole batch on any machine
    assert (found.subscriptions, found.residuals, found.clauses) == (400, 40, 360 + 40 * 5)
    assert found.events == QUICK.batch
    assert 0 < found.matches < found.plain_matches
    assert found.dropped > 0
    assert found.verified > 0
    for each in (found.alone, found.batch):
        assert 0 < each.low <= each.times <= each.high
        assert min(each.us, each.plain_us) > 0
    assert min(found.residuals_us, found.load_s, found.plain_load_s) > 0
    assert found.bytes_each > found.plain_bytes_each > 0


@pytest.mark.parametrize("matcher", ["scan", "tamis"])
def test_the_row_itself_works_at_a_small_size(matcher: str) -> None:
    setting = replace(QUICK, matchers=(matcher,))
    given = list(measure(setting))
    assert len(given) == steps(setting)
    (found,) = (each for each in given if isinstance(each, ResidualResult))
    assert (found.row, found.title) == ("residuals", "DEXIN, a tenth with residuals")
    assert (found.subscriptions, found.residuals) == (500, 50)


@pytest.mark.usefixtures("matching")
def test_residuals_that_are_not_evaluated_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def passing(self: ResidualFilter, batch: Any, found: Any, *_: Any) -> Any:
        return found

    monkeypatch.setattr(ResidualFilter, "filter", passing)
    with pytest.raises(TamisError, match="'scan' and the semantics disagree on event"):
        _only(QUICK)
    monkeypatch.setattr(residuals, "_VERIFIED", 0)
    assert _only(QUICK).verified == 0


@pytest.mark.usefixtures("matching")
@pytest.mark.parametrize("wrong", [Lossy, Greedy])
def test_a_wrong_matcher_has_no_figures(wrong: type, monkeypatch: pytest.MonkeyPatch) -> None:
    name, *_ = made = entry(wrong)
    monkeypatch.setitem(registry._TABLE, name, made[name])
    with pytest.raises(TamisError, match=f"'{name}' and the semantics disagree"):
        _only(replace(QUICK, matchers=(name,)))


def test_ratios_are_taken_round_by_round() -> None:
    found = _overhead([(20e-6, 10e-6), (300e-6, 100e-6), (40e-6, 10e-6)])
    assert (found.us, found.plain_us, found.times) == pytest.approx((40, 10, 3))
    assert (found.low, found.high) == pytest.approx((2, 4))


def test_a_matcher_may_refuse_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "residuals", Row("dexin", 40_000, residuals=True))
    small = BenchSetting(
        matchers=("counting-byte",), rows=("residuals",), rounds=1, seconds=0.01, batch=5
    )
    (refused,) = (each for each in measure(small) if not isinstance(each, str))
    assert isinstance(refused, RefusedResult)
