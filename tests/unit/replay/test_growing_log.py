"""A log whose schema grows, replayed from anywhere, against semantics event by event.

An event and a condition are read by the schema of their number, whatever schema the log has by the
time they are read.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine
from tamis.replay.live_subscriptions import LiveSubscriptions
from tamis.replay.log_matching import match_log
from tamis.replay.pipeline import BatchPace
from tamis.spark.jobs.compile_shard import LogShardTask
from tamis.spark.stream.log_task import LogTask
from tamis.store import Log
from tests.unit.replay.growing_log import CLOSED, OPEN, Account, Pair, story_of, told


def replayed(live: LiveSubscriptions, log: Log, start: int, end: int) -> tuple[set[Pair], set[int]]:
    pairs: list[Pair] = []
    dead: set[int] = set()
    for events, found in match_log(live, log, start, end, BatchPace(2, 2)):
        sequences = events.numbers[found.rows].tolist()
        pairs += zip(sequences, found.ids.to_pylist(), strict=True)
        dead |= {int(events.chunk.numbers[row]) for row, _ in events.valid.refused}
    assert len(pairs) == len(set(pairs)), "no pair twice"
    return set(pairs), dead


def compiled(log: Log, at: int, draft: Path, before: tuple[int, str] | None) -> str:
    """The shard of a version, as the job compiles it."""
    since, folders = (0, None) if before is None else (before[0], [before[1]])
    task = LogShardTask(str(log.folder), str(draft), since, at, 1, folders, None, ())
    (made,) = task.run(0)
    folder = draft / made["folder"]
    assert Engine.open(folder).schema == log.schema_at(at)
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def _small_segments() -> Iterator[None]:
    """Segments that are complete with two packs, so that a log can be trimmed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tamis.store.segment_files.MOST", 2)
        yield


@settings(max_examples=30)
@given(st.randoms(use_true_random=True), st.sampled_from([CLOSED, OPEN]))
def test_a_replay_is_what_semantics_says_of_each_row(
    rng: random.Random, document: dict[str, Any]
) -> None:
    story = story_of(rng)
    with tempfile.TemporaryDirectory() as place:
        log, account = Log.create(Path(place) / "log", document, ids="int64"), Account(document)
        places = [each for each in told(log, account, story) if each >= log.begin]
        rows = range(log.begin, log.end)
        right = {pair for pair in account.pairs if pair[0] in rows}
        dead = {number for number in account.dead if number in rows}
        reader = Log.open(log.folder)
        # All at once, and in steps; each step may be read again after later ones.
        assert replayed(LiveSubscriptions(log.schema_at(0), "int64"), reader, 0, log.end) == (
            right, dead
        )  # fmt: skip
        live = LiveSubscriptions(log.schema_at(0), "int64")
        cuts = sorted({log.begin, log.end, *rng.sample(places, min(3, len(places)))})
        for low, high in [*pairwise(cuts), (cuts[0], cuts[len(cuts) // 2])]:
            wanted = {pair for pair in right if low <= pair[0] < high}
            assert replayed(live, reader, low, high)[0] == wanted
        # From versions, each compiled from the one before, in tasks of a stream.
        before: tuple[int, str] | None = None
        for at in sorted(rng.sample(places, min(2, len(places)))):
            if at:
                before = at, compiled(reader, at, Path(place), before)
                end = rng.choice([each for each in places if each >= at])
                task = LogTask(str(log.folder), at, end, before[1], at, 0, 1, (), ())
                found = [row for batch in task.run() for row in batch.to_pylist()] * (end > at)
                pairs = {(row["sequence"], row["subscription"]) for row in found}
                assert {pair for pair in pairs if pair[1] is not None} == {
                    pair for pair in right if at <= pair[0] < end
                }
                assert {number for number, id in pairs if id is None} == {
                    number for number in dead if at <= number < end
                }
