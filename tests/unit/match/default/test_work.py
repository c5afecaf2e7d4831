"""The work of the default matcher, counted: a slow plan shows, however busy the machine is.

Each workload of `tamis bench peers` is here at a small size, with several beginnings. With the
usual costs the same clauses and events give the same plan, and so the same counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.encode.terms import Terms
from tamis.lab.bench import peers
from tamis.match.default import matcher as default
from tamis.match.default.matcher import Tamis
from tamis.match.default.planning.costs import USUAL
from tamis.match.default.planning.event_sample import EventSample
from tests.loaded import loaded

SIZE = 8000  # subscriptions
SEEN = 700  # events of a beginning at most
COUNTED = 300  # events


class Work(NamedTuple):
    """The mean work for an event (see `WorkTally`), and the bytes of a subscription."""

    lines: float
    probes: float
    visits: float
    checks: float
    verified: float
    bytes: float

    @property
    def cost(self) -> float:
        """Nanoseconds, at the usual costs."""
        return (
            USUAL.line * self.lines
            + USUAL.probe * self.probes
            + USUAL.visit * self.visits
            + USUAL.check * self.checks
            + USUAL.verify * self.verified
        )


# Counted when this was written. Less is better: then lower the figures here.
EXPECTED = {
    "dexin": Work(108.70, 0.00, 0.00, 6.12, 0.00, 793.70),
    "dexin-matching": Work(33.57, 0.00, 0.00, 26.02, 0.00, 761.59),
    "lesubscribe": Work(15.30, 2.28, 5.47, 55.01, 0.11, 292.38),
    "lesubscribe-equality": Work(0.00, 2.92, 2.66, 0.00, 0.00, 283.04),
    "topss-w4": Work(160.00, 0.00, 0.00, 0.01, 0.00, 161.68),
    "topss-w0": Work(30.00, 337.00, 507.09, 189.39, 320.22, 588.51),
    "gryphon": Work(169.25, 0.00, 0.00, 0.59, 0.19, 325.30),
    "sparse": Work(24.00, 38.70, 9.80, 0.50, 0.36, 592.81),
}
VARIANTS = [
    pytest.param(each, marks=pytest.mark.slow) if each == "sparse" else each for each in EXPECTED
]
BEGINNINGS = {
    "large batches": [350, 350],
    "one event": [1, 500],
    "single events": [1] * 80,
    "small batches": [10] * 12,
    "batches that grow": [1, 2, 4, 8, 16, 32, 64, 128],
    "one event before the load": [1, 1, 500],
}


@pytest.fixture(autouse=True)
def _plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plans on every machine, and made in the background, as for many subscriptions."""
    monkeypatch.setenv("TAMIS_COSTS", "usual")
    monkeypatch.setattr(default, "_AT_ONCE", SIZE // 2)


@cache
def encoded(variant: str) -> tuple[Terms, EventBatch]:
    """The clauses and events of a workload, as matchers see them."""
    made = workload.make_variant(variant, SIZE, seed=1)
    with loaded(made, "scan") as engine:
        matcher = engine.matcher
        terms = matcher.terms(matcher.clauses.live_slots())
        return terms, engine.encode(made.events(SEEN + COUNTED))


def begun(variant: str, beginning: str) -> tuple[Tamis, EventBatch]:
    """A matcher with all subscriptions that has seen some events, and others to count by."""
    terms, batch = encoded(variant)
    slots = np.arange(terms.clauses)
    matcher = Tamis(threads=1)
    first = 100 if beginning == "one event before the load" else 0
    sizes = BEGINNINGS[beginning]
    ends = np.cumsum(sizes).tolist()
    if first:
        matcher.add(slots[:first], terms.take(slots[:first]))
        matcher.match(batch[: sizes[0]])
    matcher.add(slots[first:], terms.take(slots[first:]))
    for size, end in zip(sizes, ends, strict=True):
        matcher.match(batch[end - size : end])
    return matcher, batch[SEEN:]


def work_of(matcher: Tamis, batch: EventBatch) -> Work:
    """The work for a batch, without what has to be done twice while buffers grow."""
    matcher.match(batch)
    matcher.tally.reset()
    matcher.match(batch)
    done = matcher.tally
    counts = (done.lines, done.probes, done.visits, done.checks, done.verified)
    return Work._make([*(each / done.events for each in counts), matcher.nbytes / len(matcher)])


def test_every_workload_of_the_peers_is_counted() -> None:
    assert {row.variant for row in peers.ROWS.values()} <= set(EXPECTED)


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_work_is_as_expected_however_it_began(variant: str, beginning: str) -> None:
    matcher, batch = begun(variant, beginning)
    plan = matcher.plan()
    assert plan.events >= 64, "a plan for few events is replaced"
    assert plan.moving == 0, "at once"
    found, expected = work_of(matcher, batch), EXPECTED[variant]
    assert found.cost <= 1.1 * expected.cost + 1
    assert found.bytes <= 1.1 * expected.bytes
    if beginning == "large batches":
        assert all(now <= 1.05 * then + 0.1 for now, then in zip(found, expected, strict=True))


def test_single_events_take_the_same_work() -> None:
    matcher, batch = begun("dexin", "one event")
    together = work_of(matcher, batch)
    matcher.tally.reset()
    for at in range(COUNTED):
        matcher.match(batch[at : at + 1])
    assert matcher.tally.events == COUNTED
    assert matcher.tally.lines == pytest.approx(COUNTED * together.lines)
    assert matcher.tally.checks == pytest.approx(COUNTED * together.checks)


def test_counts_are_those_of_all_threads_and_of_a_copy() -> None:
    matcher, batch = begun("lesubscribe", "large batches")
    alone = work_of(matcher, batch)
    matcher.threads = 2
    assert work_of(matcher, batch) == alone
    copy = pickle.loads(pickle.dumps(matcher))
    assert copy.tally == matcher.tally
    assert work_of(copy, batch)[:5] == alone[:5]


def test_a_plan_that_stays_good_is_looked_at_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few subscriptions, looking at the events could take longer than matching them."""
    called: dict[str, int] = {"differs": 0, "of": 0}

    def counted(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            called[name] += 1
            return do(*given)

        return run

    few = workload.make_variant("dexin", 1000, seed=1)
    engine = loaded(few, "tamis", threads=1)
    batch = engine.encode(few.events(1000))
    engine.matcher.match(batch)
    monkeypatch.setattr(EventSample, "differs", counted("differs", EventSample.differs))
    monkeypatch.setattr(EventSample, "of", staticmethod(counted("of", EventSample.of)))
    for _ in range(200):
        engine.matcher.match(batch)
    assert 10 <= called["differs"] <= 25
    assert called["of"] <= 3 * called["differs"]
