"""Workloads that grow: sizes, chunks, and answers over all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tamis import TamisError, workload
from tamis.lab.bench import scale
from tamis.lab.bench.scale import SIZES, _chunks, measure, sizes
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.results.records import ScaleResult
from tamis.match import registry
from tamis.match.lesubscribe.naive import Naive
from tests.unit.lab.examples import Greedy, Lossy, entry

QUICK = BenchSetting(matchers=("scan",)).quick()


def test_sizes_end_at_the_limit() -> None:
    assert tuple(sizes(BenchSetting())) == SIZES
    assert sizes(replace(BenchSetting(), most_subscriptions=4_500_000)) == [
        1_000_000,
        2_000_000,
        4_000_000,
    ]
    assert sizes(replace(BenchSetting(), most_subscriptions=1000)) == [100, 200, 400, 700, 1000]


@pytest.mark.parametrize("chunk", [1, 64, 100, 5000])
def test_chunks_cover_all_and_end_at_each_size(chunk: int) -> None:
    setting = replace(QUICK, most_subscriptions=1000, chunk=chunk)
    found = _chunks(setting)
    assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
    assert set(sizes(setting)) <= {last for _, last in found}
    assert all(0 < last - first <= chunk for first, last in found)


@pytest.mark.slow
def test_points_grow() -> None:
    found = [each for each in measure(QUICK) if isinstance(each, ScaleResult)]
    for title in ("DEXIN", "Le Subscribe, equality"):
        curve = [each for each in found if each.workload == title]
        assert [each.subscriptions for each in curve] == sizes(QUICK)
        assert all(each.alone_us > 0 and each.batch_us > 0 for each in curve)
        assert all(each.bytes_each > 10 and each.peak_bytes > 1e7 for each in curve)
        assert [each.build_s for each in curve] == sorted(each.build_s for each in curve)
    assert {each.compared for each in found} == {QUICK.batch}


@pytest.mark.parametrize("wrong", [Lossy, Greedy])
def test_a_wrong_matcher_has_no_curve(wrong: type[Naive], monkeypatch: pytest.MonkeyPatch) -> None:
    name, *_ = made = entry(wrong)
    monkeypatch.setitem(registry._TABLE, name, made[name])
    monkeypatch.setattr(scale, "WORKLOADS", ("topss-w4",))
    with pytest.raises(TamisError, match=f"'{name}' and the yardstick disagree on event 0 at 50"):
        list(measure(replace(QUICK, matchers=(name,))))


def test_chunks_are_different_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    make = workload.make_variant

    def remember(name: str, n: int, *, seed: int) -> object:
        seeds.append(seed)
        return make(name, n, seed=seed)

    monkeypatch.setattr(workload, "make_variant", remember)
    monkeypatch.setattr(scale, "WORKLOADS", ("dexin",))
    steps = [each for each in measure(QUICK) if isinstance(each, str)]
    loaded = seeds[2:]  # before, the source of events, and a few to compile with
    assert loaded == list(range(1, 1 + len(loaded)))
    assert len(loaded) == sum("measure" not in step for step in steps)
