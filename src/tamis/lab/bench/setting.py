"""The sizes of a run of measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

FASTEST = "tamis"


@dataclass(frozen=True)
class BenchSetting:
    """The sizes of a run. The goals are stated for the defaults."""

    seed: int = 1
    matchers: tuple[str, ...] = ()  # empty: all registered ones, or the fastest
    options: Mapping[str, Any] = field(default_factory=dict)  # of the only matcher
    rows: tuple[str, ...] = ()  # of peers or of spark; empty: all
    seconds: float = 1.0  # for a measurement that can be shortened
    repeats: int = 5
    rounds: int = 7  # of turns of a matcher and the yardstick
    conditions: int = 5_000  # texts to parse
    load_subscriptions: int = 1_000_000
    load_repeats: int = 3
    text_subscriptions: int = 20_000
    arrow_events: int = 1_000_000
    dict_events: int = 10_000
    imports: int = 7  # new processes
    first_starts: int = 1  # new processes without compiled kernels
    match_subscriptions: int = 100_000
    most_subscriptions: int = 10_000_000  # in peers and in measurements on request
    chunk: int = 1_000_000  # subscriptions loaded at once in scale
    batch: int = 1_000
    changes: int = 1_000
    spark_subscriptions: int = 1_000_000
    spark_few: int = 1_000  # subscriptions so few that reading dominates
    spark_events: int = 2_000_000
    spark_rounds: int = 3  # of turns of the engine and the jobs
    sql_subscriptions: int = 100_000
    sql_rows_events: int = 50
    sql_join_events: int = 2_000
    answers_subscriptions: int = 100_000
    answers_pairs: int = 5_000_000

    @property
    def fastest(self) -> tuple[str, ...]:
        """The matchers of measurements that would take hours with all matchers."""
        return self.matchers or (FASTEST,)

    def quick(self) -> BenchSetting:
        """The same measurements, small: to see that they work, not to quote."""
        return replace(
            self,
            seconds=0.02,
            repeats=2,
            rounds=2,
            conditions=50,
            load_subscriptions=1_000,
            load_repeats=1,
            text_subscriptions=200,
            arrow_events=1_000,
            dict_events=100,
            imports=1,
            first_starts=0,
            match_subscriptions=500,
            most_subscriptions=min(500, self.most_subscriptions),
            chunk=100,
            batch=20,
            changes=20,
            spark_subscriptions=500,
            spark_few=100,
            spark_events=4_000,
            spark_rounds=1,
            sql_subscriptions=500,
            sql_rows_events=5,
            sql_join_events=20,
            answers_subscriptions=200,
            answers_pairs=2_000,
        )
