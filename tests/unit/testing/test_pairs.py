"""Comparisons on large workloads: enough pairs, all workloads, every mistake found."""

from __future__ import annotations

import pytest

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.match.bitmaps import Bitmaps
from tamis.match.capabilities import AnswersInBits
from tamis.match.lesubscribe.naive import Naive
from tamis.match.scan import Scan
from tamis.testing.pairs import compare_pairs
from tests.unit.lab.examples import Greedy, Lossy


@pytest.mark.parametrize("name", workload.VARIANTS)
def test_two_exact_matchers_agree_on_every_workload(name: str) -> None:
    found = compare_pairs(Naive, Scan, workload.make_variant(name, 300, seed=2), 30_000)
    assert found.pairs == 30_000
    assert found.disagreements == 0
    assert found.matches > 0 or name in ("sparse", "lesubscribe-equality", "dexin")


@pytest.mark.parametrize(
    ("pairs", "compared"), [(1, 300), (299, 300), (301, 600), (400_000, 400_200)]
)
def test_there_are_enough_pairs(pairs: int, compared: int) -> None:
    done: list[int] = []
    found = compare_pairs(Naive, Scan, workload.make("gryphon", 300), pairs, done.append)
    assert found.pairs == compared == done[-1]


def test_missing_and_extra_matches_are_counted_apart() -> None:
    made = workload.make("topss", 300, seed=2)
    lost = compare_pairs(Lossy, Scan, made, 300 * 50)
    assert (lost.missing > 0, lost.extra) == (True, 0)
    more = compare_pairs(Greedy, Scan, made, 300 * 50)
    assert (more.missing, more.extra > 0) == (0, True)
    assert lost.matches == more.matches


def test_bits_are_compared_as_well() -> None:
    class WrongBits(Naive, AnswersInBits):
        def find_bits(self, batch: EventBatch) -> Bitmaps:
            found = Bitmaps.of(self.find(batch), self.clauses.live_slots())
            found.words[-1:] = 0
            return found

    found = compare_pairs(WrongBits, Scan, workload.make("topss", 300, seed=2), 300 * 50)
    assert (found.missing > 0, found.extra) == (True, 0)
