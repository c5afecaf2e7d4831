"""The sizes of a run of measurements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tamis.errors import TamisError, suggestion
from tamis.lab.instruments.timing import TimingSample, repeated

FASTEST = "tamis"
PEERS = "peers"


def _size(full: float, quick: float) -> Any:
    """A size, and the size in a quick run."""
    return field(default=full, metadata={"quick": quick})


def chosen_rows(names: Sequence[str], known: Collection[str], measurement: str) -> tuple[str, ...]:
    """The named rows in the order of a table; all rows without names."""
    for name in names:
        if name not in known:
            hint = suggestion(name, known)
            raise TamisError(f"unknown row {name!r} of {measurement}{hint}")
    return tuple(name for name in known if not names or name in names)


@dataclass(frozen=True)
class BenchSetting:
    """The sizes of a run. The goals are stated for the defaults."""

    seed: int = 1
    matchers: tuple[str, ...] = ()  # empty: all registered ones, or the fastest
    options: Mapping[str, Any] = field(default_factory=dict)  # of the only matcher
    rows: tuple[str, ...] = ()  # of peers, single, spark or service; empty: all
    seconds: float = _size(1.0, 0.02)  # for a measurement that can be shortened
    repeats: int = _size(5, 2)
    rounds: int = _size(7, 2)  # of turns of a matcher and the yardstick
    conditions: int = _size(5_000, 50)  # texts to parse
    load_subscriptions: int = _size(1_000_000, 1_000)
    load_repeats: int = _size(3, 1)
    text_subscriptions: int = _size(20_000, 200)
    arrow_events: int = _size(1_000_000, 1_000)
    dict_events: int = _size(10_000, 100)
    imports: int = _size(7, 1)  # new processes
    first_starts: int = _size(1, 0)  # new processes without compiled kernels
    match_subscriptions: int = _size(100_000, 500)
    most_subscriptions: int = 10_000_000  # in peers and in measurements on request
    chunk: int = _size(1_000_000, 100)  # subscriptions loaded at once in scale
    batch: int = _size(1_000, 20)
    changes: int = _size(1_000, 20)
    json_lines: int = _size(100_000, 200)
    spark_subscriptions: int = _size(1_000_000, 500)
    spark_few: int = _size(1_000, 100)  # subscriptions so few that reading dominates
    spark_events: int = _size(2_000_000, 4_000)
    spark_rounds: int = _size(3, 1)  # of turns of the engine and the jobs
    sql_subscriptions: int = _size(100_000, 500)
    sql_rows_events: int = _size(50, 5)
    sql_join_events: int = _size(2_000, 20)
    answers_subscriptions: int = _size(100_000, 200)
    answers_pairs: int = _size(5_000_000, 2_000)
    service_subscriptions: int = _size(1_000_000, 500)
    service_events: int = _size(20_000, 2_000)  # different ones, published over and over
    service_seconds: float = _size(10.0, 0.5)
    service_long_seconds: float = _size(600.0, 1.0)
    service_streams: int = _size(1_000, 5)

    @property
    def fastest(self) -> tuple[str, ...]:
        """The matchers of measurements that would take hours with all matchers."""
        return self.matchers or (FASTEST,)

    def time(
        self,
        run: Callable[[], object],
        share: float = 1,
        prepare: Callable[[], object] | None = None,
    ) -> TimingSample:
        """Time a run repeatedly, for up to `share` of the seconds of a measurement."""
        budget = share * self.seconds
        return repeated(run, repeats=self.repeats, budget=budget, prepare=prepare)

    def quick(self) -> BenchSetting:
        """The same measurements, small: to see that they work, not to quote."""
        small = {each.name: each.metadata["quick"] for each in fields(self) if each.metadata}
        return replace(self, **small, most_subscriptions=min(500, self.most_subscriptions))
