"""How time and memory grow with the subscriptions, up to ten million.

Subscriptions are drawn and loaded in chunks, each with a seed of its own, and go from the encoder
straight into the matcher: ten million in Arrow tables and in a table of ids would take more memory
than the matcher. The yardstick's answers for a few events are collected chunk by chunk, and
compared with the matcher's answers over all chunks.
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
from tamis.engine.clause_placement import put_terms
from tamis.errors import MatcherError, TamisError
from tamis.lab.bench.matchers import COMPARED, alone, together
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.matcher_runs import finish_plan
from tamis.lab.instruments.timing import timed
from tamis.lab.instruments.yardstick import make_yardstick
from tamis.lab.results.records import RefusedResult, ScaleResult
from tamis.match import registry
from tamis.match.base import Matcher, Slots
from tamis.model.schema import Schema

SCALE = "scale"
WORKLOADS = ("dexin", "lesubscribe-equality")  # the second is selective
SIZES = (1_000_000, 2_000_000, 4_000_000, 7_000_000, 10_000_000)


def measure(setting: BenchSetting) -> Iterator[ScaleResult | RefusedResult | str]:
    """Each workload at each size, from the smallest."""
    for name in WORKLOADS:
        for matcher in setting.fastest:
            try:
                yield from _grow(setting, name, matcher)
            except MatcherError as why:
                yield RefusedResult(SCALE, workload.variant(name).title, matcher, str(why))
            gc.collect()


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    each = len(_chunks(setting)) + 2 * len(sizes(setting))
    return len(WORKLOADS) * len(setting.fastest) * each


def sizes(setting: BenchSetting) -> list[int]:
    """The sizes up to the setting's limit; scaled down if the limit is below the first size."""
    most = setting.most_subscriptions
    if most >= SIZES[0]:
        return [size for size in SIZES if size <= most]
    return [most * size // SIZES[-1] for size in SIZES]


def _chunks(setting: BenchSetting) -> list[tuple[int, int]]:
    """The begin and end of each chunk of subscriptions. Each size is the end of a chunk."""
    wanted = sizes(setting)
    return list(pairwise(sorted({*range(0, wanted[-1], setting.chunk), *wanted})))


def _grow(setting: BenchSetting, name: str, matcher: str) -> Iterator[ScaleResult | str]:
    title = workload.variant(name).title
    source = workload.make_variant(name, 1, seed=setting.seed)
    events = source.events(setting.batch)
    schema = Schema.from_dict(source.schema)
    few = workload.make_variant(name, 10, seed=setting.seed).subscriptions
    _load(Engine(schema, matcher), few, 0)  # compiles the kernels
    engine = Engine(schema, matcher, **setting.options)
    compared = min(COMPARED, setting.batch) if registry.entry(matcher).exact else 0
    expected: list[list[Slots]] = [[] for _ in range(compared)]
    seconds = 0.0
    for number, (first, last) in enumerate(_chunks(setting)):
        yield f"{title}, {matcher}: {last:,} subscriptions"
        made = workload.make_variant(name, last - first, seed=setting.seed + number)
        seconds += _load(engine, made.subscriptions, first)
        for found, more in zip(
            expected, _expected(made.subscriptions, events, compared), strict=True
        ):
            found.append(more + first)
        del made
        if last not in sizes(setting):
            continue
        yield f"{title}, {matcher}: measure at {last:,}"
        batch = engine.encode(events)  # after loading, which may move labels of text
        # Some matchers build their index at the first match.
        seconds += timed(partial(engine.matcher.match, batch[:1]))
        _compare(engine.matcher, batch, expected, matcher)
        alone_ms, _ = alone(setting, engine.matcher, batch)
        batch_ms, size, matches = together(setting, engine.matcher, batch)
        yield ScaleResult(
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
    """The largest memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _load(engine: Engine, subscriptions: pa.Table, first: int) -> float:
    """Put subscriptions into the slots from `first`; gives the seconds of the matcher."""
    terms, moved = clauses(engine.encoder, subscriptions)
    slots = np.arange(first, first + terms.clauses)
    return timed(partial(put_terms, engine, slots, terms, moved))


def _expected(subscriptions: pa.Table, events: pa.Table, number: int) -> Iterator[Slots]:
    """The rows that match each of the first events."""
    yardstick = make_yardstick(subscriptions, events)
    for event in yardstick.encode(events.slice(0, number)):
        yield yardstick.match(event)


def _compare(
    matcher: Matcher, batch: EventBatch, expected: Sequence[Sequence[Slots]], name: str
) -> None:
    finish_plan(matcher, batch)
    found = matcher.match(batch[: len(expected)])
    for row, slots in enumerate(expected):
        if sorted(found[row]) != np.concatenate(slots).tolist():
            raise TamisError(
                f"matcher {name!r} and the yardstick disagree on event {row} at {len(matcher):,}"
            )
