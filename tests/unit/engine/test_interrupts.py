"""An interrupt at any moment of a call: each subscription is wholly there or not at all.

TAMIS_INTERRUPTS says how many interrupts to try, TAMIS_SOAK_SEED at which bytecodes.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import wait
from functools import partial

import pyarrow as pa
import pytest

from tamis import Engine
from tamis.encode import labels
from tamis.engine import bulk_load
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
    subscribe,
    unsubscribe,
)

MATCHERS = ("tamis", "scan", "counting-bit", "be-tree", "gough")
SEED = int(os.environ.get("TAMIS_SOAK_SEED", "0"))
MANY = int(os.environ.get("TAMIS_INTERRUPTS", "500"))
_FAR = 1 << 60

pytestmark = pytest.mark.xdist_group("interrupts")


@pytest.fixture(scope="module")
def tried() -> Iterator[list[int]]:
    """Counts of interrupts, for the report."""
    counts, begun = [0], time.monotonic()
    yield counts
    record("interrupts", sum(counts), 0, time.monotonic() - begun)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to large engines only happens to this small one, too."""
    monkeypatch.setattr(labels, "_STEP", 8)  # labels move all the time
    monkeypatch.setattr(bulk_load, "_MANY", 4)
    monkeypatch.setattr(default_matcher, "_AT_ONCE", 0)
    monkeypatch.setattr(default_matcher, "_FEWER", 2)


def _engine(matcher: str, state: str) -> tuple[Engine, Live]:
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
    return engine, live


def _try(kept: bytes, live: Live, case: Case, after: int) -> None:
    """Interrupt a case, and see what is there. Then do it again, and more."""
    engine: Engine = pickle.loads(kept)
    ids = list(live)
    interrupt(partial(case.do, engine), after)
    assert not engine._lock.mutex._is_owned()  # type: ignore[attr-defined]
    done = case.after(live)
    if list(engine.ids()) == list(done):
        check(engine, done)
    else:
        check(engine, live)
        case.do(engine)
        check(engine, done)
    for more in (subscribe("more", 's = "aaaaab" or n = 1 and above(0)'), unsubscribe(0)):
        more.do(engine)
        done = more.after(done)
    check(engine, done)


@pytest.mark.parametrize(
    ("matcher", "state"),
    [("tamis", "new"), ("tamis", "moving"), *((name, "planned") for name in MATCHERS)],
)
def test_an_interrupt_at_any_bytecode(matcher: str, state: str, tried: list[int]) -> None:
    engine, live = _engine(matcher, state)
    check(pickle.loads(pickle.dumps(engine)), live)
    kept = pickle.dumps(engine)
    draw = random.Random(f"{SEED} {matcher} {state}")
    steps = [interrupt(partial(case.do, pickle.loads(kept)), _FAR) for case in CASES]
    share = MANY / 7 / sum(steps)
    for case, many in zip(CASES, steps, strict=True):
        points = range(1, many + 1)
        for after in draw.sample(points, min(many, round(many * share) + 1)):
            try:
                _try(kept, live, case, after)
            except BaseException as why:
                why.add_note(f"{matcher}, {state}: {case.name} was interrupted at {after}")
                raise
            tried[0] += 1
