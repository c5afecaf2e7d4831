"""How time and memory grow with the subscriptions, up to ten million.

Subscriptions are drawn and loaded a chunk at a time, each from a seed of its own, and go from the
encoder straight into the matcher: ten million in Arrow tables and a table of ids would take more
memory than what is measured. What the yardstick finds in each chunk is kept for a few events, so
that answers over all of them can be compared.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tamis import workload
from tamis.encode.batch import EventBatch
from tamis.engine import Engine
from tamis.errors import MatcherError, TamisError
from tamis.lab.clauses import clauses
from tamis.lab.matching import COMPARED, alone, together
from tamis.lab.progress import Step
from tamis.lab.records import Point, Refusal
from tamis.lab.setting import Setting
from tamis.lab.timing import timed
from tamis.lab.yardstick import make_yardstick
from tamis.match import registry
from tamis.match.base import Matcher, Slots
from tamis.match.capabilities import settle
from tamis.model.schema import Schema

SCALE = "scale"
WORKLOADS = ("dexin", "lesubscribe-equality")  # one that matches much, and a selective one
SIZES = (1_000_000, 2_000_000, 4_000_000, 7_000_000, 10_000_000)


def points(setting: Setting) -> Iterator[Point | Refusal | Step]:
    """Each workload at each size, the smallest first."""
    for name in WORKLOADS:
        for matcher in setting.fastest:
            try:
                yield from _grow(setting, name, matcher)
            except MatcherError as why:
                yield Refusal(SCALE, workload.variant(name).title, matcher, str(why))
            gc.collect()


def steps(setting: Setting) -> int:
    """How many points and steps there will be."""
    each = len(_chunks(setting)) + 2 * len(sizes(setting))
    return len(WORKLOADS) * len(setting.fastest) * each


def sizes(setting: Setting) -> list[int]:
    """Sizes up to the largest that is wanted, in proportion where that is less than the first."""
    most = setting.most_subscriptions
    if most >= SIZES[0]:
        return [size for size in SIZES if size <= most]
    return [most * size // SIZES[-1] for size in SIZES]


def _chunks(setting: Setting) -> list[tuple[int, int]]:
    """Where each chunk of subscriptions begins and ends; every size is the end of one."""
    wanted = sizes(setting)
    return list(pairwise(sorted({*range(0, wanted[-1], setting.chunk), *wanted})))


def _grow(setting: Setting, name: str, matcher: str) -> Iterator[Point | Step]:
    title = workload.variant(name).title
    source = workload.make_variant(name, 1, seed=setting.seed)
    events = source.events(setting.batch)
    schema = Schema.from_dict(source.schema)
    few = workload.make_variant(name, 10, seed=setting.seed).subscriptions
    _load(Engine(schema, matcher), few, 0)  # what is compiled on first use is compiled here
    engine = Engine(schema, matcher, **setting.options)
    compared = min(COMPARED, setting.batch) if registry.entry(matcher).exact else 0
    right: list[list[Slots]] = [[] for _ in range(compared)]
    seconds = 0.0
    for number, (first, last) in enumerate(_chunks(setting)):
        yield Step(SCALE, f"{title}, {matcher}: {last:,} subscriptions")
        made = workload.make_variant(name, last - first, seed=setting.seed + number)
        seconds += _load(engine, made.subscriptions, first)
        for found, more in zip(right, _right(made.subscriptions, events, compared), strict=True):
            found.append(more + first)
        del made
        if last not in sizes(setting):
            continue
        yield Step(SCALE, f"{title}, {matcher}: measure at {last:,}")
        batch = engine.encode(events)  # after loading: constants of texts may have moved
        # Some make their index only when they match for the first time.
        seconds += timed(partial(engine.matcher.match, batch[:1]))
        _compare(engine.matcher, batch, right, matcher)
        alone_ms, _ = alone(setting, engine.matcher, batch)
        batch_ms, size, matches = together(setting, engine.matcher, batch)
        yield Point(
            SCALE,
            title,
            matcher,
            len(engine.matcher),
            matches,
            alone_ms * 1e3,
            batch_ms * 1e3,
            size,
            engine.matcher.nbytes / len(engine.matcher),
            seconds,
            peak_bytes(),
            compared,
            source.parameters | {"n": last, "chunk": setting.chunk},
        )


def peak_bytes() -> int:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _load(engine: Engine, subscriptions: pa.Table, first: int) -> float:
    """Put subscriptions into the slots from `first` on; gives the seconds the matcher took."""
    terms, moved = clauses(engine.encoder, subscriptions)
    slots = np.arange(first, first + terms.clauses)
    return timed(partial(engine.put, slots, terms, moved))


def _right(subscriptions: pa.Table, events: pa.Table, number: int) -> Iterator[Slots]:
    """The rows that each of the first events matches."""
    yardstick = make_yardstick(subscriptions, events)
    for event in yardstick.encode(events.slice(0, number)):
        yield yardstick.match(event)


def _compare(
    matcher: Matcher, batch: EventBatch, right: Sequence[Sequence[Slots]], name: str
) -> None:
    for _ in range(3):  # a matcher that follows the events it sees makes up its mind first
        matcher.match(batch)
        settle(matcher)
    found = matcher.match(batch[: len(right)])
    for row, slots in enumerate(right):
        if sorted(found[row]) != np.concatenate(slots).tolist():
            raise TamisError(
                f"matcher {name!r} and the yardstick disagree on event {row} at {len(matcher):,}"
            )
