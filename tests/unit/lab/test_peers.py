"""Peers: fair turns, honest ratios, and no figure for a wrong answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tamis import TamisError, workload
from tamis.encode.batch import EventBatch
from tamis.lab.bench import peers
from tamis.lab.bench.peers import ROWS, Row, _Round, _speed, measure, rows
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.yardstick import Yardstick
from tamis.lab.results.records import Goal, PeerResult, RefusedResult, ResidualResult
from tamis.match import registry
from tamis.match.base import Matcher
from tamis.match.bitmaps import Bitmaps
from tamis.match.capabilities import match_bits
from tamis.match.lesubscribe.naive import Naive
from tests.loaded import loaded
from tests.unit.lab.examples import Greedy, Lossy, Threaded, entry

QUICK = BenchSetting(matchers=("scan",)).quick()


def _results(setting: BenchSetting) -> list[PeerResult | ResidualResult | RefusedResult]:
    return [each for each in measure(setting) if not isinstance(each, str)]


def _only(setting: BenchSetting) -> PeerResult:
    (found,) = _results(setting)
    assert isinstance(found, PeerResult)
    return found


def test_rows_are_chosen_by_name() -> None:
    assert list(rows(())) == list(ROWS)
    assert list(rows(("sparse", "dexin"))) == ["dexin", "sparse"]
    with pytest.raises(TamisError, match="did you mean 'sparse'"):
        rows(("sparce",))


@pytest.mark.slow
def test_every_row_has_a_workload_that_the_yardstick_takes() -> None:
    found = _results(QUICK)
    rows = [each.row for each in found if isinstance(each, PeerResult | ResidualResult)]
    assert rows == list(ROWS)
    assert [each.title for each in found if isinstance(each, PeerResult) and each.bits] == [
        "TOPSS W4"
    ]


def test_a_result_of_peers_is_complete() -> None:
    found = _only(replace(QUICK, rows=("topss-w4",)))
    assert found.subscriptions == 500
    assert found.events == QUICK.batch
    assert found.matches > 20
    assert found.bits is not None
    figures = (found.yardstick_us, found.engine_us, found.build_s, found.bytes_each)
    assert all(figure > 0 for figure in figures)
    assert all(0 < each.low <= each.times <= each.high for each in (found.alone, found.batch))
    for spread in (found.each, found.add, found.remove):
        assert 0 < spread.p50 <= spread.p99 <= spread.most
    assert found.two_threads_us is None
    assert found.parameters["setting"] == "W4"


def test_goals_are_for_full_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _only(replace(QUICK, rows=("dexin",))).alone.goal is None
    monkeypatch.setitem(ROWS, "dexin", Row("dexin", 300, batch=200, alone=60))
    full = _only(replace(QUICK, rows=("dexin",)))
    assert full.subscriptions == 300
    assert full.alone.goal == Goal(60, at_most=False)
    assert full.batch.goal == Goal(200, at_most=False)


def test_ratios_are_taken_round_by_round() -> None:
    """A slow minute slows both down: the ratio of the medians would be another one."""
    turns = [
        _Round(yardstick * 1e-6, [1.0], batch * 1e-6, 0.0, 0.0, 0.0)
        for yardstick, batch in ((10, 1), (100, 20), (30, 2))
    ]
    found = _speed(turns, lambda turn: turn.batch, 10.0)
    assert (found.us, found.times, found.low, found.high) == pytest.approx((2, 10, 5, 15))


def test_the_two_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    slow, fast = Yardstick.match, Naive.match

    def match_slowly(self: Yardstick, event: Any) -> Any:
        calls.append("numpy")
        return slow(self, event)

    def match_fast(self: Naive, batch: Any) -> Any:
        calls.append("alone" if len(batch) == 1 else "batch")
        return fast(self, batch)

    monkeypatch.setattr(Yardstick, "match", match_slowly)
    monkeypatch.setattr(Naive, "match", match_fast)
    begun = [
        len(calls)
        for each in measure(replace(QUICK, rows=("dexin",), matchers=("naive",), rounds=3))
        if isinstance(each, str) and ("round" in each or "build" in each)
    ]
    assert len(begun) == 4
    for first, last in pairwise(begun):
        kinds = list(dict.fromkeys(calls[first:last]))
        assert kinds == ["numpy", "alone", "batch"]
        assert calls[first:last].count("numpy") == calls[first:last].count("alone")


def test_turns_go_through_all_events() -> None:
    """Each turn takes the next events of one order, and starts again at its end."""
    setting = replace(QUICK, seconds=1e-9, batch=7)
    made = workload.make_variant("dexin", 50)
    yardstick = Yardstick(made.subscriptions, made.events(7))
    engine = loaded(made, "naive")
    batch = engine.encode(made.events(7))
    both = peers._Contenders(
        engine,
        yardstick,
        yardstick.encode(made.events(7)),
        batch,
        [batch[at : at + 1] for at in range(7)],
        False,
    )
    pick = peers._picker(setting, both)
    assert sorted(np.concatenate([pick(turn) for turn in range(7)]).tolist()) == list(range(7))
    assert pick(7).tolist() == pick(0).tolist()


@pytest.mark.parametrize("wrong", [Lossy, Greedy])
def test_a_wrong_matcher_has_no_figures(
    wrong: type[Naive], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *_ = made = entry(wrong)
    monkeypatch.setitem(registry._TABLE, name, made[name])
    with pytest.raises(TamisError, match=f"'{name}' and the yardstick disagree"):
        _results(replace(QUICK, rows=("topss-w4",), matchers=(name,)))


def test_wrong_bits_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = match_bits

    def flipped(matcher: Matcher, batch: EventBatch) -> Bitmaps:
        found = right(matcher, batch)
        found.words[0, 0] ^= np.uint64(1)
        return found

    monkeypatch.setattr(peers, "match_bits", flipped)
    setting = replace(QUICK, matchers=("naive",))
    with pytest.raises(TamisError, match="disagree on event 0"):
        _results(replace(setting, rows=("topss-w4",)))
    assert _only(replace(setting, rows=("dexin",))).bits is None


def test_only_the_measurement_of_two_threads_has_two(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Threaded] = []
    init = Threaded.__init__

    def remember(self: Threaded, **options: Any) -> None:
        init(self, **options)
        made.append(self)

    monkeypatch.setattr(Threaded, "__init__", remember)
    monkeypatch.setitem(registry._TABLE, "threaded", entry(Threaded)["threaded"])
    found = _only(replace(QUICK, rows=("dexin",), matchers=("threaded",)))
    assert found.two_threads_us is not None
    assert all(matcher.threads == 1 for matcher in made)
    counts = [made[0].used.count(threads) for threads in (1, 2)]
    assert counts[1] == peers._TURN * (QUICK.rounds + 1)
    assert counts[0] > counts[1]


@pytest.mark.slow
def test_a_matcher_may_refuse_a_row() -> None:
    found = _results(replace(QUICK, rows=("dexin", "topss-w4"), matchers=("counting-byte",)))
    assert [type(each) for each in found] == [PeerResult, PeerResult]
    small = BenchSetting(
        matchers=("counting-byte",), rows=("dexin",), rounds=1, seconds=0.01, batch=5
    )
    (refused,) = _results(replace(small, most_subscriptions=40_000))
    assert isinstance(refused, RefusedResult)
    assert (refused.measurement, refused.workload) == ("peers", "DEXIN")
