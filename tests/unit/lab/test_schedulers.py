"""Evaluations of schedulers: the right settings, honest goals, and no wrong answer."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from tamis import TamisError
from tamis.cli.reports.bench import show
from tamis.files.arrays import Int8s, Int64s
from tamis.lab.bench import schedulers
from tamis.lab.bench.schedulers import CASES, SchedulerCase
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.results.records import AS_A_SET, AS_DRAWN, COSTS, SCHEDULERS, Goal, SchedulerResult
from tamis.lab.results.verdicts import order_exceptions
from tamis.schedule import registry
from tamis.schedule.base import Scheduler, Simulation
from tamis.schedule.naive import NaiveScheduler
from tests.unit.lab.examples import SCHEDULER

QUICK = BenchSetting().quick()
SMALL = SchedulerCase("LI-4", 60, 40, listed=(1.0, 1e9, 1.0, 1e9))


def _measured(
    case: SchedulerCase, setting: BenchSetting = QUICK
) -> dict[tuple[str, str], SchedulerResult]:
    found = schedulers._measured(setting, case)
    return {(each.scheduler, each.written): each for each in found}


def test_every_scheduler_and_every_setting_of_the_paper_is_there() -> None:
    assert set(SCHEDULERS) == set(registry.schedulers())
    counts = {name: sum(case.figure == name for case in CASES) for name in ("LI-4", "LI-5", "LI-6")}
    assert counts == {"LI-4": 5, "LI-5": 5, "LI-6": 3}
    assert {case.longest for case in CASES if case.figure == "LI-7"} == {5, 7, 9, 11}
    assert {case.exponent for case in CASES if case.figure == "LI-8"} == {None, 0.8, 1.0, 1.2}
    assert sum(case.figure == "table" for case in CASES) == 5
    assert max(case.subscriptions for case in CASES) == schedulers._LARGEST
    assert len({(case.figure, case.title) for case in CASES}) == len(CASES), "titles tell apart"
    for case in CASES:
        if case.listed and case.subscriptions > 2_000:
            assert list(case.listed) == sorted(case.listed, reverse=True), case.title


def test_fewer_subscriptions_scale_all_sizes_and_are_drawn_more_often() -> None:
    case = SchedulerCase("LI-4", 80_000, 40_000, listed=(4, 3, 2, 1))
    assert case.scaled(BenchSetting()) is case
    small = case.scaled(replace(BenchSetting(), most_subscriptions=800))
    assert (small.subscriptions, small.predicates, small.listed) == (800, 400, None)
    tiny = SchedulerCase("LI-7", 2_000, 2_000, 11).scaled(QUICK)
    assert (tiny.subscriptions, tiny.predicates) == (12, 12), "enough for the longest"
    sizes = (2_000, 20_000, 40_000, 80_000)
    assert [SchedulerCase("", n, 10).draws(BenchSetting()) for n in sizes] == [5, 5, 2, 1]
    assert SMALL.draws(QUICK) == QUICK.repeats == 2


def test_a_result_is_complete() -> None:
    found = _measured(SMALL)
    assert list(found) == [
        ("naive", AS_DRAWN),
        ("naive", AS_A_SET),
        ("sequential", AS_DRAWN),
        ("sub-order", AS_DRAWN),
        ("adaptive", AS_DRAWN),
    ]
    for each in found.values():
        assert (each.subscriptions, each.predicates, each.draws) == (60, 40, 2)
        assert each.events == QUICK.batch
        assert 0 < each.low <= each.evaluated <= each.high <= each.used <= 40
        assert each.cost == each.evaluated, "all cost the same"
        assert min(each.ms, each.first_ms) > 0
        if (each.scheduler, each.written) == ("naive", AS_DRAWN):
            assert each.goal is None, "what is listed is of another order"
            continue
        assert each.goal is not None
        assert each.goal.met(each.evaluated) == (each.scheduler in ("sequential", "adaptive"))
    assert found["naive", AS_DRAWN].evaluated > found["naive", AS_A_SET].evaluated


def test_counts_depend_on_the_seed_alone() -> None:
    one, two = (
        [each.evaluated for each in _measured(SMALL, setting).values()]
        for setting in (QUICK, replace(QUICK, seconds=1.0))
    )
    assert one == two
    assert one != [each.evaluated for each in _measured(SMALL, replace(QUICK, seed=9)).values()]


def test_costs_spread_over_the_factor() -> None:
    costs = schedulers._costs(3, 10_000, 1_000.0)
    assert (costs >= 1).all()
    assert (costs <= 1_000).all()
    assert np.histogram(np.log10(costs), 3, (0, 3))[0] / 10_000 == pytest.approx(1 / 3, abs=0.02)
    assert (costs == schedulers._costs(3, 10_000, 1_000.0)).all()
    assert (schedulers._costs(3, 5, 1.0) == 1).all()


def test_costs_are_known_or_hidden() -> None:
    known = _measured(SchedulerCase(COSTS, 200, 100, factor=1_000))
    hidden = _measured(SchedulerCase(COSTS, 200, 100, factor=1_000, costs_known=False))
    for name in ("sub-order", "adaptive"):
        assert known[name, AS_DRAWN].cost < hidden[name, AS_DRAWN].cost
    naive = known["naive", AS_DRAWN]
    assert naive.cost == hidden["naive", AS_DRAWN].cost, "what it never looks at"
    assert naive.cost > 10 * naive.evaluated


def test_goals_of_costs_and_times_are_for_full_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    case = SchedulerCase(COSTS, 100, 50, factor=1_000)
    small = _measured(case)
    assert not any(each.cost_goal or each.ms_goal for each in small.values())
    monkeypatch.setattr(schedulers, "_LARGEST", 100)
    full = _measured(case)
    limit = full["sub-order", AS_DRAWN].cost / 2
    assert full["adaptive", AS_DRAWN].cost_goal == Goal(limit, at_most=True)
    assert full["naive", AS_DRAWN].cost_goal is None
    assert all(each.ms_goal == Goal(5.0, at_most=True) for each in full.values())
    assert not any(each.cost_goal for each in _measured(case._replace(costs_known=False)).values())


def test_a_wrong_scheduler_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Scheduler.simulate

    def lossy(self: Scheduler, clauses: Int64s, outcome: Int8s) -> Simulation:
        found = right(self, clauses, outcome)
        return (
            found._replace(matched=found.matched[1:]) if isinstance(self, NaiveScheduler) else found
        )

    monkeypatch.setattr(Scheduler, "simulate", lossy)
    with pytest.raises(TamisError, match="naive' matches the wrong clauses"):
        _measured(SchedulerCase("LI-4", 2_000, 100))


def _four(*evaluated: float, figure: str = "LI-4", title: str = "80 / 40") -> list[SchedulerResult]:
    setting = replace(SCHEDULER, figure=figure, title=title)
    return [
        replace(setting, scheduler=name, evaluated=value, cost=100 - value)
        for name, value in zip(SCHEDULERS, evaluated, strict=True)
    ]


def test_exceptions_are_named() -> None:
    assert order_exceptions(_four(4.0, 3.0, 3.0, 2.0)) == []
    assert order_exceptions(_four(4.0, 3.0, 2.0, 2.5, title="t")) == [
        "LI-4, t: adaptive 2, sub-order 2"
    ]
    assert (
        len(order_exceptions([*_four(4.0, 3.0, 2.0, 1.0), *_four(1.0, 2.0, 3.0, 4.0, title="t")]))
        == 3
    )
    assert len(order_exceptions(_four(1.0, 2.0, 3.0, 4.0, figure=COSTS))) == 0, "by their cost"
    ordered = replace(SCHEDULER, scheduler="naive", written=AS_A_SET, evaluated=0.0)
    assert order_exceptions([ordered, *_four(4.0, 3.0, 2.0, 1.0)]) == [], "another workload"


def _shown(*results: SchedulerResult) -> str:
    out = StringIO()
    show(Console(file=out, width=160), results)
    return out.getvalue()


def test_tables_show_goals_and_order() -> None:
    good = _shown(*_four(18.0, 17.0, 16.0, 14.0))
    counts, limits = good.splitlines()[2:4]
    assert counts.split()[-10:] == ["18", "+20", "%", "17", "+13", "%", "16", "+6.7", "%", "14"]
    assert limits.split()[-8:] == ["≤", "15"] * 4
    assert "naive in all 1 settings" in good
    bad = _shown(*_four(18.0, 14.0, 16.0, 14.0))
    assert "except\n  LI-4, 80 / 40: sub-order 16, sequential 14" in bad
    slow = replace(SCHEDULER, ms=7.0, ms_goal=Goal(5.0, at_most=True))
    assert "7 ≤ 5 missed" in _shown(slow)
    dear = replace(SCHEDULER, figure="costs", cost=300.0, cost_goal=Goal(200.0, at_most=True))
    assert "300 +50 %" in _shown(dear)
