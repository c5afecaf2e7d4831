"""The matcher for GPUs: its kernels on an emulated GPU, its plan, and what it says without one."""

from __future__ import annotations

import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis.encode.terms import Row, from_rows
from tamis.errors import MatcherError
from tamis.index.clauses import SOME
from tamis.match.base import Matcher
from tamis.match.gpu.columns import plan_columns, ranks
from tamis.match.gpu.kernel_device import KernelDevice
from tamis.match.gpu.layout import MOST_EDGES
from tamis.match.gpu.matcher import TamisGpu
from tamis.match.lesubscribe.naive import Naive
from tamis.testing import CHECKS
from tamis.testing.matcher_checks import (
    PlainEvent,
    add,
    answers,
    batch_of,
    random_clause,
    random_event,
    remove,
)
from tests.unit.match.gpu.emulated_device import EmulatedGpu

SCRIPT = Path(__file__).parents[4] / "scripts" / "gpu_check.py"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
without_cupy = pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
_SHARED = 227 * 1024


def _simulated(**options: Any) -> TamisGpu:
    return TamisGpu(device="simulated", **options)


def _pair(make: Any, clauses: Mapping[int, Sequence[Row]]) -> list[Matcher]:
    """The matcher and a reference, with the same clauses."""
    both: list[Matcher] = [make(), Naive()]
    for each in both:
        add(each, clauses)
    return both


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("check", ["absent", "ends", "several_values", "wide"])
def test_the_kernels_conform(check: str) -> None:
    CHECKS[check](EmulatedGpu)


@needs_compiler
@pytest.mark.slow
def test_the_kernels_agree_with_naive_while_clauses_come_and_go() -> None:
    chance = random.Random(3)
    clauses = {slot: random_clause(chance) for slot in chance.sample(range(3000), 500)}
    events = [random_event(chance) for _ in range(150)]  # of several blocks for each tile
    both = _pair(EmulatedGpu, clauses)
    assert answers(both[0], events) == answers(both[1], events)
    for _ in range(3):
        gone = chance.sample(sorted(clauses), 60)
        new = {slot: random_clause(chance) for slot in gone[:40]}
        for each in both:
            remove(each, gone)
            add(each, new)
        for slot in gone:
            del clauses[slot]
        clauses |= new
        assert answers(both[0], events[:40]) == answers(both[1], events[:40])
        both[0].check()


@needs_compiler
@pytest.mark.slow
def test_the_kernels_compare_exactly_what_comes_after_the_plan() -> None:
    rows = [(10 * i, 10 * i + 6) for i in range(40)]
    both = _pair(EmulatedGpu, {i: [(0, 0, SOME, *ends)] for i, ends in enumerate(rows)})
    events: list[PlainEvent] = [{0: [value]} for value in range(0, 400, 7)]
    assert answers(both[0], events) == answers(both[1], events)
    for each in both:  # all ends are between edges, often both between the same two
        add(each, {40 + i: [(0, 0, SOME, 10 * i + 1 + i % 3, 10 * i + 5)] for i in range(40)})
        add(each, {80 + i: [(0, 0, SOME, 10 * i + 8, 10 * i + 13)] for i in range(40)})
    events = [{0: [value]} for value in range(100)]
    assert answers(both[0], events) == answers(both[1], events)


@needs_compiler
@pytest.mark.slow
def test_an_answer_may_outgrow_the_room_for_pairs() -> None:
    rows: list[Row] = [(0, 0, SOME, 0, 9)]
    clauses: dict[int, Sequence[Row]] = dict.fromkeys(range(300), rows)
    events: list[PlainEvent] = [{0: [value % 12]} for value in range(40)]
    first, second = _pair(EmulatedGpu, clauses)
    assert isinstance(first, EmulatedGpu)
    device = first._device()
    assert isinstance(device, KernelDevice)
    device._capacity = 100
    assert answers(first, events) == answers(second, events)
    assert device._capacity > 300 * 30
    device._capacity, device._most = 100, 3000  # matched in two halves, again and again
    assert answers(first, events) == answers(second, events)
    assert device._capacity < 300 * 30


def test_ranks_order_codes_as_they_are() -> None:
    chance = np.random.default_rng(0)
    edges = np.unique(chance.integers(-1000, 1000, 50))
    codes = np.sort(chance.integers(-1100, 1100, 500))
    found = ranks(edges, codes)
    assert (np.diff(found) >= 0).all()
    assert ((found % 2 == 1) == np.isin(codes, edges)).all()


