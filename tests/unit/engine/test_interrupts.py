"""An interrupt at any moment of a call: each subscription is wholly there or not at all.

TAMIS_INTERRUPTS says how many interrupts to try, and TAMIS_SOAK_SEED at which moments.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import wait
from functools import partial

import pytest

from tamis import Engine
from tamis.encode import labels
from tamis.engine import bulk_load
from tamis.engine.calls import call_group
from tamis.match.default import matcher as default_matcher
from tamis.match.default.matcher import Tamis
from tests.soak_report import record
from tests.unit.engine.interrupting import (
    ABOVE,
    BEFORE,
    CASES,
    EVENTS,
    SCHEMA,
    Case,
    Live,
    check,
    interrupt,
    interrupted,
    same,
    subscribe,
    unsubscribe,
)

STATES = [
    ("tamis", "new"),
    ("tamis", "planned"),
    ("tamis", "moving"),
    ("scan", "planned"),
    ("counting-bit", "planned"),
    ("be-tree", "planned"),
    ("gough", "planned"),
]
SEED = os.environ.get("TAMIS_SOAK_SEED", "0")
MANY = int(os.environ.get("TAMIS_INTERRUPTS", "280")) / len(STATES) / 2
_FAR = 1 << 60

pytestmark = [
    pytest.mark.xdist_group("interrupts"),
    # Not every place passes an interrupt on: a callback of the garbage collector does not.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def tried() -> Iterator[Counter[str]]:
    """The numbers of interrupts, for the report."""
    counts, begun = Counter[str](), time.monotonic()
    yield counts
    right = counts["right"]
    record("interrupts", counts["tried"], counts["tried"] - right, time.monotonic() - begun)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to large engines only happens to this small one, too."""
    monkeypatch.setattr(labels, "_STEP", 8)  # labels move all the time
    monkeypatch.setattr(bulk_load, "_MANY", 4)
    monkeypatch.setattr(call_group, "_FEW", 0)
    monkeypatch.setattr(default_matcher, "_AT_ONCE", 0)
    monkeypatch.setattr(default_matcher, "_FEWER", 2)


def _engine(matcher: str, state: str) -> tuple[bytes, Live]:
    engine = Engine(SCHEMA, matcher, operators=ABOVE)
    live: Live = {}
    for case in BEFORE:
        case.do(engine)
        live = case.after(live)
    if state != "new":
        engine.match_batch(EVENTS)
    if state == "moving":
        assert isinstance(engine.matcher, Tamis)
        engine.matcher._plan()
        assert engine.matcher._planning is not None
        wait([engine.matcher._planning])
        engine.match({})
        assert engine.matcher._next is not None
    kept = pickle.dumps(engine)
    check(engine, live)
    return kept, live


def _is_right(engine: Engine, live: Live, case: Case) -> None:
    """After an interrupted case, all of it is there or nothing; and everything still works."""
    assert not engine._lock.is_mine
    done = case.after(live)
    if engine.ids() != list(done):
        check(engine, live)
        case.do(engine)
    check(engine, done)
    for more in (subscribe("more", 's = "aaaaab" or n = 1 and above(0)'), unsubscribe(0)):
        more.do(engine)
        done = more.after(done)
    check(engine, done)


@pytest.mark.parametrize(("matcher", "state"), STATES)
def test_an_interrupt_at_any_bytecode(matcher: str, state: str, tried: Counter[str]) -> None:
    kept, live = _engine(matcher, state)
    draw = random.Random(f"{SEED} {matcher} {state}")
    steps = [interrupt(partial(case.do, pickle.loads(kept)), _FAR) for case in CASES]
    share = MANY / sum(steps)
    for case, many in zip(CASES, steps, strict=True):
        # At least one of each; a share of less than one may be one.
        some = min(many, max(1, int(many * share + draw.random())))
        for after in draw.sample(range(1, many + 1), some):
            engine: Engine = pickle.loads(kept)
            interrupt(partial(case.do, engine), after)
            tried["tried"] += 1
            try:
                _is_right(engine, live, case)
            except BaseException as why:
                why.add_note(f"{case.name} was interrupted at bytecode {after}")
                raise
            tried["right"] += 1


@pytest.mark.parametrize(("matcher", "state"), STATES)
def test_a_signal_at_any_moment(matcher: str, state: str, tried: Counter[str]) -> None:
    kept, live = _engine(matcher, state)
    draw = random.Random(f"{SEED} {matcher} {state}")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Ctrl-C
    try:
        came = 0
        while came < MANY:
            case, engine = draw.choice(CASES), pickle.loads(kept)

            def do(case: Case = case, engine: Engine = engine) -> None:
                signal.setitimer(signal.ITIMER_REAL, 10 ** draw.uniform(-5, -2.5))
                try:
                    case.do(engine)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)

            if interrupted(do):
                came += 1
                tried["tried"] += 1
                _is_right(engine, live, case)
                tried["right"] += 1
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("case", [subscribe("x", "n = 7"), unsubscribe(0), unsubscribe("several")])
def test_old_results_keep_their_ids(case: Case) -> None:
    kept, _ = _engine("tamis", "planned")
    for after in range(1, 5000, 97):
        engine: Engine = pickle.loads(kept)
        batch, bits = engine.match_batch(EVENTS), engine.match_bitmap(EVENTS)
        interrupt(partial(case.do, engine), after)
        unsubscribe(100).do(engine)
        subscribe("recycled", "n = 3").do(engine)
        then: Engine = pickle.loads(kept)
        for at, event in enumerate(EVENTS):
            expected = then.match(event)
            assert same(batch[at], expected)
            assert same(bits[at], expected)


def test_a_second_interrupt_during_the_repair() -> None:
    kept, live = _engine("tamis", "planned")
    case = subscribe("y", 's = "aaab" or n = 2 and above(1)')
    steps = interrupt(partial(case.do, pickle.loads(kept)), _FAR)
    for after in range(steps // 2, steps, 151):
        engine: Engine = pickle.loads(kept)
        interrupt(partial(case.do, engine), after)
        for again in (2000, 10_000, 20_000):
            interrupt(partial(engine.match, {}), again)
        _is_right(engine, live, case)
