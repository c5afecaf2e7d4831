"""Parts are merged while others read, die or count: each pair is still there once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.replay import manifests as manifest_files
from tamis.replay.compact_parts import compact
from tamis.replay.manifests import manifests, sweep
from tamis.replay.parts import DEAD
from tamis.spark.stream.progress import StreamWatch
from tamis.store import Log
from tests.unit.replay.notification_folder import Out

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}


@pytest.fixture
def out(tmp_path: Path) -> Out:
    return Out(tmp_path / "out")


# -- dying in the middle ---------------------------------------------------------------------------


class DeadError(BaseException):
    """The process is gone, as far as its files know."""


@contextmanager
def watched(
    monkeypatch: pytest.MonkeyPatch, places: list[tuple[Any, str]], step: Callable[[str], None]
) -> Iterator[None]:
    """Some functions call `step` with their name before they do their work."""

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def do(*given: Any, **options: Any) -> Any:
            step(name)
            return real(*given, **options)

        return do

    with monkeypatch.context() as patched:
        for where, name in places:
            patched.setattr(where, name, wrapped(name, getattr(where, name)))
        yield


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[list[str]]:
    """Whoever touches files dies after so many steps, and does nothing from then on."""
    steps: list[str] = []

    def step(name: str) -> None:
        if len(steps) >= after:
            raise DeadError(name)
        steps.append(name)

    places: list[tuple[Any, str]] = [(Path, name) for name in ("open", "rename", "unlink")]
    places += [(os, "fsync"), (pq.ParquetWriter, "write_table"), (json, "dump")]
    with watched(monkeypatch, places, step):
        yield steps


@pytest.mark.slow
def test_it_may_die_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each, everything is there once; and afterwards another finishes the work."""
    after, died = 0, True
    while died:
        out = Out(tmp_path / str(after))
        out.batches(*range(4))
        compact(out.path, keep=1, many=2)  # so that there is something to retire, and to join
        for merged in (out.path / "manifests").glob("*-merged.json"):
            os.utime(merged, (time.time(), time.time() - 7200))
        out.batches(*range(4, 8))
        died = False
        with dying(monkeypatch, after) as steps:
            try:
                compact(out.path, keep=1, many=2, older=60.0)
            except DeadError:
                died = True
        out.check()
        assert not out.batch(7), "the last one is known"
        compact(out.path, keep=1, many=2, older=0.0)
        out.check()
        sweep(out.path, 0.0)
        out.check()
        named = sum(len(each["parts"]) for each in manifests(out.path))
        assert named == out.files() + out.files(DEAD), "nothing is left over"
        assert not list((out.path / "manifests").glob(".*"))
        after += 1
    assert after > 25
    assert {"fsync", "open", "rename", "unlink", "write_table"} <= set(steps)


@contextmanager
def overtaking(
    monkeypatch: pytest.MonkeyPatch, after: int, work: Callable[[], object]
) -> Iterator[list[str]]:
    """Others do some work after so many steps of whoever reads."""
    steps: list[str] = []
    working = False

    def step(name: str) -> None:
        nonlocal working
        if not working:  # those who work read as well
            steps.append(name)
            if len(steps) == after + 1:
                working = True
                work()
                working = False

    places = [(manifest_files, "_names"), (manifest_files, "_read"), (pq, "read_table")]
    with watched(monkeypatch, places, step):
        yield steps


@pytest.mark.parametrize("older", [0.0, 3600.0])
def test_reading_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: float) -> None:
    """At every step of a reader others commit and merge: it has everything once, or asks again.

    It asks again only where replaced files go at once, and not after an hour.
    """
    after, overtaken, asked_again = 0, True, 0
    while overtaken:
        out = Out(tmp_path / str(after))
        out.batches(*range(5))
        compact(out.path, keep=2, many=3, older=older)
        out.batches(5, 6)
        before = set(out.rows)

        def work(out: Out = out) -> None:
            out.batches(7)
            compact(out.path, keep=2, many=3, older=older)

        with overtaking(monkeypatch, after, work) as steps:
            try:
                found = out.read()
            except FileNotFoundError:
                asked_again += 1
                found = out.read()
        overtaken = len(steps) > after
        assert len(found) == len(set(found)), "twice"
        assert before <= set(found) <= out.rows, "lost"
        out.check()
        assert (7 in {each["batch"] for each in manifests(out.path)}) == overtaken
        after += 1
    assert after > 10
    assert {"_names", "_read", "read_table"} == set(steps)
    assert (asked_again > 0) == (older == 0.0)


@pytest.mark.parametrize("late", [False, True])
def test_a_listing_that_is_overtaken_is_taken_again(
    out: Out, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """The system lists names one by one: those that go and come meanwhile may both be missing."""
    out.batches(*range(20))
    real, calls = manifest_files._names, 0

    def names(folder: Path) -> set[str]:
        nonlocal calls
        calls += 1
        if calls > 1:
            return real(folder)
        before = real(folder)
        monkeypatch.setattr(manifest_files, "_names", real)
        compact(out.path, keep=5, many=10, older=0.0)
        monkeypatch.setattr(manifest_files, "_names", names)
        return before if late else before & real(folder)

    monkeypatch.setattr(manifest_files, "_names", names)
    out.check()
    assert calls > 3


@pytest.fixture
def watch(out: Out, tmp_path: Path) -> StreamWatch:
    """Progress of a stream over a log with many events."""
    log = Log.create(tmp_path / "log", SCHEMA)
    log.publish(pa.table({"n": list(range(3000))}))
    return StreamWatch(log, out.path, "q", 0.0)


def test_progress_goes_on_counting(out: Out, watch: StreamWatch, tmp_path: Path) -> None:
    for number in range(25):
        out.batches(number)
        if number % 10 == 9:
            compact(out.path, keep=2, many=3, older=0.0)
        if number % 4 == 3:  # also where some were merged before it has seen them
            found = watch.look(time.time())
            assert (found.batches, found.sequence) == (number + 1, 100 * number)
            assert (found.events, found.notifications) == (100 * number, 3 * (number + 1))
            assert found.dead == (number + 1) // 2
    later = StreamWatch(Log.open(tmp_path / "log"), out.path, "q", 0.0).look(time.time())
    assert later[:6] == watch.look(time.time())[:6] == (25, 2400, 3, 2400, 75, 12)
    assert len(watch.newest()) == 3


def test_the_newest_dead_letters_may_have_been_merged(out: Out, watch: StreamWatch) -> None:
    """Parts that were seen go when others take their place; what is left of them is found there."""
    out.batches(*range(8))
    watch.look(time.time())
    for number in range(8, 14, 2):
        out.batches(number)
    watch.look(time.time())
    assert [row["sequence"] for row in watch.newest(DEAD)] == [790]
    compact(out.path, keep=1, many=2, older=0.0)
    assert watch.newest(DEAD) == [], "not looked yet"
    watch.look(time.time())
    assert [row["sequence"] for row in watch.newest(DEAD)] == [190, 390, 590, 790]
    assert watch.newest()[0]["sequence"] == 1200, "that of a later batch is newer"
