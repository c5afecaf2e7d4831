"""How large and how long a run of measurements is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

FASTEST = "tamis"


@dataclass(frozen=True)
class Setting:
    """The sizes of one run. The defaults are what the goals are stated for."""

    seed: int = 1
    matchers: tuple[str, ...] = ()  # none named: all that are registered, or the fastest
    options: Mapping[str, Any] = field(default_factory=dict)  # of the matcher, where one is named
    rows: tuple[str, ...] = ()  # of the table of peers, or of spark; none named: all
    seconds: float = 1.0  # for one measurement that can be made shorter
    repeats: int = 5
    rounds: int = 7  # in which a matcher and the yardstick take turns
    conditions: int = 5_000  # texts to parse
    load_subscriptions: int = 1_000_000
    load_repeats: int = 3
    text_subscriptions: int = 20_000
    arrow_events: int = 1_000_000
    dict_events: int = 10_000
    imports: int = 7  # processes, also for what a start takes
    first_starts: int = 1  # processes that have to compile all they need
    match_subscriptions: int = 100_000
    most_subscriptions: int = 10_000_000  # in peers, scale and churn, which have sizes of their own
    chunk: int = 1_000_000  # subscriptions loaded at once while a workload grows
    batch: int = 1_000
    changes: int = 1_000
    spark_subscriptions: int = 1_000_000
    spark_few: int = 1_000  # subscriptions that take hardly longer than reading events
    spark_events: int = 2_000_000
    spark_rounds: int = 3  # in which the engine and the jobs take turns
    sql_subscriptions: int = 100_000
    sql_rows_events: int = 50
    sql_join_events: int = 2_000
    answers_subscriptions: int = 100_000
    answers_pairs: int = 5_000_000

    @property
    def fastest(self) -> tuple[str, ...]:
        """The matchers of measurements that would take hours with all of them."""
        return self.matchers or (FASTEST,)

    def quick(self) -> Setting:
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
