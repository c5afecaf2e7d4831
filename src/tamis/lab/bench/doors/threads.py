"""One engine in several threads, while another thread subscribes and unsubscribes.

Threads match batches at once. Single events are mostly Python code, which runs in one thread at a
time: there this shows what more threads cost. The baseline is a hash join with a lock, in as many
threads and with the same changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any, NamedTuple, TypeVar

from tamis.engine import Engine
from tamis.lab.bench.doors import flights
from tamis.lab.bench.doors.turns import (
    HASH_JOIN,
    DoorRow,
    DoorTurn,
    agree,
    hash_join,
    result,
    rules,
    scanned,
)
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.results.records import DoorResult
from tamis.model.schema import Schema
from tamis.workload import as_dicts
from tamis.workload.tables import conditions

THREADS = "threads"
_RULES = 1_000
_CHANGING = 100  # rules that come and go, one at a time
_BATCH = 1_024
_PAUSE = 0.001  # seconds between changes
_COUNTS = (1, 2)
_BASELINE = f"{HASH_JOIN}, lock"
_Answer = TypeVar("_Answer")
_Change = Callable[[int, bool], object]  # the number of a changing rule, and whether it comes


class _ThreadedSide(NamedTuple):
    """The engine or the baseline: what threads do with an item, and how rules come and go."""

    name: str
    match: Callable[[Any], Any]
    items: Sequence[Any]
    change: _Change
    answers: Callable[[Any], list[list[Any]]]


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return 4 * len(_COUNTS) * len(setting.fastest)


def measure(setting: BenchSetting) -> Iterator[DoorResult | str]:
    """Single dicts, then batches of encoded events, each in one thread and in two."""
    for matcher in setting.fastest:
        for size in (1, _BATCH):
            for threads in _COUNTS:
                title = "single dicts" if size == 1 else f"batches of {size:,} encoded events"
                title = f"{title}, {threads} thread{'s' if threads > 1 else ''}"
                yield f"{title}, {matcher}"
                yield _measure(setting, matcher, size, threads, title)


def _measure(
    setting: BenchSetting, matcher: str, size: int, threads: int, title: str
) -> DoorResult:
    made = flights.make(min(_RULES, setting.most_subscriptions), seed=setting.seed)
    fixed = made.subscriptions.num_rows
    events = as_dicts(made.events(_BATCH))
    right = scanned(made, events)
    # What comes and goes has no new text: that would put the encoded batches out of date.
    texts = [f"{each} and hour >= 1" for each in conditions(made.subscriptions).to_pylist()]
    tuples = [[*predicates, ("hour", ">=", 1)] for _, predicates in rules(made.subscriptions)]
    engine = Engine(Schema.from_dict(made.schema), matcher, **setting.options)
    engine.subscribe_table(made.subscriptions)
    join, lock = hash_join(made), threading.Lock()

    def change_engine(number: int, comes: bool) -> None:
        if comes:
            engine.subscribe(texts[number], id=fixed + number)
        else:
            engine.unsubscribe(fixed + number)

    def change_join(number: int, comes: bool) -> None:
        with lock:
            if comes:
                join.add(fixed + number, tuples[number])
            else:
                join.remove(fixed + number)

    def joined(event: Any) -> list[Any]:
        with lock:
            return join.match(event)

    def joined_all(group: Any) -> list[list[Any]]:
        with lock:
            return [join.match(event) for event in group]

    if size == 1:
        ours = _ThreadedSide(
            matcher, engine.match, events, change_engine, lambda e: [engine.match(e)]
        )
        theirs = _ThreadedSide(
            _BASELINE, joined, events, change_join, lambda event: [joined(event)]
        )
    else:
        batch = engine.encode(events)
        ours = _ThreadedSide(
            matcher,
            lambda part: engine.match_batch(part).subscriptions,
            [batch],
            change_engine,
            lambda part: list(engine.match_batch(part)),
        )
        theirs = _ThreadedSide(_BASELINE, joined_all, [events], change_join, joined_all)
    for side in (theirs, ours):
        _verify(side, threads, right, fixed)
    seconds = setting.seconds / 4
    turns = [
        DoorTurn(_run(ours, threads, seconds) / size, _run(theirs, threads, seconds) / size)
        for _ in range(setting.rounds)
    ]
    name = f"{'dicts' if size == 1 else 'batches'}-{threads}"
    return result(
        DoorRow(THREADS, name, title, matcher, fixed, _BASELINE),
        "/s",
        turns,
        None,
        matches=sum(map(len, right)) / len(right),
        compared=threads * len(right),
        parameters=made.parameters | {"threads": threads, "events": size},
    )


def _verify(side: _ThreadedSide, threads: int, right: list[list[Any]], fixed: int) -> None:
    """Each thread matches all events while rules come and go; the rules that stay must be right."""

    def work() -> list[list[Any]]:
        return [ids for item in side.items for ids in side.answers(item)]

    for answers in _while_changing(side, work, threads):
        agree(side.name, right, [[id for id in ids if id < fixed] for ids in answers])


def _run(side: _ThreadedSide, threads: int, seconds: float) -> float:
    """Seconds for one item, of all threads together."""
    begun = time.perf_counter()
    end = begun + seconds

    def work() -> int:
        done = 0
        for item in cycle(side.items):
            side.match(item)
            done += 1
            if time.perf_counter() >= end:
                break
        return done

    every = sum(_while_changing(side, work, threads))
    return (time.perf_counter() - begun) / every


def _while_changing(
    side: _ThreadedSide, work: Callable[[], _Answer], threads: int
) -> list[_Answer]:
    """What some threads give while one more lets rules come and go, one after the other."""
    stop = threading.Event()

    def change() -> None:
        for number in cycle(range(_CHANGING)):
            side.change(number, True)
            stop.wait(_PAUSE)
            side.change(number, False)
            if stop.wait(_PAUSE):
                return

    with ThreadPoolExecutor(threads + 1) as pool:
        changer = pool.submit(change)
        try:
            return [each.result() for each in [pool.submit(work) for _ in range(threads)]]
        finally:
            stop.set()
            changer.result()
