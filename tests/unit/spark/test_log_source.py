"""How a log is cut into batches and tasks; Spark is not needed to see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from tamis.errors import SparkError, StoreError
from tamis.replay.log_events import next_event
from tamis.spark.stream.log_source import LogOptions, TamisDataSource
from tamis.store import Log, Versions, describe, subscribe
from tests.unit.store.world import publish_version

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}


class World:
    """A log with an index beside it."""

    def __init__(self, folder: Path) -> None:
        self.log = Log.create(folder / "log", SCHEMA, ids="int64")
        self.versions = Versions(folder / "index")

    def change(self, count: int = 1) -> None:
        self.log.change(subscribe(range(count), ["n < 3"] * count))

    def events(self, count: int = 1) -> None:
        self.log.publish(pa.table({"n": list(range(count))}))

    def version(self, shards: int = 1) -> int:
        publish_version(self.versions, self.log.end, SCHEMA, "int64", shards)
        return self.log.end

    def options(self, **given: str) -> LogOptions:
        paths = {"path": str(self.log.folder), "index": str(self.versions.folder)}
        return LogOptions.read(paths | given)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_batch_ends_where_a_newer_version_begins(world: World) -> None:
    world.change(2)
    world.events(3)  # from 2
    world.change(5)
    first = world.version()  # 10
    world.change(4)
    world.events(6)  # from 14
    second = world.version()  # 20
    world.change(1)
    given = world.options()
    assert (first, second) == (10, 20)
    assert given.first_range(0, 21) == (0, 10, -1)
    assert given.first_range(10, 21) == (10, 20, 10)
    assert given.first_range(5, 21) == (5, 20, 10), "its first event is after the version"
    assert given.first_range(5, 16) == (5, 16, 10)
    assert given.first_range(20, 21) is None, "no event"
    assert list(given.version_ranges(0, 21)) == [(0, 10, -1), (10, 20, 10)]
    world.events(1)
    assert given.first_range(20, 22) == (20, 22, 20)
    assert next_event(world.log) == 2
    assert next_event(world.log, 5, 14) is None


def test_without_versions_a_batch_is_all_there_is(world: World) -> None:
    world.change(2)
    world.events(3)
    assert list(world.options().version_ranges(0, 5)) == [(0, 5, -1)]
    alone = LogOptions.read({"path": str(world.log.folder)})
    assert list(alone.version_ranges(0, 5)) == [(0, 5, -1)]


def test_tasks_have_the_version_that_was_journaled_or_one_that_serves_as_well(world: World) -> None:
    world.change(2)
    first = world.version(shards=2)
    world.events(3)
    given = world.options()
    piece = given.first_range(0, 5)
    assert piece == (0, 5, first)
    tasks = given.slices_of(piece)
    assert [(task.sequence, task.shard, task.shards) for task in tasks] == [(2, 0, 2), (2, 1, 2)]
    world.version()
    world.versions.sweep(world.log.end)
    (task,) = given.slices_of(piece)
    assert (task.folder, task.sequence) == (None, 0), "the log has it all"


def test_refusals(world: World) -> None:
    with pytest.raises(SparkError, match="reads a log"):
        LogOptions.read({})
    for options, error, message in (
        ({"columns": "m"}, SparkError, "no attribute 'm'"),
        ({"maxeventspertrigger": "0"}, SparkError, "whole number, 1 or more"),
        ({"name": "a b"}, StoreError, "a reader is named"),
    ):
        with pytest.raises(error, match=message):
            world.options(**options)
    with pytest.raises(SparkError, match="needs a name"):  # a stream from the latest event on
        _stream(world)
    assert LogOptions.read({"path": str(world.log.folder), "startingsequence": "latest"}).latest


def _stream(world: World, **given: str) -> Any:
    paths = {"path": str(world.log.folder), "startingsequence": "latest"}
    return TamisDataSource(paths | given).streamReader(StructType())


def test_the_latest_event_stays_the_same_until_the_first_batches_are_over(world: World) -> None:
    world.events(3)
    begun = _stream(world, name="new").initialOffset()
    assert begun["sequence"] == 3
    world.events(4)
    again = _stream(world, name="new")  # Spark was killed in its first batch
    assert again.initialOffset() == begun
    assert _stream(world, name="other").initialOffset()["sequence"] == 7
    end = again.latestOffset(begun, again.getDefaultReadLimit())
    assert end["sequence"] == 7
    again.commit(end)
    world.events(1)
    assert again.initialOffset() == begun, "a power cut may undo Spark's commit"
    again.commit(again.latestOffset(end, again.getDefaultReadLimit()))
    assert _stream(world, name="new").initialOffset()["sequence"] == 8, "of another checkpoint"


def test_an_index_of_another_log_is_refused(world: World, tmp_path: Path) -> None:
    world.change(2)
    with world.versions.publish(2) as folder:
        made = {"of": world.log.identity}
        describe(folder, sequence=2, schema=SCHEMA, ids="int64", shards=[], made=made)
    assert world.options().versions is not None
    other = Log.create(tmp_path / "other", SCHEMA, ids="int64")
    assert other.identity != world.log.identity
    with pytest.raises(StoreError, match="compiled from another log"):
        world.options(path=str(other.folder))


def test_a_checkpoint_of_another_log_is_refused(world: World, tmp_path: Path) -> None:
    world.events(3)
    other = Log.create(tmp_path / "other", SCHEMA, ids="int64")
    other.publish(pa.table({"n": [1, 2, 3, 4]}))
    source = TamisDataSource({"path": str(world.log.folder)})
    reader = source.streamReader(StructType())
    limit = reader.getDefaultReadLimit()
    offset = reader.latestOffset(reader.initialOffset(), limit)
    assert offset["sequence"] == 3
    wrong = TamisDataSource({"path": str(other.folder)}).streamReader(StructType())
    with pytest.raises(SparkError, match="of another log"):
        wrong.latestOffset(offset, limit)
    # A checkpoint from before logs had an identity.
    earlier = {"sequence": 3, "version": -1}
    assert wrong.latestOffset(earlier, limit)["sequence"] == 4
