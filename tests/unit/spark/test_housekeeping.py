"""Leases, versions and files are kept in order; Spark is not needed to see it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from tamis.errors import SparkError
from tamis.replay.manifests import manifests
from tamis.spark.jobs.compile_index import CompiledIndex
from tamis.spark.stream import housekeeping as keeping
from tamis.spark.stream.housekeeping import Housekeeper, changes_worth_version
from tamis.spark.stream.progress import StreamStatus
from tamis.store import Log, SubscriptionSnapshot, Versions, describe, subscribe
from tests.unit.replay.notification_folder import Out
from tests.unit.store.world import publish_version

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}


class Compiler:
    """Publishes empty versions, when it may."""

    def __init__(self, log: Log, versions: Versions) -> None:
        self._log, self._versions = log, versions
        self.may, self.calls = Event(), 0
        self.fails: Exception | None = None
        self.may.set()

    def __call__(self) -> CompiledIndex:
        self.calls += 1
        assert self.may.wait(60)
        if self.fails is not None:
            raise self.fails
        at = self._log.end
        publish_version(self._versions, at, SCHEMA, "int64", shards=1, subscriptions=40)
        version = self._versions.at(at)
        assert version is not None
        return CompiledIndex(version, 40, 0, [])


class World:
    def __init__(self, folder: Path) -> None:
        self.log = Log.create(folder / "log", SCHEMA, ids="int64")
        self.versions = Versions(folder / "index")
        self.compiler = Compiler(self.log, self.versions)
        self._next = 0

    def keeper(
        self, every: int | None = None, snapshot: SubscriptionSnapshot | None = None
    ) -> Housekeeper:
        return Housekeeper(self.log, self.versions, self.compiler, every=every, snapshot=snapshot)

    def subscribe(self, count: int, until: datetime | None = None) -> None:
        ids = range(self._next, self._next + count)
        self._next += count
        self.log.change(subscribe(ids, ["n < 3"] * count, until))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _reached(sequence: int, version: int) -> StreamStatus:
    return StreamStatus(1, sequence, version, 0, 0, 0, 0, None, None, None, None)


def test_a_version_is_compiled_when_a_domain_has_grown(tmp_path: Path) -> None:
    """Workers would have to compile its conditions again, each for itself."""
    world = World(tmp_path)
    colours = {"kind": "enumerated", "values": ["red"]}
    world.log.extend(world.log.schema_at().create_attribute("colour", colours))
    keeper = world.keeper(every=1_000)
    world.compiler()
    for extend, given, compiled in (
        ("create_attribute", ("size", "integer"), 0),
        ("grow_domain", ("colour", ["blue"]), 1),
        ("create_attribute", ("more", "integer"), 1),
        ("grow_domain", ("colour", ["green"]), 2),
    ):
        world.log.extend(getattr(world.log.schema_at(), extend)(*given))
        world.log.publish(pa.table({"n": [1]}))
        keeper.turn(None)
        keeper.close()
        keeper._closed = False
        assert keeper.compiled == compiled


def test_leases_that_have_run_out_are_expired(world: World) -> None:
    keeper, now = world.keeper(), datetime.now(UTC)
    world.subscribe(3)
    keeper.turn(None)
    assert keeper.snapshot is None, "nobody has a lease, so nobody is remembered"
    snapshot = SubscriptionSnapshot()
    world.keeper(snapshot=snapshot).turn(None)
    assert len(snapshot) == 3, "unless that is asked for"
    world.subscribe(2, now - timedelta(seconds=1))
    world.subscribe(1, now + timedelta(hours=1))
    keeper.turn(None)
    assert keeper.expired == 2
    assert world.log.changes(6)["kind"].to_pylist() == ["expire", "expire"]
    assert keeper.snapshot is not None
    keeper.turn(None)
    assert (len(keeper.snapshot), keeper.expired, world.log.end) == (4, 2, 8)


def test_a_version_is_compiled_when_enough_has_changed(world: World) -> None:
    keeper = world.keeper(every=5)
    world.subscribe(4)
    keeper.turn(None)
    assert world.compiler.calls == 0
    world.subscribe(1)
    world.compiler.may.clear()
    for _ in range(3):
        keeper.turn(None)
    assert keeper.compiling is not None
    assert world.compiler.calls == 1, "one at a time"
    world.compiler.may.set()
    keeper.close()
    assert (keeper.compiled, keeper.changed()) == (1, (0, 5))


@pytest.mark.parametrize(
    ("error", "why"),
    [(SparkError("no room\nat org.apache.spark"), "no room"), (MemoryError(), "MemoryError")],
)
def test_a_compilation_that_fails_is_reported_and_tried_later(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    keeper = world.keeper(every=1)
    world.subscribe(1)
    world.compiler.fails = error
    keeper.turn(None)
    assert keeper._compiling is not None
    keeper._compiling.join()
    assert keeper.trouble == f"no version could be compiled: {why}"
    keeper.turn(None)
    assert world.compiler.calls == 1
    monkeypatch.setattr(keeping, "_REST", 0.0)
    world.compiler.fails = None
    keeper.turn(None)
    keeper.close()
    again: tuple[int, str | None] = (world.compiler.calls, keeper.trouble)
    assert again == (2, None)


def test_old_versions_go_when_no_batch_can_need_them(world: World) -> None:
    keeper = world.keeper(every=10**6)
    for _ in range(3):
        world.subscribe(1)
        world.compiler()
    world.subscribe(1)
    keeper.turn(None)
    keeper.turn(_reached(3, -1))
    assert [each.sequence for each in world.versions.all()] == [1, 2, 3]
    keeper.turn(_reached(4, 2))
    assert [each.sequence for each in world.versions.all()] == [2, 3]
    assert keeper.swept == 1


def test_small_files_that_were_read_are_merged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_COMPACTED", -1.0)
    monkeypatch.setattr("tamis.store.segment_files.MOST", 2)
    keeper = world.keeper()
    for number in range(7):
        world.log.publish(pa.table({"n": [number]}))
    keeper.turn(_reached(5, -1))
    files = sorted(each.name for each in (world.log.folder / "segments").iterdir())
    assert files == [f"{number:020d}.segment" for number in (0, 4, 6)]
    assert world.log.counts(0) == (7, 0)


def test_small_parts_of_old_batches_are_merged(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_COMPACTED", -1.0)
    out = Out(tmp_path / "out")
    keeper = Housekeeper(world.log, world.versions, world.compiler, out=out.path, keep=7)
    out.batches(*range(106))
    keeper.turn(_reached(0, -1))
    assert len(manifests(out.path)) == 106, "they are not many yet"
    out.batches(106)
    keeper.turn(_reached(0, -1))
    assert len(manifests(out.path)) == 8
    out.check()
    (out.path / "manifests" / "q-0000000107-6b.json").write_text('{"format": 99}', encoding="utf-8")
    keeper.turn(_reached(0, -1))
    assert "newer tamis" in (keeper.trouble or "")


def test_what_the_file_system_refuses_is_reported(world: World) -> None:
    keeper = world.keeper()
    world.versions.folder.write_text("a file", encoding="utf-8")
    keeper.turn(None)
    assert keeper.trouble is not None
    assert "index" in keeper.trouble
    world.versions.folder.unlink()
    keeper.turn(None)
    assert keeper.trouble is None


def test_a_tenth_is_worth_a_version(world: World) -> None:
    assert changes_worth_version(None) == 1000
    world.subscribe(1)
    version = world.compiler().version
    assert changes_worth_version(version) == 1000  # a tenth of 40 is too few
    version.document["shards"][0]["subscriptions"] = 500_000
    assert changes_worth_version(version) == 50_000
    assert changes_worth_version(version, 7) == 7


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (pa.ArrowInvalid("not a parquet file\nbytes"), "not a parquet file"),
        (json.JSONDecodeError("no JSON", "{", 0), "no JSON: line 1 column 1 (char 0)"),
        (KeyError(), "KeyError"),
    ],
)
def test_whatever_goes_wrong_in_a_turn_is_reported(
    world: World, monkeypatch: pytest.MonkeyPatch, why: Exception, said: str
) -> None:
    """Its thread has to live on."""

    def fails(_: object, sequence: int = 0, end: int | None = None) -> tuple[int, int]:
        raise why

    keeper = world.keeper()
    with monkeypatch.context() as patched:
        patched.setattr(Log, "counts", fails)
        keeper.turn(None)
    assert keeper.trouble == said
    keeper.turn(None)
    assert keeper.trouble is None


def test_conditions_that_the_last_version_refused_are_reported(world: World) -> None:
    keeper = world.keeper()
    world.subscribe(2)
    made: list[dict[str, Any]] = [{"refused": 2, "reasons": ["7: no such", "8: no such"]}, {}]
    for at, how in enumerate(made):
        with world.versions.publish(at) as folder:
            describe(folder, sequence=at, schema=SCHEMA, ids="int64", shards=[], made=how)
        keeper.turn(None)
        said = "2 conditions were refused; 7: no such"
        assert keeper.trouble == (said if how else None)
