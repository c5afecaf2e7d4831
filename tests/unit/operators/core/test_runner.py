"""One answer for each event, whatever an operator does; the counts add up."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.errors import OperatorError
from tamis.model.operator import Fault
from tamis.operators import Operator, Runner, operator
from tests.running import in_threads
from tests.unit.operators.core.worker_probes import kinds


class Clock:
    """Shows what it is set to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _bad(run: str = "here", batch: bool = False, timeout: float = 20) -> Operator:
    """Raises at 1, talks nonsense at 2, exits at 3, and gives anything else."""

    def one(n: int) -> Any:
        if n == 1:
            raise ValueError("one")
        if n == 3:
            raise SystemExit
        return "two" if n == 2 else n

    def many(n: list[int]) -> list[Any]:
        return [one(each) for each in n]

    return operator(
        name="bad", reads=("n",), gives={"m": "number"}, run=run, batch=batch, timeout=timeout
    )(many if batch else one)


def test_here_is_the_calling_thread(runner: Runner) -> None:
    @operator(reads=("n",), gives={"thread": "number"}, run="here")
    def where(n: int) -> int:
        return threading.get_ident()

    assert runner.call(where, [(1,)], (None,)) == [((threading.get_ident(),),)]


def test_the_keyboard_passes_through_a_call_here(runner: Runner) -> None:
    @operator(reads=("n",), run="here")
    def typed(n: int) -> bool:
        if n:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        runner.call(typed, [(0,), (1,)], ())
    assert runner.call(typed, [(0,)], ()) == [((),)]


def test_what_the_function_is_handed(runner: Runner) -> None:
    @operator(
        reads=("a.b", "c"),
        arguments={"k": "number", "place": "text"},
        gives={"x": "any", "y": "any"},
        run="here",
    )
    def echo(c: int, y: Any, place: str, k: int, a_b: int) -> Any:
        return (f"{a_b} {c} {k} {place}", "variable" if y is None else y)

    assert runner.call(echo, [(1, 2), (3, 4)], (5, "p", None, None)) == [
        (("1 2 5 p", "variable"),),
        (("3 4 5 p", "variable"),),
    ]
    assert runner.call(echo, [(1, 2)], (5, "p", "filters", 7)) == [(("1 2 5 p", 7),)]


def test_wrong_calls_are_the_callers_fault(runner: Runner) -> None:
    bad = _bad()
    with pytest.raises(OperatorError, match="takes 1 argument, got 0"):
        runner.call(bad, [(1,)], ())
    with pytest.raises(OperatorError, match="reads 1 attribute, got 2 values"):
        runner.call(bad, [(1,), (1, 2)], (None,))
    assert runner.call(bad, [], (None,)) == []
    assert len(runner.report()) == 0


@pytest.mark.parametrize("run", ["here", "thread", "process"])
@pytest.mark.parametrize("batch", [False, True])
def test_the_same_everywhere(run: str, batch: bool) -> None:
    numbers = [0, 1, 2, 4, 3, 5, 6]
    with Runner(faults=100) as runner:
        found = runner.call(_bad(run, batch), [(n,) for n in numbers], (None,))
        assert found == [
            ((0,),),
            Fault("raised: ValueError: one", "raised"),
            Fault("nonsense: 'two' is not a number", "nonsense"),
            ((4,),),
            Fault("raised: SystemExit", "raised"),
            ((5,),),
            ((6,),),
        ]
        count = runner.report()["bad"]
    assert (count.events, count.answered, count.raised, count.nonsense) == (7, 4, 2, 1)
    assert count.seconds > 0
    assert count.calls >= 7 or batch


@pytest.mark.parametrize("run", ["thread", "process"])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, MemoryError, ValueError])
def test_what_it_raises_stays_there(runner: Runner, run: str, error: type[BaseException]) -> None:
    @operator(reads=("n",), run=run, timeout=20)
    def bad(n: int) -> bool:
        if n:
            raise error("no")
        return True

    found = runner.call(bad, [(1,), (0,)], ())
    assert found == [Fault(f"raised: {error.__name__}: no", "raised"), ((),)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 3))
def test_a_batch_equals_one_by_one(numbers: list[int], faults: int) -> None:
    events = [(n,) for n in numbers]
    patient = Runner(faults=1000)
    one_by_one = patient.call(_bad(), events, (None,))
    assert patient.call(_bad(batch=True), events, (None,)) == one_by_one
    hasty = Runner(faults=faults)
    for batch in (False, True):
        found = hasty.call(_bad(batch=batch), events, (None,))
        for mine, right in zip(found, one_by_one, strict=True):
            assert mine == right or (isinstance(mine, Fault) and mine.kind == "set aside")
    total = hasty.report()["bad"] if numbers else None
    assert total is None or total.events == 2 * len(numbers)
    assert total is None or total.answered + total.faults == total.events


