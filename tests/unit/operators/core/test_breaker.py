"""The breaker's pauses, by a clock that the test sets; and what a report says."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tamis.model.operator import Fault
from tamis.operators.breaker import CircuitBreaker
from tamis.operators.report import CallCounts, Report


def _fail(breaker: CircuitBreaker, now: float) -> bool:
    """Ask and fail; was it allowed to ask?"""
    entered = breaker.enter(now)
    if isinstance(entered, Fault):
        assert entered.kind == "set aside"
        return False
    breaker.failed(entered, "raised: no", now)
    return True


def test_faults_in_a_row() -> None:
    breaker = CircuitBreaker(3, 30, 100)
    assert [_fail(breaker, 0) for _ in range(5)] == [True] * 3 + [False] * 2
    refused = breaker.enter(10)
    assert isinstance(refused, Fault)
    assert refused.reason == (
        "set aside for another 20 s after 3 faults in a row, the last: raised: no"
    )
    assert breaker.pause_left(29) == 1
    assert breaker.pause_left(30) is None


def test_an_answer_between_faults_and_a_fault_that_took_long() -> None:
    breaker = CircuitBreaker(3, 30, 100)
    for _ in range(20):
        assert [_fail(breaker, 0) for _ in range(2)] == [True, True]
        for _ in range(3):
            breaker.answered()
    entered = breaker.enter(0)
    assert not isinstance(entered, Fault)
    breaker.failed(entered, "stuck", 0, at_once="1 fault in a row")
    refused = breaker.enter(10)
    assert isinstance(refused, Fault)
    assert refused.reason == "set aside for another 20 s after 1 fault in a row, the last: stuck"


def test_every_second_call_fails() -> None:
    breaker = CircuitBreaker(3, 30, 100)
    asked = 0
    while not isinstance(refused := breaker.enter(0), Fault):
        asked += 1
        if asked % 2:
            breaker.answered()
        else:
            breaker.failed(refused, "raised: no", 0)
    assert asked == 12
    assert refused.reason == (
        "set aside for another 30 s after 6 faults in 12 calls, the last: raised: no"
    )
    # A trial that fails makes the pause longer; one that does not lets it begin anew.
    assert _fail(breaker, 30)
    assert breaker.pause_left(30) == 60
    assert not isinstance(breaker.enter(90), Fault)
    breaker.answered()
    assert [_fail(breaker, 90) for _ in range(2)] == [True, True]


def test_one_trial_and_longer_pauses() -> None:
    breaker = CircuitBreaker(2, 10, 35)
    assert [_fail(breaker, 0) for _ in range(3)] == [True, True, False]
    now, pauses = 10.0, []
    for _ in range(4):
        assert _fail(breaker, now)
        left = breaker.pause_left(now)
        assert left is not None
        pauses.append(left)
        assert not _fail(breaker, now + left - 0.1)
        now += left
    assert pauses == [20, 35, 35, 35]
    assert not isinstance(breaker.enter(now), Fault)
    breaker.answered()
    assert [_fail(breaker, now) for _ in range(3)] == [True, True, False]
    assert breaker.pause_left(now) == 10


def test_others_wait_while_one_tries_and_do_not_prolong_the_pause() -> None:
    breaker = CircuitBreaker(1, 10, 100)
    assert _fail(breaker, 0)
    assert not isinstance(breaker.enter(10), Fault)
    assert isinstance(breaker.enter(10), Fault)
    # The one that tried was never heard of again.
    assert isinstance(breaker.enter(29), Fault)
    assert not isinstance(breaker.enter(30), Fault)
    breaker = CircuitBreaker(2, 10, 100)
    for each in [breaker.enter(0) for _ in range(4)]:
        assert not isinstance(each, Fault)
        breaker.failed(each, "late", 0)
    assert breaker.pause_left(0) == 10
    assert _fail(breaker, 10)
    assert breaker.pause_left(10) == 20


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(["good", "bad"]), st.integers(0, 30)), max_size=60),
)
def test_against_a_plain_account(limit: int, steps: list[tuple[str, int]]) -> None:
    breaker = CircuitBreaker(limit, 10, 40)
    now, row, until, pause = 0, 0, None, 10
    last: list[bool] = []  # which calls failed, since it was set aside
    for outcome, passes in steps:
        now += passes
        entered = breaker.enter(now)
        assert isinstance(entered, Fault) == (until is not None and now < until)
        if isinstance(entered, Fault):
            continue
        if outcome == "good":
            breaker.answered()
            row, until, pause = 0, None, 10
            last.append(False)
        else:
            breaker.failed(entered, "bad", now)
            row += 1
            last.append(True)
            share = sum(last[-4 * limit :]) >= 2 * limit
            if row >= limit or share or until is not None:
                until, pause, last = now + pause, min(2 * pause, 40), []


def test_counts() -> None:
    count = CallCounts("f")
    count.enter([((),), (), Fault("raised: a", "raised"), Fault("t", "timeout")])
    count.enter([Fault("nonsense: b", "nonsense"), Fault("set aside …", "set aside")])
    count.calls, count.seconds = 5, 0.25
    assert (count.events, count.answered, count.faults) == (6, 2, 4)
    assert count.last == "nonsense: b"
    assert str(count) == (
        "f: 6 events, 5 calls, 0.25 s, 1 raised, 1 timeout, 1 nonsense, 1 set aside; "
        "the last fault: nonsense: b"
    )
    count.set_aside_for = 12.5
    assert "; set aside for another 12.5 s;" in str(count)
    count.set_aside_for = math.inf
    assert "; set aside until a call that hangs comes back;" in str(count)


def test_report() -> None:
    counts = [CallCounts("g", events=1), CallCounts("f", events=3, raised=2)]
    report = Report.of(counts)
    counts[0].events = 99
    assert [each.operator for each in report] == ["f", "g"]
    assert report["g"].events == 1
    assert report["unknown"] == CallCounts("unknown")
    assert len(report) == 2
    assert report.faults == 2
    assert str(report).splitlines() == [
        "f: 3 events, 0 calls, 0 s, 2 raised",
        "g: 1 event, 0 calls, 0 s",
    ]
    assert str(Report(())) == "no operator was called"
