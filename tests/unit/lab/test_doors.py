"""The ways into an engine: baselines that are right, and no figure for a wrong answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tamis import TamisError, workload
from tamis.lab.bench.doors import flights, json_text, single, small, threads, webhooks
from tamis.lab.bench.doors.turns import DoorRow, DoorTurn, hash_join, result, scanned
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.dict_yardstick import DictYardstick
from tamis.lab.instruments.hash_join import HashJoin
from tamis.lab.results.records import DoorResult, Goal
from tamis.match import registry
from tamis.match.lesubscribe.naive import Naive
from tamis.workload import Workload, as_dicts
from tests.unit.lab.examples import Greedy, Lossy, entry

QUICK = BenchSetting(matchers=("scan",)).quick()


def _made(name: str) -> Workload:
    if name == "flights":
        return flights.make(400, seed=3)
    return workload.make_variant(name, 400, seed=3)


@pytest.mark.parametrize("name", ["flights", "lesubscribe", "lesubscribe-equality", "dexin"])
def test_baselines_agree_with_the_engine(name: str) -> None:
    """Both, whichever of the two a row has; events lack attributes."""
    made = _made(name)
    table = made.events(60)
    events = as_dicts(table)
    right = scanned(made, events)
    assert any(right)
    yardstick, join = DictYardstick(made.subscriptions, table), hash_join(made)
    assert [yardstick.match_dict(event) for event in events] == right
    assert [sorted(join.match(event)) for event in events] == right


def test_a_hash_join_changes() -> None:
    join = HashJoin([(0, [("a", "=", 1), ("b", ">", 2)]), (1, [("b", ">=", 2)])])
    event = {"a": 1, "b": 3}
    assert join.match(event) == [0, 1]
    join.add(2, [("b", "=", 3)])  # a dict of its own, for an event that was seen
    join.add(3, [("a", "=", 1), ("a", "=", 2)])
    assert sorted(join.match(event)) == [0, 1, 2]
    join.remove(0)
    assert sorted(join.match(event)) == [1, 2]
    assert join.match({"a": 1}) == []


def test_figures_are_medians_of_turns_in_their_unit() -> None:
    row = DoorRow("single", "x", "X", "scan", 10, "numpy")
    turns = [
        DoorTurn(1e-6, 4e-6, [1e-6, 2e-6]),
        DoorTurn(2e-6, 20e-6, [2e-6]),
        DoorTurn(4e-6, 12e-6, [4e-6]),
    ]

    def made(unit: str) -> DoorResult:
        return result(row, unit, turns, None, matches=1.0, compared=5, parameters={})

    found = made("µs")
    assert (found.value, found.low, found.high) == pytest.approx((2, 1, 4))
    assert found.baseline_value == pytest.approx(12)
    assert (found.times, found.times_low, found.times_high) == pytest.approx((4, 3, 10))
    assert found.each is not None
    assert found.each.most == pytest.approx(4)
    assert found.each.count == 4
    rate = made("/s")
    assert (rate.value, rate.low, rate.high) == pytest.approx((5e5, 2.5e5, 1e6))
    assert rate.times == pytest.approx(4)


def _results(given: Iterator[Any], steps: int) -> list[DoorResult]:
    every = list(given)
    assert len(every) == steps
    found = [each for each in every if not isinstance(each, str)]
    assert all(isinstance(each, DoorResult) and each.times > 0 for each in found)
    assert all(each.compared > 0 for each in found)
    return found


def test_single_dicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals are for full sizes; rows of other measurements choose nothing here."""
    setting = replace(QUICK, rows=("rules", "rules-64"))
    first, groups = _results(single.measure(setting), single.steps(setting))
    assert (first.row, first.goal, first.subscriptions) == ("rules", None, 500)
    assert first.each is not None
    assert first.each.p99 >= first.each.p50 > 0
    assert first.matches > 1
    assert groups.parameters["dicts"] == 64
    rows = {"numpy": replace(single.ROWS["lesubscribe"], subscriptions=200)}
    monkeypatch.setattr(single, "ROWS", rows)
    (full,) = _results(single.measure(replace(QUICK, rows=("dexin",))), 2)
    assert full.goal == Goal(20, at_most=True)
    assert full.baseline == "numpy"


def test_events_in_text() -> None:
    webhook, lines = _results(json_text.measure(QUICK), json_text.steps(QUICK))
    assert (webhook.unit, lines.unit) == ("µs", "/s")
    assert 7_000 < webhook.parameters["least_bytes"] < webhook.parameters["most_bytes"] < 20_000
    assert lines.parameters["lines"] == QUICK.json_lines
    assert lines.goal is None


def test_few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the new processes, which take seconds."""
    monkeypatch.setattr(small, "new_process", lambda *given: _as_if_matched(given[1]))
    found = _results(small.measure(QUICK), small.steps(QUICK))
    assert [each.row for each in found] == ["table", "first", "calls", "process"]


def _as_if_matched(path: str) -> str:
    given = json.loads(Path(path).read_text(encoding="utf-8"))
    return " ".join(map(str, [0.5, *sorted(HashJoin(given["rules"]).match(given["event"]))]))


def test_one_engine_in_threads() -> None:
    found = _results(threads.measure(QUICK), threads.steps(QUICK))
    assert [each.row for each in found] == ["dicts-1", "dicts-2", "batches-1", "batches-2"]
    assert found[1].compared == 2 * found[0].compared


@pytest.mark.parametrize("wrong", [Lossy, Greedy])
@pytest.mark.parametrize("measure", [single.measure, json_text.measure, threads.measure])
def test_a_wrong_matcher_has_no_figures(
    wrong: type[Naive], measure: Callable[[BenchSetting], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *_ = made = entry(wrong)
    monkeypatch.setitem(registry._TABLE, name, made[name])
    with pytest.raises(TamisError, match=rf"{name} and scan disagree on event \d"):
        list(measure(replace(QUICK, matchers=(name,))))


def test_payloads_of_webhooks_have_what_rules_ask() -> None:
    texts = webhooks.payloads(40, seed=1)
    assert texts == webhooks.payloads(40, seed=1)
    asked = {name for rule in webhooks.RULES.values() for name, _, _ in rule}
    flat = [webhooks.paths(json.loads(text)) for text in texts]
    assert set().union(*flat) == asked
    join = HashJoin(webhooks.RULES.items())
    assert len({id for each in flat for id in join.match(each)}) > 10
