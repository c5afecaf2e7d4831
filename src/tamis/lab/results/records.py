"""The records that measurements yield and result files store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tamis.lab.instruments.timing import Spread, TimingSample

YARDSTICK = "numpy"  # the matcher's name in results of the yardstick
SCHEDULERS = ("naive", "sequential", "sub-order", "adaptive")  # from most to fewest evaluations


@dataclass(frozen=True)
class Goal:
    """The limit that a figure should keep."""

    limit: float
    at_most: bool

    def met(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True)
class Figure:
    """One number. `low` and `high` are the extremes of the repeats."""

    measurement: str
    what: str
    value: float
    unit: str
    low: float
    high: float
    repeats: int
    goal: Goal | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def seconds(
        cls,
        measurement: str,
        what: str,
        sample: TimingSample,
        goal: Goal | None = None,
        **parameters: Any,
    ) -> Figure:
        """Seconds."""
        s = sample
        return cls(measurement, what, s.seconds, "s", s.low, s.high, s.repeats, goal, parameters)

    @classmethod
    def rate(
        cls,
        measurement: str,
        what: str,
        sample: TimingSample,
        count: int,
        goal: Goal | None = None,
        **parameters: Any,
    ) -> Figure:
        """Things a second, for `count` things. The slowest repeat gives the lowest rate."""
        value, low, high = (count / s for s in (sample.seconds, sample.high, sample.low))
        return cls(measurement, what, value, "/s", low, high, sample.repeats, goal, parameters)


@dataclass(frozen=True)
class _OfMatcher:
    """The first fields of results of a matcher on a workload."""

    measurement: str
    workload: str
    matcher: str


@dataclass(frozen=True)
class MatcherResult(_OfMatcher):
    """A matcher on a workload. Times are milliseconds an event, without encoding."""

    subscriptions: int
    alone_ms: float
    batch_ms: float
    batch: int  # events at once; fewer for a slow matcher
    events_alone: int
    matches: float  # subscriptions an event, on average
    alone_times: float  # times faster than the yardstick in the same run
    batch_times: float
    add_us: float | None = None
    remove_us: float | None = None
    bytes_each: float | None = None
    build_s: float | None = None  # all clauses in one add and the first match
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RefusedResult(_OfMatcher):
    """A matcher that refuses a workload, and its reason."""

    why: str


@dataclass(frozen=True)
class Speed:
    """Microseconds an event, and the factor to the yardstick.

    Both are medians of rounds in which the two take turns; `low` and `high` are the extremes of
    `times`.
    """

    us: float
    times: float
    low: float
    high: float
    goal: Goal | None = None  # of `times`


@dataclass(frozen=True)
class PeerResult:
    """A matcher and the yardstick, taking turns on a row of the table of peers.

    Times are microseconds an event, without encoding, in one thread of the matcher alone unless
    stated otherwise.
    """

    measurement: str
    row: str
    title: str
    matcher: str
    subscriptions: int
    matches: float  # subscriptions an event, on average
    yardstick_us: float
    alone: Speed
    each: Spread  # single events
    batch: Speed
    events: int  # in a batch; fewer for a slow matcher
    bits: Speed | None  # in batches, with bitmaps as answers; only if the row has a goal for it
    columns: Speed | None  # batches against a yardstick with a column for each attribute
    engine_us: float  # in batches through the engine, with ids read
    two_threads_us: float | None  # in batches, if the matcher has threads
    build_s: float  # all clauses in one add and the first match
    bytes_each: float
    add: Spread  # one clause
    remove: Spread
    rounds: int
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Overhead:
    """Microseconds an event, the same without residuals, and the factor between them.

    All are medians of rounds in which the two take turns; `low` and `high` are the extremes of
    `times`.
    """

    us: float
    plain_us: float
    times: float
    low: float
    high: float


@dataclass(frozen=True)
class ResidualResult:
    """An engine in which some conditions have a residual, beside the same without residuals.

    Without encoding, with the ids read. Figures of the engine without residuals are `plain`.
    """

    measurement: str
    row: str
    title: str
    matcher: str
    subscriptions: int
    residuals: int  # subscriptions with a residual
    clauses: int  # in the matcher; there are as many as subscriptions without residuals
    matches: float  # subscriptions an event, on average
    plain_matches: float
    dropped: float  # clauses an event that the matcher finds and whose residual does not hold
    verified: int  # residuals of compared events that agreed with the semantics
    alone: Overhead
    batch: Overhead
    events: int  # in a batch; fewer for a slow matcher
    residuals_us: float  # of the time in batches, the evaluation of residuals
    load_s: float  # all subscriptions, and the first match
    plain_load_s: float
    bytes_each: float  # of the matcher and the residuals
    plain_bytes_each: float
    rounds: int
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScaleResult(_OfMatcher):
    """A matcher at one size of a growing workload. Times are microseconds an event."""

    subscriptions: int
    matches: float
    alone_us: float
    batch_us: float
    events: int  # in a batch
    bytes_each: float
    build_s: float  # all adds up to this size, and the first match at each size
    peak_bytes: int  # largest memory of the process up to this size
    compared: int  # events whose answers agreed with the yardstick's
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChurnResult(_OfMatcher):
    """Subscriptions replaced one by one, with matches in between."""

    through: str  # "engine": conditions as text; "matcher": clauses
    subscriptions: int
    replaced: int
    add: Spread
    remove: Spread
    alone: Spread  # one event, after a change
    batch: Spread  # a batch, after a change
    events: int  # in a batch
    bytes_before: float  # a subscription
    bytes_after: float
    compared: int  # events whose answers were compared with the reference's
    pairs: int  # of a compared event and a subscription
    disagreements: int  # among the pairs
    reference: str  # another matcher
    parameters: dict[str, Any] = field(default_factory=dict)

    def spreads(self) -> dict[str, Spread]:
        """The spreads by operation."""
        return {
            "add one": self.add,
            "remove one": self.remove,
            "match one event": self.alone,
            f"match {self.events:,} events": self.batch,
        }


@dataclass(frozen=True)
class OperatorResult:
    """An engine with real operators and one scheduler."""

    measurement: str
    workload: str
    scheduler: str
    subscriptions: int
    predicates: int  # distinct ones, over operators
    events: int
    matches: int
    seconds: float  # to match all events in one batch, encoded beforehand
    evaluated: dict[str, int]  # by operator: pairs of an event and an argument
    calls: dict[str, int]  # by operator: calls of its function, which may take several events
    operator_seconds: dict[str, float]  # by operator: time in its function
    faults: int  # evaluations without an answer
    disagreements: int  # pairs on which the answer differs from that of `reference`
    reference: str
    place: str = "first"  # position of the place in subscriptions
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DoorResult:
    """An engine as users call it, next to what they would write without it, in turns.

    `value` and `baseline_value` are medians of the rounds in `unit`: a time, or things a second.
    """

    measurement: str
    row: str
    title: str
    matcher: str
    subscriptions: int
    baseline: str
    matches: float  # subscriptions an event, on average
    value: float
    unit: str
    low: float
    high: float
    each: Spread | None  # single calls, in microseconds
    baseline_value: float
    times: float  # how many times faster than the baseline: the median, and the extremes
    times_low: float
    times_high: float
    goal: Goal | None  # of `value`
    compared: int  # events whose answers agreed with those of `scan`, here and in the baseline
    rounds: int
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MemoryCourse:
    """The memory of a process over time."""

    measurement: str
    what: str
    at: list[float]  # seconds
    bytes: list[int]
    parameters: dict[str, Any] = field(default_factory=dict)


Result = (
    Figure
    | MatcherResult
    | RefusedResult
    | PeerResult
    | ResidualResult
    | ScaleResult
    | ChurnResult
    | OperatorResult
    | DoorResult
    | MemoryCourse
)

# The names of the kinds in result files.
KINDS: dict[str, type[Result]] = {
    "figure": Figure,
    "contest": MatcherResult,
    "refusal": RefusedResult,
    "duel": PeerResult,
    "residuals": ResidualResult,
    "point": ScaleResult,
    "churn": ChurnResult,
    "operatorrun": OperatorResult,
    "memory": MemoryCourse,
    "door": DoorResult,
}
