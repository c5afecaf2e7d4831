"""Churn: replacements, timings, and counted wrong answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tamis.encode.terms import Terms
from tamis.lab.bench import churn
from tamis.lab.bench.churn import _EngineTarget, _MatcherTarget, _workloads, measure
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.agreement import differences
from tamis.lab.results.records import ChurnResult
from tamis.match import registry
from tamis.match.base import Matches, Slots
from tamis.match.lesubscribe.naive import Naive
from tests.unit.lab.examples import Greedy, Lossy, entry

QUICK = BenchSetting(matchers=("quarantine",)).quick()


@pytest.fixture(autouse=True)
def _much_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred subscriptions of the usual workload match next to nothing."""
    monkeypatch.setattr(churn, "WORKLOAD", "topss-w4")


def _churns(setting: BenchSetting) -> list[ChurnResult]:
    return [each for each in measure(setting) if isinstance(each, ChurnResult)]


@pytest.mark.slow
def test_half_is_replaced_through_engine_and_matcher() -> None:
    found = _churns(QUICK)
    assert [each.through for each in found] == ["engine", "matcher"]
    for each in found:
        assert (each.subscriptions, each.replaced) == (500, 250)
        assert (each.add.count, each.remove.count, each.alone.count) == (250, 250, 25)
        assert each.batch.count == 250
        assert each.compared == 10 * QUICK.batch
        assert each.pairs == each.compared * 500
        assert (each.disagreements, each.reference) == (0, "scan")


@pytest.mark.parametrize("wrong", [Lossy, Greedy])
@pytest.mark.slow
def test_wrong_answers_are_counted(wrong: type[Naive], monkeypatch: pytest.MonkeyPatch) -> None:
    name, *_ = made = entry(wrong)
    monkeypatch.setitem(registry._TABLE, name, made[name])
    found = _churns(replace(QUICK, matchers=(name,)))
    assert [each.disagreements > 0 for each in found] == [True, True]


def test_a_matcher_that_misses_changes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference follows the workload, and not what the matcher's own table says."""
    add, remove = Naive.add, Naive.remove

    def add_many(self: Naive, slots: Slots, terms: Terms) -> None:
        if len(slots) > 1:
            add(self, slots, terms)

    def remove_many(self: Naive, slots: Slots) -> None:
        if len(slots) > 1:
            remove(self, slots)

    monkeypatch.setattr(Naive, "add", add_many)
    monkeypatch.setattr(Naive, "remove", remove_many)
    setting = replace(QUICK, matchers=("naive",))
    old, new = _workloads(setting, 300)
    (found,) = [
        each
        for each in churn._churn(setting, _MatcherTarget(setting, "naive", old, new))
        if isinstance(each, ChurnResult)
    ]
    assert found.disagreements > 0


@pytest.mark.parametrize("target", [_EngineTarget, _MatcherTarget])
def test_the_reference_follows(target: type[_EngineTarget | _MatcherTarget]) -> None:
    old, new = _workloads(QUICK, 300)
    made = target(QUICK, "naive", old, new)
    events = old.events(50)
    assert made.changes == 150
    for first, last in pairwise((0, 40, 41, 150)):
        made.prepare(first, last)
        for change in range(first, last):
            made.remove(change)
            made.add(change)
        assert sum(differences(*made.answers(events))) > 0, "the reference has not followed"
        made.follow(first, last)
        assert sum(differences(*made.answers(events))) == 0
    made.matcher.check()


def _matches(*events: list[int]) -> Matches:
    starts = np.cumsum([0, *map(len, events)])
    return Matches(starts, np.array([slot for event in events for slot in event], np.int64))


def test_differences() -> None:
    assert (churn.reference("scan"), churn.reference("naive")) == ("naive", "scan")
    right = _matches([3, 1], [], [2])
    assert differences(_matches([1, 3], [], [2]), right) == (0, 0), "the order does not matter"
    assert differences(_matches([1], [], [2]), right) == (1, 0)
    assert differences(_matches([1, 3], [2], []), right) == (1, 1), "the right slot, another event"
    assert differences(_matches([1, 3, 3], [], [2]), right) == (0, 1), "found twice"
    assert differences(_matches([1, 7], [], [2]), right) == (1, 1)
    assert differences(_matches([], [], []), _matches([], [], [])) == (0, 0)
