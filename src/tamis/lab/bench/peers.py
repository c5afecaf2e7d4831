"""The fastest matcher at the sizes for which others publish figures.

Times vary by a third from one minute to the next on a shared machine. So the matcher and the
yardstick take turns, and the median of their ratios counts. A row of the table is a workload, a
size and the goals for these ratios.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.engine import Engine
from tamis.errors import MatcherError
from tamis.lab.bench.matchers import COMPARED, affordable, build, compare, single_clauses
from tamis.lab.bench.residuals import measure_row
from tamis.lab.bench.setting import PEERS, BenchSetting, chosen_rows
from tamis.lab.instruments.matcher_runs import finish_plan
from tamis.lab.instruments.timing import Spread, fitting, repeated, timed
from tamis.lab.instruments.yardstick import Yardstick, make_yardstick
from tamis.lab.results.records import Goal, PeerResult, RefusedResult, ResidualResult, Speed
from tamis.match import registry
from tamis.match.base import Matcher
from tamis.match.capabilities import RunsInThreads, match_bits
from tamis.model.schema import Schema
from tamis.workload import Workload

_TURN = 3  # batches in a turn; their median counts
_PART = 10  # the yardstick with columns, which take gigabytes, gets a tenth of the subscriptions


@dataclass(frozen=True)
class Row:
    """A workload, a size, and the goals: how many times faster than the yardstick."""

    variant: str
    subscriptions: int
    batch: float | None = None  # events in batches
    alone: float | None = None  # events one at a time
    bits: float | None = None  # events in batches, with bitmaps as answers
    columns: float | None = None  # events in batches, against the yardstick with columns
    residuals: bool = False  # a tenth of the conditions have a residual; there is no goal

    @property
    def title(self) -> str:
        title = workload.variant(self.variant).title
        return f"{title}, a tenth with residuals" if self.residuals else title


# A goal is a time, chosen once: dexin 12.3 µs in batches and 41 µs alone, dexin-matching 44,
# lesubscribe 11.9, lesubscribe-large 43, lesubscribe-equality 5.1, topss-w4 154 and 31 as bitmaps.
# It is stated as a ratio to the yardstick, because machines differ. The yardstick took 2.30 ms
# (dexin), 3.17, 1.52, 6.74, 2.10 and 3.22 ms an event on a quiet machine.
ROWS: dict[str, Row] = {
    "dexin": Row("dexin", 1_000_000, batch=187, alone=56),
    "dexin-matching": Row("dexin-matching", 1_000_000, batch=72),
    "lesubscribe": Row("lesubscribe", 800_000, batch=128),
    "lesubscribe-large": Row("lesubscribe", 3_200_000, batch=157),
    "lesubscribe-equality": Row("lesubscribe-equality", 800_000, batch=411),
    "topss-w4": Row("topss-w4", 1_000_000, batch=21, bits=104),
    "sparse": Row("sparse", 1_000_000, columns=88),
    "residuals": Row("dexin", 1_000_000, residuals=True),
}


def rows(names: Sequence[str]) -> dict[str, Row]:
    """The named rows in the order of the table; all rows without names."""
    return {name: ROWS[name] for name in chosen_rows(names, ROWS, PEERS)}


def measure(setting: BenchSetting) -> Iterator[PeerResult | ResidualResult | RefusedResult | str]:
    """Each row of the table, with one engine at a time: the largest take gigabytes."""
    for name, row in rows(setting.rows).items():
        yield f"{row.title}: subscriptions"
        size = min(row.subscriptions, setting.most_subscriptions)
        made = workload.make_variant(row.variant, size, seed=setting.seed)
        events = made.events(setting.batch)
        yield f"{row.title}: yardstick"
        yardstick = make_yardstick(made.subscriptions, events)
        for matcher in setting.fastest:
            try:
                if row.residuals:
                    yield from measure_row(
                        setting, name, row.title, made, events, yardstick, matcher
                    )
                else:
                    yield from _measure_row(setting, name, made, events, yardstick, matcher)
            except MatcherError as why:
                yield RefusedResult(PEERS, row.title, matcher, str(why))
            gc.collect()  # engines and matchers may hold themselves in cycles
        del made, events, yardstick


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    chosen = rows(setting.rows).values()
    more = sum(row.columns is not None for row in chosen)
    return 2 * len(chosen) + len(setting.fastest) * (len(chosen) * (setting.rounds + 4) + more)


class _Contenders(NamedTuple):
    """A matcher and the yardstick, with their events."""

    engine: Engine
    yardstick: Yardstick
    ranks: NDArray[np.int64]
    batch: EventBatch
    singles: list[EventBatch]
    bits: bool


class _Round(NamedTuple):
    """Seconds an event in one round; `each` are single events."""

    yardstick: float
    each: list[float]
    batch: float
    bits: float
    engine: float
    two_threads: float


def _measure_row(
    setting: BenchSetting,
    name: str,
    made: Workload,
    events: pa.Table,
    yardstick: Yardstick,
    matcher: str,
) -> Iterator[PeerResult | str]:
    row = ROWS[name]
    where = f"{row.title}, {matcher}"
    yield f"{where}: load"
    engine = Engine(Schema.from_dict(made.schema), matcher, **setting.options)
    engine.subscribe_table(made.subscriptions)
    yield f"{where}: compare"
    batch = engine.encode(events)
    both = _Contenders(
        engine,
        yardstick,
        yardstick.encode(events),
        affordable(setting, engine.matcher, batch),
        [batch[at : at + 1] for at in range(len(batch))],
        row.bits is not None,
    )
    finish_plan(engine.matcher, both.batch)
    _compare(both, batch, matcher)
    pick = _picker(setting, both)
    _round(both, pick(0))  # not timed: the first round may compile, plan or start threads
    found: list[_Round] = []
    for turn in range(setting.rounds):
        yield f"{where}: round {turn + 1} of {setting.rounds}"
        found.append(_round(both, pick(turn)))
    columns = None
    if row.columns is not None:
        yield f"{where}: yardstick by columns"
        columns = _by_columns(setting, made, events, found)
    yield f"{where}: build and change"
    build_s = build(setting, engine.matcher, batch, matcher)
    bytes_each = engine.matcher.nbytes / len(engine)
    add, remove = _changes(setting, engine.matcher)
    _compare(both, batch, matcher)  # clauses that were removed and added must match again
    full = len(engine) == row.subscriptions
    yield PeerResult(
        PEERS,
        name,
        row.title,
        matcher,
        len(engine),
        engine.matcher.match(both.batch).total / len(both.batch),
        median(each.yardstick for each in found) * 1e6,
        _speed(found, lambda turn: float(np.mean(turn.each)), row.alone if full else None),
        Spread.of(seconds for turn in found for seconds in turn.each),
        _speed(found, lambda turn: turn.batch, row.batch if full else None),
        len(both.batch),
        _speed(found, lambda turn: turn.bits, row.bits if full else None) if both.bits else None,
        None if columns is None else replace(columns, goal=_goal(row.columns if full else None)),
        median(each.engine for each in found) * 1e6,
        median(each.two_threads for each in found) * 1e6
        if isinstance(engine.matcher, RunsInThreads)
        else None,
        build_s,
        bytes_each,
        add,
        remove,
        setting.rounds,
        made.parameters,
    )


def _by_columns(
    setting: BenchSetting, made: Workload, events: pa.Table, found: Sequence[_Round]
) -> Speed:
    """The factor to brute force with a column for each attribute, as for few attributes.

    It gets a part of the subscriptions, so both its time and the ratio are too small.
    """
    some = made.subscriptions.slice(0, -(-made.subscriptions.num_rows // _PART))
    yardstick = Yardstick(some, events)
    ranks = yardstick.encode(events)
    number = fitting(lambda: yardstick.match(ranks[0]), most=len(ranks), budget=setting.seconds)
    times = [timed(partial(yardstick.match, event)) for event in ranks[:number]]
    batch = median(turn.batch for turn in found)
    low, middle, high = (float(np.quantile(times, at)) / batch for at in (0, 0.5, 1))
    return Speed(median(times) * 1e6, middle, low, high)


def _compare(both: _Contenders, batch: EventBatch, matcher: str) -> None:
    if not registry.entry(matcher).exact:
        return
    some = batch[:COMPARED]
    compare(both.engine.match_batch(some), both.yardstick, both.ranks, matcher)
    if both.bits:
        compare(match_bits(both.engine.matcher, some), both.yardstick, both.ranks, matcher)


def _picker(setting: BenchSetting, both: _Contenders) -> Callable[[int], NDArray[np.int64]]:
    """Chooses the single events of a round: as many as both match within their time budget.

    Each round takes the next events of a fixed random order, so that a round is a fair sample and
    all rounds together cover nearly all events.
    """
    most, budget = len(both.singles), setting.seconds
    slow = fitting(lambda: both.yardstick.match(both.ranks[0]), most=most, budget=budget)
    alone = both.engine.matcher.match
    number = min(slow, fitting(lambda: alone(both.singles[0]), most=most, budget=budget))
    order = np.random.default_rng(setting.seed).permutation(most)
    return lambda turn: order[(turn * number + np.arange(number)) % most]


def _round(both: _Contenders, picked: NDArray[np.int64]) -> _Round:
    """Time the yardstick, then the matcher in each mode."""
    engine, batch, matcher = both.engine, both.batch, both.engine.matcher
    ranks = both.ranks[picked]
    singles = [both.singles[at] for at in picked.tolist()]

    def slow() -> None:
        for event in ranks:
            both.yardstick.match(event)

    return _Round(
        timed(slow) / len(ranks),
        [timed(partial(matcher.match, single)) for single in singles],
        _batched(lambda: matcher.match(batch), batch),
        _batched(lambda: match_bits(matcher, batch), batch) if both.bits else 0.0,
        _batched(lambda: engine.match_batch(batch).subscriptions, batch),
        _two_threads(matcher, batch),
    )


def _batched(run: Callable[[], object], batch: EventBatch) -> float:
    return repeated(run, repeats=_TURN, budget=60.0).seconds / len(batch)


def _two_threads(matcher: Matcher, batch: EventBatch) -> float:
    if not isinstance(matcher, RunsInThreads):
        return 0.0
    before, matcher.threads = matcher.threads, 2
    try:
        return _batched(lambda: matcher.match(batch), batch)
    finally:
        matcher.threads = before


def _speed(
    found: Sequence[_Round], seconds: Callable[[_Round], float], goal: float | None
) -> Speed:
    times = [turn.yardstick / seconds(turn) for turn in found]
    return Speed(
        median(seconds(turn) for turn in found) * 1e6,
        median(times),
        min(times),
        max(times),
        _goal(goal),
    )


def _goal(least: float | None) -> Goal | None:
    return None if least is None else Goal(least, at_most=False)


def _changes(setting: BenchSetting, matcher: Matcher) -> tuple[Spread, Spread]:
    """The times to add and to remove one clause: some are removed one by one, and added again."""
    ones = single_clauses(setting, matcher, setting.seconds)
    for _ in range(2):  # the first time is not kept: a change may compile
        removed = [timed(partial(matcher.remove, slot)) for slot, _ in ones]
        added = [timed(partial(matcher.add, *one)) for one in ones]
    return Spread.of(added), Spread.of(removed)
