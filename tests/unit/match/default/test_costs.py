"""What steps cost: usual or measured, bounded, and of no influence on answers."""

from __future__ import annotations

import math
import time
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from tamis import Engine, Schema, TamisError, workload
from tamis.files.arrays import Floats
from tamis.match.capabilities import saved_form
from tamis.match.default.planning import costs
from tamis.match.default.planning.costs import USUAL, MeasuredCosts, believed, measure
from tamis.match.default.structure import routes
from tests.running import in_threads

MANY = 20_000
FOUND = MeasuredCosts(*(1.5 * usual for usual in USUAL))


def named(array: Floats) -> dict[str, float]:
    return dict(zip(MeasuredCosts._fields, array.tolist(), strict=False))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As in a process that has measured nothing yet, with a stand-in for costs."""
    calls: list[int] = []

    def stand_in() -> MeasuredCosts:
        calls.append(1)
        time.sleep(0.01)
        return FOUND

    monkeypatch.delenv("TAMIS_COSTS", raising=False)
    monkeypatch.setattr(costs, "_known", [])
    monkeypatch.setattr(costs, "measure", stand_in)
    return calls


def test_costs_stand_where_routes_look_for_them(fresh: list[int]) -> None:
    array = costs.costs(1)
    for name, usual in USUAL._asdict().items():
        assert array[getattr(routes, name.upper())] == usual
    assert len(array) == 9
    assert array[routes.SPARSE_LINES] == array[routes.DENSE_LINES] == 0
    assert array[routes.DENSE_FROM] == 1 / 64
    assert named(array) == USUAL._asdict()


def test_few_clauses_are_not_worth_measuring(fresh: list[int]) -> None:
    for _ in range(2):
        few = costs.costs(MANY - 1)
        assert named(few) == USUAL._asdict()
        few[:] = 0  # the array is the caller's own
    assert fresh == []
    for _ in range(2):
        many = costs.costs(MANY)
        assert named(many) == FOUND._asdict()
        many[:] = 0
    assert fresh == [1]


def test_costs_are_chosen_by_the_environment(
    fresh: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for wish, right in (("usual", USUAL), ("measured", FOUND), ("", FOUND)):
        monkeypatch.setenv("TAMIS_COSTS", wish)
        assert named(costs.costs(MANY)) == right._asdict()
        assert fresh == [1] * (right is FOUND)
    monkeypatch.setenv("TAMIS_COSTS", "usaul")
    with pytest.raises(TamisError, match="TAMIS_COSTS must be 'usual' or 'measured', got 'usaul'"):
        costs.costs(1)


def test_a_process_measures_once(fresh: list[int]) -> None:
    barrier, found = Barrier(8), []

    def ask() -> None:
        barrier.wait()
        found.append(named(costs.costs(MANY)))

    in_threads(ask, [()] * 8)
    assert fresh == [1]
    assert found == [FOUND._asdict()] * 8


def test_a_hiccup_is_not_believed() -> None:
    slow, fast = MeasuredCosts(*(1e9 for _ in USUAL)), MeasuredCosts(*(0.0 for _ in USUAL))
    assert believed(slow) == pytest.approx([4 * usual for usual in USUAL])
    assert believed(fast) == pytest.approx([usual / 4 for usual in USUAL])
    assert believed(MeasuredCosts(*(-1.0 for _ in USUAL))) == believed(fast)
    assert believed(FOUND) == FOUND


def test_every_step_is_measured() -> None:
    found = measure()
    assert all(math.isfinite(cost) for cost in found)
    for cost, usual in zip(found, USUAL, strict=True):
        assert usual / 20 < cost < usual * 50, "even on a machine that is busy with other things"


@pytest.mark.parametrize(
    ("kernel", "slower"),
    [
        ("pass_buckets", "probe"),
        ("verify", "verify"),
        ("pass_sparse", "line"),
        ("place_bits", "bit"),
    ],
)
def test_what_is_measured_is_what_runs(
    kernel: str, slower: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = measure()
    real = getattr(costs, kernel)

    def slow(*args: Any) -> Any:
        blocks = [each for each in args if type(each) is tuple]
        if blocks != [(0, 0)]:  # the call alone, which is taken off again
            time.sleep(0.02)
        return real(*args)

    monkeypatch.setattr(costs, kernel, slow)
    after = measure()
    assert getattr(after, slower) > 3 * getattr(before, slower)
    monkeypatch.undo()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_costs_are_answers_are_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    some = MeasuredCosts(*(usual * 4.0 ** rng.integers(-1, 2) for usual in USUAL))
    monkeypatch.setattr(costs, "USUAL", some)
    monkeypatch.setattr(costs, "_FEW", math.inf)
    made = workload.make("auctions", 2_000, seed=seed)
    schema = Schema.from_dict(made.schema)
    answers = []
    for name in ("tamis", "scan"):
        engine = Engine(schema, matcher=name)
        engine.subscribe_table(made.subscriptions)
        answers.append([sorted(found) for found in engine.match_batch(made.events(200))])
        engine.check()
        if name == "tamis":
            assert named(saved_form(engine.matcher).arrays["index.costs"]) == pytest.approx(
                some._asdict()
            )
    assert answers[0] == answers[1]


def test_usual_costs_give_the_same_plan_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_COSTS", "usual")
    made = workload.make("lesubscribe", MANY, seed=1)
    schema = Schema.from_dict(made.schema)
    plans = []
    for _ in range(2):
        engine = Engine(schema, matcher="tamis")
        engine.subscribe_table(made.subscriptions)
        engine.match_batch(made.events(100))
        arrays = saved_form(engine.matcher).arrays
        plans.append((arrays["index.costs"].tolist(), arrays["index.kind"].tolist()))
    assert plans[0] == plans[1]
    assert plans[0][0][: len(USUAL)] == list(USUAL)
