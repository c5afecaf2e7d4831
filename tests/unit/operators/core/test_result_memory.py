"""Results are remembered by what the function was handed, and never more of them than allowed."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Engine, Schema, TamisError, operator
from tamis.operators import Operator
from tamis.operators.remembering_runner import RememberingRunner
from tamis.operators.result_memory import ResultMemory, input_key

SCHEMA = Schema.from_dict({"attributes": {"n": "integer", "text": "text", "blob": "opaque"}})


def _counting(
    batch: bool | str = False, run: str = "here", **more: Any
) -> tuple[Operator, Counter[Any]]:
    """An operator that counts what it is asked; it fails at 13."""
    asked: Counter[Any] = Counter()

    def one(n: int, k: int) -> int:
        asked[n, k] += 1
        if n == 13:
            raise ValueError("thirteen")
        return n + k

    def many(n: list[int], k: Any) -> list[Any]:
        ks = k if isinstance(k, list) else [k] * len(n)
        return [ValueError("13") if a == 13 else one(a, b) for a, b in zip(n, ks, strict=True)]

    made = operator(
        name="plus",
        reads=("n",),
        arguments={"k": "number"},
        gives={"sum": "number"},
        run=run,
        batch=batch,
        **more,
    )(many if batch else one)
    return made, asked


@pytest.mark.parametrize("batch", [False, True, "pairs"])
@pytest.mark.parametrize("run", ["here", "thread"])
def test_a_call_that_was_answered_is_not_made_again(batch: bool | str, run: str) -> None:
    plus, asked = _counting(batch, run)
    with Engine(SCHEMA, operators=plus) as engine:
        for k in (1, 2):
            engine.subscribe(f"plus({k}, ?s) and ?s > 5", id=k)
        events = [{"n": n % 7, "text": str(n)} for n in range(50)]
        right = [{k for k in (1, 2) if event["n"] + k > 5} for event in events]  # type: ignore[operator]
        for _ in range(3):
            assert [set(ids) for ids in engine.match_batch(events)] == right
        assert set(engine.match({"n": 4})) == {2}
        assert set(asked.values()) == {1}
        assert len(asked) == 14
        report = engine.report()
        count = report["plus"]
        assert (count.events, count.hits + count.misses, count.faults) == (302, 302, 0)
        assert count.hits >= 202
        assert report.remembered == 14
        assert f"{count.hits} remembered" in str(report)


def test_an_operator_that_is_not_pure_is_called_every_time() -> None:
    plus, asked = _counting(pure=False)
    engine = Engine(SCHEMA, operators=plus)
    engine.subscribe("plus(1, ?s)")
    engine.match_batch([{"n": 1}, {"n": 1}, {"n": 2}])
    engine.match({"n": 1})
    assert asked == {(1, 1): 3, (2, 1): 1}
    assert engine.report()["plus"].hits == engine.report().remembered == 0
    with pytest.raises(TamisError, match="pure is True or False, not 'no'"):
        _counting(pure="no")


@pytest.mark.parametrize("batch", [False, True, "pairs"])
def test_faults_are_not_remembered(batch: bool | str) -> None:
    plus, _ = _counting(batch)
    engine = Engine(SCHEMA, operators=plus)
    engine.subscribe("plus(1, ?s)", id=0)
    for _ in range(2):
        found = engine.match_batch([{"n": 13}, {"n": 1}, {"n": 13}, {"n": 1}])
        assert [list(ids) for ids in found] == [[], [0], [], [0]]
    count = engine.report()["plus"]
    assert (count.raised, count.events) == (4, 8)
    assert engine.report().remembered == 1


def test_nothing_is_remembered_where_that_is_asked_for() -> None:
    plus, asked = _counting()
    engine = Engine(SCHEMA, operators=plus, remember=0)
    engine.subscribe("plus(1, ?s)")
    engine.match_batch([{"n": 1}] * 5)
    assert asked[1, 1] == 5
    with pytest.raises(TamisError, match="0 or more, not -1"):
        Engine(SCHEMA, remember=-1)


def test_the_memory_is_bounded_and_keeps_what_is_asked_for() -> None:
    memory = ResultMemory(100)
    call = ("f", ())
    for n in range(1000):
        memory.keep(call, n, ((n,),))
        assert memory.recall(call, ["often"]) == [((1,),)] or n == 0
        memory.keep(call, "often", ((1,),))
        assert len(memory) <= 100
    assert memory.recall(call, [999, 1, "often"]) == [((999,),), None, ((1,),)]
    assert memory.recall(("f", 1), [999]) == [None]
    memory.keep(call, "large", tuple((n,) for n in range(60)))
    memory.keep(call, None, ((1,),))
    assert memory.recall(call, ["large", None]) == [None, None]
    assert len(pickle.loads(pickle.dumps(memory))) == 0


_TEXTS = st.text(max_size=2)
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0]), _TEXTS
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(_JSON | st.binary(max_size=100), min_size=2, max_size=2))
def test_keys_are_equal_only_if_a_function_cannot_tell_inputs_apart(values: list[Any]) -> None:
    one, other = (input_key((each,)) for each in values)
    assert (one == other) == (repr(values[0]) == repr(values[1]))
    assert input_key((values[0], 1)) == input_key((pickle.loads(pickle.dumps(values[0])), 1))


def test_a_large_input_is_remembered_without_keeping_it() -> None:
    seen: list[int] = []

    @operator(reads=("blob",), gives={"bytes": "number"}, run="here")
    def size(blob: Any) -> int:
        seen.append(1)
        return len(blob)

    engine = Engine(SCHEMA, operators=size)
    engine.subscribe("size(?n) and ?n > 99", id=0)
    for _ in range(3):
        assert engine.match({"blob": b"x" * 100_000}) == [0]
        assert engine.match({"blob": {"not": ["bytes"] * 50}}) == []
    assert len(seen) == 2


def test_a_runner_of_its_own() -> None:
    plus, asked = _counting("pairs")
    runner = RememberingRunner(faults=1000)
    one, two = (1, None), (2, None)
    found = runner.answers(plus, [(1,), (1,), (1,), (13,), (13,)], [one, two, one, one, one])
    assert found[:3] == [((2,),), ((3,),), ((2,),)]
    assert asked[1, 1] == asked[1, 2] == 1
    assert runner.answers(plus, [], []) == []
