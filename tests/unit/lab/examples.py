"""One result of each kind, and matchers that are wrong on purpose."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from tamis.encode.batch import EventBatch
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.lab.instruments.timing import Spread
from tamis.lab.results.records import (
    ChurnResult,
    DoorResult,
    Figure,
    Goal,
    MatcherResult,
    MemoryCourse,
    OperatorResult,
    Overhead,
    PeerResult,
    RefusedResult,
    ResidualResult,
    Result,
    ScaleResult,
    Speed,
)
from tamis.match.base import Matches, Slots
from tamis.match.capabilities import RunsInThreads
from tamis.match.lesubscribe.naive import Naive
from tamis.match.registry import MatcherEntry

MOMENT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)

FIGURE = Figure("x", "what", 1.5, "s", 1.0, 2.0, 3, Goal(2.0, at_most=True), {"rows": 5})
MATCHER = MatcherResult("match", "w", "naive", 10, 1.0, 0.5, 100, 7, 3.0, 2.0, 4.0)
REFUSED = RefusedResult("match", "w", "gough", "too large")

_SPREAD = Spread(1.0, 2.0, 3.0, 10)
PEER = PeerResult(
    "peers",
    "dexin",
    "DEXIN",
    "scan",
    10,
    3.0,
    2000.0,
    Speed(50.0, 40.0, 30.0, 45.0, Goal(60.0, at_most=False)),
    _SPREAD,
    Speed(10.0, 200.0, 190.0, 220.0, Goal(200.0, at_most=False)),
    1000,
    None,
    None,
    12.0,
    None,
    0.5,
    100.0,
    _SPREAD,
    _SPREAD,
    7,
    {"n": 10},
)
RESIDUAL = ResidualResult(
    "peers", "residuals", "DEXIN, a tenth with residuals", "scan", 10, 1, 14, 3.0, 3.2, 0.4, 8,
    Overhead(60.0, 50.0, 1.2, 1.1, 1.3), Overhead(12.0, 10.0, 1.2, 1.1, 1.3), 1000, 0.9, 2.0, 0.5,
    500.0, 400.0, 7, {"n": 10},
)  # fmt: skip
SCALE = ScaleResult(
    "scale", "DEXIN", "scan", 10, 3.0, 5.0, 1.0, 1000, 100.0, 0.5, 2**30, 20, {"n": 10}
)
CHURN = ChurnResult(
    "churn", "DEXIN", "tama", "engine", 10, 5, _SPREAD, _SPREAD, _SPREAD, _SPREAD, 1000, 90.0,
    100.0, 20, 200, 0, "scan", {"n": 10},
)  # fmt: skip
OPERATOR = OperatorResult(
    "operators", "drones", "adaptive", 10, 5, 3, 7, 0.5, {"locIn": 9}, {"locIn": 3},
    {"locIn": 0.4}, 0, 0, "naive", "first", {"n": 10},
)  # fmt: skip
MEMORY = MemoryCourse("service", "memory of the server", [0.0, 1.0], [10**9, 2 * 10**9], {"n": 10})
DOOR = DoorResult(
    "single", "rules", "a thousand rules", "tamis", 10, "hash join", 3.0, 5.0, "µs", 4.0, 6.0,
    _SPREAD, 20.0, 4.0, 3.5, 4.5, Goal(6.0, at_most=True), 20, 7, {"n": 10},
)  # fmt: skip

EVERY: list[Result] = [
    FIGURE,
    MATCHER,
    REFUSED,
    PEER,
    RESIDUAL,
    SCALE,
    CHURN,
    OPERATOR,
    MEMORY,
    DOOR,
]


class Lossy(Naive):
    """Loses the first match of a batch."""

    def find(self, batch: EventBatch) -> Matches:
        found = super().find(batch)
        return Matches(np.maximum(found.starts - 1, 0), found.slots[1:])


class Greedy(Naive):
    """Finds one match too many, for the first event of a batch."""

    def find(self, batch: EventBatch) -> Matches:
        found = super().find(batch)
        slots = np.insert(found.slots, 0, self.clauses.live_slots()[0])
        return Matches(np.append(0, found.starts[1:] + 1), slots)


class Refusing(Naive):
    """Takes no clauses."""

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        raise MatcherError("not these")


class Threaded(Naive, RunsInThreads):
    """Has threads, and remembers with how many of them it matched."""

    def clear(self) -> None:
        self.used: list[int] = []

    def find(self, batch: EventBatch) -> Matches:
        self.used.append(self.threads)
        return super().find(batch)


def entry(kind: type[Naive]) -> dict[str, MatcherEntry]:
    """A registry with this matcher in it, under its name in small letters."""
    name = kind.__name__.lower()
    return {name: MatcherEntry(name, f"{kind.__module__}:{kind.__name__}", "none", "wrong")}
