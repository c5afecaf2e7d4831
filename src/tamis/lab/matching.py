"""Matchers against each other and against the NumPy yardstick, on the papers' workloads."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.engine import Engine
from tamis.errors import MatcherError, TamisError
from tamis.lab.results import Contest, Refusal
from tamis.lab.setting import Setting
from tamis.lab.timing import fitting, repeated
from tamis.lab.yardstick import Yardstick
from tamis.match import registry
from tamis.model.schema import Schema
from tamis.workload import Workload

YARDSTICK = "numpy"
WORKLOADS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("dexin", "DEXIN", {}),
    ("lesubscribe", "Le Subscribe", {}),
    ("topss", "TOPSS W4", {"setting": "W4"}),
)
_COMPARED = 20  # events on which a matcher's answer is compared with the yardstick's


def contests(setting: Setting) -> Iterator[Contest | Refusal]:
    """Each matcher on each workload; the yardstick first, since the others are measured by it."""
    for name, title, parameters in WORKLOADS:
        made = workload.make(name, setting.match_subscriptions, seed=setting.seed, **parameters)
        events = made.events(setting.batch)
        yardstick, base = _yardstick(setting, made, events, title)
        yield base
        for matcher in setting.matchers or tuple(registry.matchers()):
            try:
                yield _contest(setting, made, events, title, matcher, yardstick, base)
            except MatcherError as why:  # for example an index too large for the workload
                yield Refusal("match", title, matcher, str(why))


def steps(setting: Setting) -> int:
    """How many contests there will be."""
    return len(WORKLOADS) * (1 + len(setting.matchers or registry.matchers()))


def _yardstick(
    setting: Setting, made: Workload, events: pa.Table, title: str
) -> tuple[Yardstick, Contest]:
    yardstick = Yardstick(made.subscriptions, events)
    encoded = yardstick.encode(events)
    number = fitting(
        lambda: yardstick.match(encoded[0]), most=len(encoded), budget=setting.seconds / 2
    )

    def run() -> int:
        return sum(len(yardstick.match(event)) for event in encoded[:number])

    matches = run() / number
    sample = repeated(run, repeats=setting.repeats, budget=setting.seconds)
    # It has no batches: one event after the other is all that it can do.
    each = sample.seconds / number * 1e3
    return yardstick, Contest(
        "match", title, YARDSTICK, yardstick.size, each, each, 1, number, matches, 1.0, 1.0,
        parameters=made.parameters,
    )  # fmt: skip


def _contest(
    setting: Setting,
    made: Workload,
    events: pa.Table,
    title: str,
    matcher: str,
    yardstick: Yardstick,
    base: Contest,
) -> Contest:
    engine = Engine(Schema.from_dict(made.schema), matcher)
    engine.subscribe_table(made.subscriptions)
    batch = engine.encode(events)
    if registry.entry(matcher).exact:
        _compare(engine, batch, yardstick, yardstick.encode(events), matcher)
    alone_ms, alone_events = _alone(setting, engine, batch)
    batch_ms, size, matches = _together(setting, engine, batch)
    bytes_each = engine.matcher.nbytes / len(engine)
    build_s = _build(setting, engine, batch, matcher)
    add_us, remove_us = _changes(setting, engine)
    return Contest(
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


def _compare(
    engine: Engine,
    batch: EventBatch,
    yardstick: Yardstick,
    encoded: NDArray[np.int64],
    matcher: str,
) -> None:
    """A figure of a wrong answer is worth nothing: the first events must agree."""
    some = batch[: min(_COMPARED, len(batch))]
    for row, found in enumerate(engine.match_batch(some)):
        # The ids of the workloads are the numbers of their rows.
        if sorted(found) != yardstick.match(encoded[row]).tolist():
            raise TamisError(f"matcher {matcher!r} and the yardstick disagree on event {row}")


def _alone(setting: Setting, engine: Engine, batch: EventBatch) -> tuple[float, int]:
    """Milliseconds an event when each is a batch of its own, and over how many events."""
    match = engine.matcher.match
    singles = [batch[row : row + 1] for row in range(len(batch))]
    number = fitting(lambda: match(singles[0]), most=len(singles), budget=setting.seconds / 2)

    def run() -> None:
        for single in singles[:number]:
            match(single)

    sample = repeated(run, repeats=setting.repeats, budget=setting.seconds)
    return sample.seconds / number * 1e3, number


def _together(setting: Setting, engine: Engine, batch: EventBatch) -> tuple[float, int, float]:
    """Milliseconds an event in a batch, the batch's size, and matches an event."""
    match = engine.matcher.match
    few = batch[: min(10, len(batch))]
    times = fitting(lambda: match(few), most=len(batch), budget=setting.seconds / 2)
    size = min(len(batch), times * len(few))
    some = batch[:size]
    matches = match(some).total / size
    sample = repeated(lambda: match(some), repeats=setting.repeats, budget=setting.seconds)
    return sample.seconds / size * 1e3, size, matches


def _build(setting: Setting, engine: Engine, batch: EventBatch, name: str) -> float:
    """Seconds from an empty matcher to its first answer over all clauses, added at once.

    What is compiled on first use has been compiled by the measurements before.
    """
    slots = engine.matcher.clauses.live_slots()
    terms = engine.matcher.terms(slots)
    first = batch[:1]

    def run() -> None:
        matcher = registry.create(name)
        matcher.add(slots, terms)
        matcher.match(first)

    return repeated(run, repeats=setting.repeats, budget=setting.seconds).seconds


def _changes(setting: Setting, engine: Engine) -> tuple[float, float]:
    """Microseconds to add and to remove one clause, in the matcher alone."""
    matcher = engine.matcher
    live = matcher.clauses.live_slots()
    rng = np.random.default_rng(setting.seed)
    slots = rng.permutation(live)[: setting.changes]
    ones = [slots[i : i + 1] for i in range(len(slots))]
    terms = [matcher.terms(slot) for slot in ones]

    def both() -> None:
        matcher.remove(ones[0])
        matcher.add(ones[0], terms[0])

    # A change in a database takes milliseconds: fewer of them then.
    number = fitting(both, most=len(ones), budget=setting.seconds / 2)
    ones, terms = ones[:number], terms[:number]

    def remove() -> None:
        for slot in ones:
            matcher.remove(slot)

    def add() -> None:
        for slot, asked in zip(ones, terms, strict=True):
            matcher.add(slot, asked)

    remove()  # once unmeasured: the first change after a match may compile
    add()
    removed: list[float] = []
    added: list[float] = []
    while not added or (
        len(added) < setting.repeats and sum(removed) + sum(added) < setting.seconds
    ):
        removed.append(repeated(remove, repeats=1, budget=0).seconds)
        added.append(repeated(add, repeats=1, budget=0).seconds)
    scale = 1e6 / len(ones)
    return median(added) * scale, median(removed) * scale
