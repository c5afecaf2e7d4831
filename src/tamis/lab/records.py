"""What measurements give: plain records, which result files keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tamis.lab.timing import Sample, Spread


@dataclass(frozen=True)
class Goal:
    """What a figure should reach."""

    limit: float
    at_most: bool

    def met(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True)
class Figure:
    """One measured number. `low` and `high` are the extremes of the repeats."""

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
        sample: Sample,
        goal: Goal | None = None,
        **parameters: Any,
    ) -> Figure:
        """How long something took."""
        s = sample
        return cls(measurement, what, s.seconds, "s", s.low, s.high, s.repeats, goal, parameters)

    @classmethod
    def rate(
        cls,
        measurement: str,
        what: str,
        sample: Sample,
        count: int,
        goal: Goal | None = None,
        **parameters: Any,
    ) -> Figure:
        """How many of `count` things a second; the slowest repeat is the lowest rate."""
        value, low, high = (count / s for s in (sample.seconds, sample.high, sample.low))
        return cls(measurement, what, value, "/s", low, high, sample.repeats, goal, parameters)


@dataclass(frozen=True)
class Contest:
    """One matcher on one workload. Times are milliseconds an event, without encoding."""

    measurement: str
    workload: str
    matcher: str
    subscriptions: int
    alone_ms: float
    batch_ms: float
    batch: int  # events at once; fewer than asked for where the matcher is slow
    events_alone: int
    matches: float  # subscriptions an event matched, in the mean
    alone_times: float  # how many times faster than the yardstick in the same run
    batch_times: float
    add_us: float | None = None
    remove_us: float | None = None
    bytes_each: float | None = None
    build_s: float | None = None  # all clauses in one add, and the first match
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A matcher that does not take a workload, and what it says."""

    measurement: str
    workload: str
    matcher: str
    why: str


@dataclass(frozen=True)
class Speed:
    """Microseconds an event, and how many times faster than the yardstick that is.

    Both are medians of rounds in which the two took turns; `low` and `high` are the extremes of
    `times`.
    """

    us: float
    times: float
    low: float
    high: float
    goal: Goal | None = None  # of `times`


@dataclass(frozen=True)
class Duel:
    """A matcher and the yardstick, taking turns on one row of the table of peers.

    Times are microseconds an event, without encoding, in one thread and in the matcher alone
    unless said otherwise.
    """

    measurement: str
    row: str
    title: str
    matcher: str
    subscriptions: int
    matches: float  # subscriptions an event matched, in the mean
    yardstick_us: float
    alone: Speed
    each: Spread  # the same events, one by one
    batch: Speed
    events: int  # in a batch; fewer than asked for where the matcher is slow
    bits: Speed | None  # in batches, answered as bitmaps; only where the row has a goal for it
    columns: Speed | None  # of a yardstick with a column an attribute, and batches against it
    engine_us: float  # in batches through the engine, the ids read
    two_threads_us: float | None  # in batches, where the matcher has several threads
    build_s: float  # all clauses in one add, and the first match
    bytes_each: float
    add: Spread  # one clause
    remove: Spread
    rounds: int
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """A matcher at one size of a workload that grows. Times are microseconds an event."""

    measurement: str
    workload: str
    matcher: str
    subscriptions: int
    matches: float
    alone_us: float
    batch_us: float
    events: int  # in a batch
    bytes_each: float
    build_s: float  # of all adds until here, and the first match at each size
    peak_bytes: int  # the most memory that the process has had until here
    compared: int  # events whose answers were compared with the yardstick's, and agreed
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Churn:
    """Subscriptions replaced one by one while events are matched in between."""

    measurement: str
    workload: str
    matcher: str
    through: str  # "engine": conditions as text; "matcher": clauses
    subscriptions: int
    replaced: int
    add: Spread
    remove: Spread
    alone: Spread  # one event, right after a change
    batch: Spread  # a batch of events, right after a change
    events: int  # in a batch
    bytes_before: float  # a subscription
    bytes_after: float
    compared: int  # events whose answers were compared with those of another matcher
    pairs: int  # of such an event and a subscription
    disagreements: int  # among them
    reference: str  # that other matcher
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Schedule:
    """A scheduler on one setting of the experiments with expensive operators.

    What was evaluated and what it cost is the mean of an event, over all draws of the workload;
    `low` and `high` are the extremes of the means of single draws.
    """

    measurement: str
    figure: str
    title: str
    scheduler: str
    written: str  # the order of the predicates in subscriptions: "as drawn" or "as a set"
    subscriptions: int
    predicates: int
    used: float  # predicates that some subscription has, in the mean of the draws
    evaluated: float
    low: float
    high: float
    cost: float  # of those evaluated
    ms: float  # to schedule an event, but its first one; the median
    first_ms: float  # likewise the first, for which what is kept of subscriptions is laid out
    draws: int
    events: int  # of each draw
    goal: Goal | None = None  # of `evaluated`
    cost_goal: Goal | None = None
    ms_goal: Goal | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OperatorRun:
    """An engine with real operators under one scheduler."""

    measurement: str
    workload: str
    scheduler: str
    subscriptions: int
    predicates: int  # different ones, over operators
    events: int
    matches: int
    seconds: float  # to match all events in one batch, encoded before
    evaluated: dict[str, int]  # by operator: how often one event was looked at with one argument
    calls: dict[str, int]  # by operator: of its function, which may take several events at once
    operator_seconds: dict[str, float]  # by operator: within its function
    faults: int  # evaluations without an answer
    disagreements: int  # pairs of an event and a subscription, with the answer of `reference`
    reference: str
    place: str = "first"  # where subscriptions write the place
    parameters: dict[str, Any] = field(default_factory=dict)


Result = Figure | Contest | Refusal | Duel | Point | Churn | Schedule | OperatorRun