@pytest.mark.parametrize("run", ["here", "thread", "process"])
def test_a_batch_that_answers_for_each_event_is_not_asked_again(run: str) -> None:
    failing = operator(name="failing", reads=("n",), run=run, batch=True, timeout=20)(
        lambda n: [ValueError(each) for each in n]
    )
    with Runner() as runner:
        found = runner.call(failing, [(1,), (2,)], ())
        assert found == [Fault(f"raised: ValueError: {n}", "raised") for n in (1, 2)]
        assert runner.report()["failing"].calls == 1


def test_a_batch_that_raises_for_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(seconds))
    with Runner(faults=1000) as runner:
        bad = operator(name="slow", reads=("n",), run="here", batch=True, timeout=2.5)(
            lambda n: 1 // 0
        )
        found = runner.call(bad, [(1,)] * 100, ())
    assert kinds(found) == ["raised"] * 100
    assert runner.report()["slow"].calls <= 10


def test_calls_that_were_not_tried_are_counted(runner: Runner) -> None:
    bad = _bad()
    late = Fault("timeout: it hung for this event before", "timeout")
    runner.skipped(bad, [], late)
    assert len(runner.report()) == 0  # nobody asked
    runner.call(bad, [(0,)], (None,))
    runner.skipped(bad, [()] * 3, late)
    count = runner.report()["bad"]
    assert (count.events, count.calls, count.answered, count.timeouts) == (4, 1, 1, 3)
    assert count.last == late.reason
    # Nothing was tried, so nothing failed: it is not set aside for it.
    runner.skipped(bad, [()] * 100, late)
    assert kinds(runner.call(bad, [(0,)], (None,))) == ["answered"]


def test_every_second_call_fails(runner: Runner) -> None:
    found = runner.call(_bad(), [(0,), (1,)] * 15, (None,))
    assert kinds(found) == ["answered", "raised"] * 10 + ["set aside"] * 10


def test_it_is_set_aside_and_tried_again() -> None:
    clock = Clock()
    runner = Runner(clock=clock)
    bad = _bad()
    found = runner.call(bad, [(1,)] * 8 + [(0,)], (None,))
    assert kinds(found) == ["raised"] * 5 + ["set aside"] * 4
    refused = found[-1]
    assert isinstance(refused, Fault)
    assert refused.reason == (
        "set aside for another 30 s after 5 faults in a row, the last: raised: ValueError: one"
    )
    assert runner.report()["bad"].set_aside_for == 30
    clock.now = 29.0
    assert kinds(runner.call(bad, [(0,)], (None,))) == ["set aside"]
    clock.now = 30.0
    assert runner.report()["bad"].set_aside_for is None
    assert kinds(runner.call(bad, [(1,), (0,)], (None,))) == ["raised", "set aside"]
    assert runner.report()["bad"].set_aside_for == 60
    clock.now = 90.0
    assert kinds(runner.call(bad, [(0,), (1,), (0,)], (None,))) == [
        "answered",
        "raised",
        "answered",
    ]
    count = runner.report()["bad"]
    assert (count.events, count.calls, count.raised, count.set_aside) == (15, 9, 7, 6)
    assert count.last == "raised: ValueError: one"


def test_only_the_failing_operator_is_set_aside_until_it_is_mended(runner: Runner) -> None:
    runner.call(_bad(), [(1,)] * 20, (None,))
    good = operator(name="good", reads=("n",), run="here")(lambda n: True)
    assert runner.call(good, [(1,)], ()) == [((),)]
    assert runner.report().faults == 20
    mended = operator(name="bad", reads=("n",), gives={"m": "number"}, run="here")(lambda n: n)
    assert runner.call(mended, [(1,)], (None,)) == [((1,),)]
    assert runner.report()["bad"].events == 21


@pytest.mark.parametrize(
    "options", [{"faults": 0}, {"pause": 0}, {"pause": -1.0}, {"left": 0}, {"longest": 1}]
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(OperatorError, match="of a Runner is"):
        Runner(**options)


@pytest.mark.parametrize("run", ["here", "thread", "process"])
def test_pickling(run: str) -> None:
    bad = _bad(run)
    with Runner(faults=3, pause=7) as runner:
        runner.call(bad, [(0,)] + [(1,)] * 5, (None,))
        before = runner.report()["bad"]
        again = pickle.loads(pickle.dumps(runner))
        assert isinstance(again, Runner)
        with again:
            kept = again.report()["bad"]
            assert (kept.events, kept.raised, kept.set_aside) == (6, 3, 2)
            found = kinds(again.call(bad, [(0,)] + [(1,)] * 4, (None,)))
            assert found == ["answered", *["raised"] * 3, "set aside"]
            left = again.report()["bad"].set_aside_for
            assert left is not None
            assert 0 < left <= 7
        assert runner.report()["bad"].events == before.events


def test_counts_add_up_when_several_call_at_once() -> None:
    runner = Runner(faults=10**9)
    bad = _bad()
    in_threads(runner.call, [(bad, [(0,), (1,), (2,)] * 200, (None,))] * 4)
    count = runner.report()["bad"]
    assert (count.events, count.calls, count.raised, count.nonsense) == (2400, 2400, 800, 800)
