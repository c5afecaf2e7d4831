"""Counts and samples: the same however the work is dealt out, and as a plain account has them."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.encode.validation import Refused
from tamis.spark.backtest import tally as tallies
from tamis.spark.backtest.tally import OTHER, BacktestTally, EventSamples, PairGrid, ranks

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("at_once", [1 << 22, 100, 10])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_counts(at_once: int, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In few buckets, or so many that pairs are sorted."""
    monkeypatch.setattr(tallies, "_AT_ONCE", at_once)
    counts, wanted = PairGrid(20, 9, kind), Counter[int]()
    for _ in range(20):
        subscriptions, buckets = RNG.integers(0, [[20], [9]], (2, int(RNG.integers(0, 60))))
        if RNG.random() < 0.5:
            buckets = buckets % 2 + 3
        counts.add(subscriptions, buckets)
        wanted.update((subscriptions * 9 + buckets).tolist())
        other = np.unique(RNG.integers(0, 180, 5))
        counts.merge(other, np.full(len(other), 3))
        wanted.update(dict.fromkeys(other.tolist(), 3))
    keys, found = counts.found()
    assert dict(zip(keys.tolist(), found.tolist(), strict=True)) == wanted
    assert (np.diff(keys) > 0).all()
    assert counts.grid.dtype == kind
    assert counts.grid.reshape(-1)[keys].tolist() == found.tolist()


def test_ranks_are_a_shuffle() -> None:
    found = ranks(np.arange(10_000))
    assert len(np.unique(found)) == 10_000
    halves = np.argsort(found)[:1_000] < 5_000
    assert 400 < np.count_nonzero(halves) < 600


def table(numbers: list[int], **columns: Any) -> pa.Table:
    return pa.table({"sequence": pa.array(numbers, pa.int64()), "n": numbers, **columns})


def kept(found: EventSamples) -> dict[int, list[int]]:
    subscriptions, numbers, _ = found.kept()
    pairs = sorted(zip(subscriptions.tolist(), numbers.tolist(), strict=True))
    return {id: [each for _, each in of] for id, of in itertools.groupby(pairs, lambda p: p[0])}


@pytest.mark.parametrize("waiting", [0, 30, 1 << 16])
@pytest.mark.parametrize("pieces", [1, 7])
def test_samples_have_the_lowest_ranks(
    pieces: int, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "_WAITING", waiting)
    matched = {(int(s), int(e)) for s, e in RNG.integers(0, [5, 400], (900, 2))}
    rank = dict(enumerate(ranks(np.arange(400)).tolist()))
    wanted = {
        id: sorted(sorted((e for s, e in matched if s == id), key=rank.__getitem__)[:4])
        for id in range(5)
    }
    found = EventSamples(6, 4)  # the last one matches nothing
    for part in np.array_split(RNG.permutation(400), pieces):
        events = sorted(part.tolist())
        pairs = [(s, events.index(e)) for s, e in sorted(matched) if e in set(events)]
        subscriptions, rows = np.array(pairs, np.int64).T
        found.offer(subscriptions, rows, table(events))
    assert kept(found) == wanted
    needed = pa.concat_tables(found.kept()[2])
    assert sorted(needed["sequence"].to_pylist()) == sorted(
        {each for of in wanted.values() for each in of}
    )
    assert needed["sequence"].equals(needed["n"])


def test_no_samples_are_kept_if_none_are_wanted() -> None:
    found = EventSamples(3, 0)
    found.offer(np.array([0]), np.array([0]), table([5]))
    assert kept(found) == {}
    assert found.kept()[2] == []


def tally_of(rows: list[tuple[int, int, int]], numbers: list[int]) -> BacktestTally:
    """Of (subscription, bucket, number of the event)."""
    tally = BacktestTally(4, 3, 2, np.dtype(np.int64))
    subscriptions, places, events = np.array(rows, np.int64).reshape(-1, 3).T
    tally.pairs(subscriptions, places, events * 10)
    at = {number: row for row, number in enumerate(numbers)}
    where = np.array([at[each] for each in events.tolist()], np.int64)
    extra = {"x": ["a"] * len(numbers)} if numbers[0] % 2 else {}
    tally.samples.offer(subscriptions, where, table(numbers, **extra))
    tally.events += np.array([1, 2, 3, 4])
    tally.refused([Refused(0, "bad")], np.array(numbers))
    return tally


def test_tallies_are_added_up_from_files(tmp_path: Path) -> None:
    parts = [
        tally_of([(0, 0, 1), (0, 1, 3), (2, 1, 3)], [1, 3]),
        tally_of([(0, 0, 6), (0, 3, 8), (3, 3, 8)], [6, 8]),
        tally_of([], [11]),
    ]
    for at, part in enumerate(parts):
        part.write(tmp_path / str(at))
    found = BacktestTally(4, 3, 2, np.dtype(np.int64))
    for at in (2, 0, 1):
        found.add(tmp_path / str(at))
    grid = [[2, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert found.grid.tolist() == grid
    assert list(zip(*(each.tolist() for each in found.over_time()), strict=True)) == [
        (row, bucket, count)
        for row, counts in enumerate(grid)
        for bucket, count in enumerate(counts)
        if count
    ]
    # Event 8 has no time.
    assert (found.first[0], found.last[0]) == (10, 60)
    assert (found.first[2], found.last[2]) == (30, 30)
    assert found.first[3] > found.last[3]
    assert found.events.tolist() == [3, 6, 9, 12]
    assert found.reasons == {"bad": (3, 1)}
    every = {0: [1, 3, 6, 8], 2: [3], 3: [8]}
    rank = {number: ranks(np.array([number]))[0] for number in (1, 3, 6, 8)}
    wanted = {id: sorted(sorted(of, key=rank.__getitem__)[:2]) for id, of in every.items()}
    assert kept(found.samples) == wanted
    assert sum(each.num_rows for each in found.samples.kept()[2]) == len(
        {each for of in wanted.values() for each in of}
    )


def test_only_so_many_reasons_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_REASONS", 2)
    tally = BacktestTally(1, 1, 0, np.dtype(np.int64))
    tally.refused([Refused(row, reason) for row, reason in enumerate("abcab")], np.arange(5) + 7)
    assert tally.reasons == {"a": (2, 7), "b": (2, 8), OTHER: (1, 9)}