def test_columns_are_the_attributes_that_clauses_use() -> None:
    clauses = [[(7, 0, SOME, i, i + 10), (9, 1, SOME, i, i)] for i in range(200)]
    clauses[0] += [(40, 2, SOME, 1, 1)]  # too rare
    plan = plan_columns(from_rows(clauses), 41, _SHARED)
    assert plan.attributes.tolist() == [7, 9]
    assert plan.column_of[[7, 9, 40]].tolist() == [0, 1, -1]
    assert plan.lines > 100
    crowd = from_rows([[(a, a, SOME, i, i + 1) for a in range(60)] for i in range(50)])
    plan = plan_columns(crowd, 60, _SHARED)
    assert (plan.width, plan.shared_bounds) == (24, False)
    assert plan.shared_bytes <= _SHARED


def test_values_between_edges_are_compared_exactly() -> None:
    many = MOST_EDGES + 5000  # more ends than ranks
    clauses = {slot: [(0, 0, SOME, 3 * slot, 3 * slot + 1)] for slot in range(many)}
    matcher = _simulated()
    add(matcher, clauses)
    values = [*range(60), *range(3 * many - 60, 3 * many), *range(50_000, 50_100)]
    found = answers(matcher, [{0: [value]} for value in values])
    assert found == [{value // 3} if value % 3 < 2 else set() for value in values]


def test_changes_do_not_rebuild_the_index() -> None:
    chance = random.Random(5)
    matcher = _simulated()
    add(matcher, {slot: random_clause(chance) for slot in range(600)})
    events = [random_event(chance) for _ in range(5)]
    answers(matcher, events)
    built = matcher._index
    remove(matcher, range(0, 300, 2))
    add(matcher, {slot: random_clause(chance) for slot in range(600, 900)})
    answers(matcher, events)
    assert matcher._index is built
    add(matcher, {slot: random_clause(chance) for slot in range(900, 1400)})  # more than doubled
    answers(matcher, events)
    assert matcher._index is not built


def test_the_answer_stays_on_the_device_if_asked() -> None:
    chance = random.Random(6)
    matcher = _simulated()
    add(matcher, {slot: random_clause(chance) for slot in range(100)})
    batch = batch_of([random_event(chance) for _ in range(20)])
    found, matches = matcher.find_on_device(batch), matcher.match(batch)
    assert found.starts.tolist() == matches.starts.tolist()
    assert found.slots.tolist() == matches.slots.tolist()


def test_too_little_memory_is_said_and_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = _simulated()
    add(matcher, {3: [(0, 0, SOME, 1, 2)]})
    answers(matcher, [{0: [1]}])

    def full(*_: object) -> None:
        raise MemoryError("out of memory allocating 9 bytes")

    with monkeypatch.context() as patch:
        patch.setattr(matcher._device(), "write_lines", full)
        add(matcher, {4: [(0, 0, SOME, 1, 2)]})
        with pytest.raises(MatcherError, match=r"too little memory for 2 clauses.*9 bytes"):
            answers(matcher, [{0: [1]}])
    assert answers(matcher, [{0: [1]}]) == [{3, 4}]


@without_cupy
def test_without_a_gpu_clauses_are_kept_and_a_match_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TAMIS_GPU")
    matcher = TamisGpu()
    add(matcher, {3: [(0, 0, SOME, 1, 2)]})
    assert len(pickle.loads(pickle.dumps(matcher))) == 1
    with pytest.raises(MatcherError, match=r"needs CuPy.*pip install.*simulated"):
        answers(matcher, [{0: [1]}])
    monkeypatch.setenv("TAMIS_GPU", "first")
    with pytest.raises(MatcherError, match=r"TAMIS_GPU is the number of a GPU.*got 'first'"):
        answers(matcher, [{0: [1]}])
    monkeypatch.setenv("TAMIS_GPU", "simulated")
    assert answers(matcher, [{0: [1]}]) == [{3}]


@pytest.mark.slow
def test_the_check_of_a_machine_runs() -> None:
    arguments = ["agree", "lesubscribe", "--device=simulated", "--scale=0.001"]
    printed = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], check=True, capture_output=True, text=True
    ).stdout
    assert '"part": "done", "failed": []' in printed
