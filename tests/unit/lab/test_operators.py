"""Runs with real operators: all schedulers, the same answers, and counted calls."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tamis import Engine
from tamis.cli.reports.bench import show
from tamis.lab.bench import operators
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.results.records import SCHEDULERS, Figure, OperatorResult, Result
from tests.unit.lab.examples import OPERATOR

pytest.importorskip("cv2")
pytest.importorskip("shapely")

SMALL = replace(BenchSetting(), most_subscriptions=60, batch=6)


def _runs() -> list[OperatorResult]:
    return [each for each in operators.measure(SMALL) if isinstance(each, OperatorResult)]


@pytest.mark.slow
def test_all_schedulers_answer_alike() -> None:
    found = _runs()
    assert [each.scheduler for each in found] == ["naive", *SCHEDULERS]
    assert [each.place for each in found] == ["first", "last", *["first"] * 3]
    for each in found:
        assert (each.subscriptions, each.events) == (60, 6)
        assert each.matches == found[0].matches > 0
        assert (each.disagreements, each.faults, each.reference) == (0, 0, "naive")
        assert each.evaluated.keys() == each.calls.keys() == each.operator_seconds.keys()
        assert each.seconds > 0
        assert sum(each.calls.values()) <= sum(each.evaluated.values())
    naive, adaptive = (sum(each.evaluated.values()) for each in (found[0], found[-1]))
    assert adaptive < naive


def test_the_overhead_of_a_call_is_measured() -> None:
    found = [each for each in operators._overheads(SMALL) if isinstance(each, Figure)]
    assert [each.unit for each in found] == ["µs/event"] * 2
    assert all(each.low <= each.value <= each.high for each in found)
    assert "an operator that does nothing, remembered" in _shown(*found)


@pytest.mark.slow
def test_a_wrong_answer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Engine.match_batch

    def forgetful(self: Engine, events: Any) -> Any:
        found = right(self, events)
        if self.calls.scheduler_name == "adaptive":
            self.unsubscribe(int(found.subscriptions[0]))
            return right(self, events)
        return found

    monkeypatch.setattr(Engine, "match_batch", forgetful)
    disagreements = [each.disagreements for each in _runs()]
    assert disagreements[:-1] == [0] * 4
    assert disagreements[-1] > 0


def _shown(*results: Result) -> str:
    out = StringIO()
    show(Console(file=out, width=120), results)
    return out.getvalue()


def test_the_table_has_a_column_for_each_scheduler() -> None:
    naive = replace(OPERATOR, scheduler="naive", evaluated={"locIn": 4_000, "faceCount": 5})
    shown = _shown(naive, OPERATOR)
    lines = {line.split("  ")[0]: line.split() for line in shown.splitlines()}
    assert lines["locIn"][1::3] == ["4,000", "9"]
    assert lines["faceCount"][1::3] == ["5", "0"]
    assert lines["all operators"][2::3] == ["4,005", "9"]
    assert "drones, adaptive: 7 matches, 0 disagreements with naive, 0 faults" in shown
