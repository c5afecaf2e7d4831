"""Compares matchers with each other and with the NumPy yardstick, on the papers' workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.encode.terms import Terms
from tamis.engine import Engine
from tamis.errors import MatcherError, TamisError
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.timing import fitting, timed
from tamis.lab.instruments.yardstick import Yardstick, make_yardstick
from tamis.lab.results.records import YARDSTICK, MatcherResult, RefusedResult
from tamis.match import registry
from tamis.match.base import Matcher, Slots
from tamis.model.schema import Schema
from tamis.workload import Workload

WORKLOADS = ("dexin", "lesubscribe", "topss-w4")
COMPARED = 20  # events whose answers are compared with the yardstick's


def measure(setting: BenchSetting) -> Iterator[MatcherResult | RefusedResult]:
    """Each matcher on each workload, after the yardstick."""
    for name in WORKLOADS:
        title = workload.variant(name).title
        made = workload.make_variant(name, setting.match_subscriptions, seed=setting.seed)
        events = made.events(setting.batch)
        yardstick, base = _measure_yardstick(setting, made, events, title)
        yield base
        for matcher in setting.matchers or tuple(registry.matchers()):
            try:
                yield _measure_matcher(setting, made, events, title, matcher, yardstick, base)
            except MatcherError as why:  # for example, an index that is too large
                yield RefusedResult("match", title, matcher, str(why))


def steps(setting: BenchSetting) -> int:
    """The number of results."""
    return len(WORKLOADS) * (1 + len(setting.matchers or registry.matchers()))


def _measure_yardstick(
    setting: BenchSetting, made: Workload, events: pa.Table, title: str
) -> tuple[Yardstick, MatcherResult]:
    yardstick = make_yardstick(made.subscriptions, events)
    encoded = yardstick.encode(events)
    number = fitting(
        lambda: yardstick.match(encoded[0]), most=len(encoded), budget=setting.seconds / 2
    )

    def run() -> int:
        return sum(len(yardstick.match(event)) for event in encoded[:number])

    matches = run() / number
    each = setting.time(run).seconds / number * 1e3  # the yardstick has no batches
    return yardstick, MatcherResult(
        "match", title, YARDSTICK, yardstick.size, each, each, 1, number, matches, 1.0, 1.0,
        parameters=made.parameters,
    )  # fmt: skip


def _measure_matcher(
    setting: BenchSetting,
    made: Workload,
    events: pa.Table,
    title: str,
    matcher: str,
    yardstick: Yardstick,
    base: MatcherResult,
) -> MatcherResult:
    engine = Engine(Schema.from_dict(made.schema), matcher, **setting.options)
    engine.subscribe_table(made.subscriptions)
    batch = engine.encode(events)
    if registry.entry(matcher).exact:
        compare(engine.match_batch(batch[:COMPARED]), yardstick, yardstick.encode(events), matcher)
    alone_ms, alone_events = alone(setting, engine.matcher, batch)
    batch_ms, size, matches = together(setting, engine.matcher, batch)
    bytes_each = engine.matcher.nbytes / len(engine)
    build_s = build(setting, engine.matcher, batch, matcher)
    add_us, remove_us = _changes(setting, engine)
    return MatcherResult(
        "match",
        title,
        matcher,
        len(engine),
        alone_ms,
        batch_ms,
        size,
        alone_events,
        matches,
        base.alone_ms / alone_ms,
        base.batch_ms / batch_ms,
        add_us,
        remove_us,
        bytes_each,
        build_s,
        made.parameters,
    )


def compare(
    found: Iterable[list[Any]], yardstick: Yardstick, encoded: NDArray[np.int64], matcher: str
) -> None:
    """Raise if the matcher and the yardstick disagree: a wrong answer must not be timed."""
    for row, ids in enumerate(found):
        # The ids of the workloads are the numbers of their rows.
        if sorted(ids) != yardstick.match(encoded[row]).tolist():
            raise TamisError(f"matcher {matcher!r} and the yardstick disagree on event {row}")


def alone(setting: BenchSetting, matcher: Matcher, batch: EventBatch) -> tuple[float, int]:
    """Milliseconds an event, one at a time, and the number of events."""
    singles = [batch[row : row + 1] for row in range(len(batch))]
    number = fitting(
        lambda: matcher.match(singles[0]), most=len(singles), budget=setting.seconds / 2
    )

    def run() -> None:
        for single in singles[:number]:
            matcher.match(single)

    return setting.time(run).seconds / number * 1e3, number


def together(
    setting: BenchSetting, matcher: Matcher, batch: EventBatch
) -> tuple[float, int, float]:
    """Milliseconds an event in a batch, the size of the batch, and matches an event."""
    some = affordable(setting, matcher, batch)
    size = len(some)
    matches = matcher.match(some).total / size
    return setting.time(lambda: matcher.match(some)).seconds / size * 1e3, size, matches


def affordable(setting: BenchSetting, matcher: Matcher, batch: EventBatch) -> EventBatch:
    """The part of a batch that a matcher matches within its time budget."""
    few = batch[: min(10, len(batch))]
    times = fitting(lambda: matcher.match(few), most=len(batch), budget=setting.seconds / 2)
    return batch[: times * len(few)]


def build(setting: BenchSetting, full: Matcher, batch: EventBatch, name: str) -> float:
    """Seconds to add all clauses of another matcher at once, and to match one event.

    Earlier measurements have compiled the kernels.
    """
    slots = full.clauses.live_slots()
    terms = full.terms(slots)
    first = batch[:1]

    def run() -> None:
        matcher = registry.create(name, **setting.options)
        matcher.add(slots, terms)
        matcher.match(first)

    return setting.time(run).seconds


def single_clauses(
    setting: BenchSetting, matcher: Matcher, budget: float
) -> list[tuple[Slots, Terms]]:
    """Random clauses of a matcher, as many as it removes and adds again within a time budget.

    Changes in a database take milliseconds, so there are fewer.
    """
    rng = np.random.default_rng(setting.seed)
    slots = rng.permutation(matcher.clauses.live_slots())[: setting.changes]
    ones = [(slots[i : i + 1], matcher.terms(slots[i : i + 1])) for i in range(len(slots))]

    def both() -> None:
        matcher.remove(ones[0][0])
        matcher.add(*ones[0])

    return ones[: fitting(both, most=len(ones), budget=budget)]


def _changes(setting: BenchSetting, engine: Engine) -> tuple[float, float]:
    """Microseconds to add and to remove one clause, in the matcher alone."""
    matcher = engine.matcher
    ones = single_clauses(setting, matcher, setting.seconds / 2)

    def remove() -> None:
        for slot, _ in ones:
            matcher.remove(slot)

    def add() -> None:
        for slot, clause in ones:
            matcher.add(slot, clause)

    remove()  # not timed: the first change after a match may compile
    add()
    removed: list[float] = []
    added: list[float] = []
    while not added or (
        len(added) < setting.repeats and sum(removed) + sum(added) < setting.seconds
    ):
        removed.append(timed(remove))
        added.append(timed(add))
    scale = 1e6 / len(ones)
    return median(added) * scale, median(removed) * scale
