"""Which versions a stream over a log uses, and which are kept for it, whoever sweeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tamis.errors import StoreError
from tamis.replay.log_events import next_event
from tamis.replay.manifests import manifests
from tamis.spark.jobs.compile_index import CompiledIndex, compile_log
from tamis.spark.stream.housekeeping import Housekeeper
from tamis.spark.stream.progress import StreamWatch, query_of
from tamis.spark.stream.stream import Stream, StreamJob, reader_name
from tamis.store.versions import Versions
from tests.integration.spark.test_stream import Story, _found, _run


def _used(out: Path) -> list[int]:
    """The versions that batches were matched with, one after the other."""
    written = sorted(manifests(out / "found"), key=lambda each: int(each["batch"]))
    return [each["offsets"][0]["version"] for each in written]


def _uncommit(out: Path) -> int:
    """As if Spark had been killed before it noted the end of its last batch; which that was."""
    commits = out / "found-checkpoint" / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    return last


def _left(versions: Versions) -> list[int]:
    return [each.sequence for each in versions.all()]


@contextmanager
def _blocked(out: Path) -> Iterator[None]:
    """No batch can be written: a file stands where the folder should be."""
    out.write_text("a file")
    with pytest.raises(Exception, match="found"):
        yield
    out.unlink()


def test_a_version_is_used_for_the_first_event_that_it_can_serve(
    spark: SparkSession, tmp_path: Path
) -> None:
    story, versions = Story(tmp_path / "log", seed=6, text=False), Versions(tmp_path / "index")
    index = str(tmp_path / "index")
    story.write(20)
    _run(spark, story, tmp_path, index=index)
    assert _used(tmp_path) == [-1]

    # Some change, and only then somebody publishes: the version is later than the last batch.
    for _ in range(5):
        story._change()
    first = compile_log(spark, story.log, versions).version.sequence
    story._publish()
    _run(spark, story, tmp_path, index=index)
    assert _used(tmp_path) == [-1, first]

    # Events wait on both sides of the next two: each of those has its own.
    story._publish()
    second = compile_log(spark, story.log, versions).version.sequence
    story.write(10)
    third = compile_log(spark, story.log, versions).version.sequence
    story._publish()
    _run(spark, story, tmp_path, index=index)
    assert _used(tmp_path) == [-1, first, first, second, third]
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
    batch = spark.read.format("tamis").option("index", index).load(str(tmp_path / "log"))
    rows = batch.where("reason is null").collect()
    assert sorted((row["sequence"], row["subscription"]) for row in rows) == sorted(story.pairs)


def _keeper(story: Story, versions: Versions) -> Housekeeper:
    """Of another stream, which has read everything."""

    def compile() -> CompiledIndex:
        raise AssertionError("nothing is compiled here")

    return Housekeeper(story.log, versions, compile, every=10**9)


def test_a_named_stream_has_its_versions_kept_until_it_is_past_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    story, versions = Story(tmp_path / "log", seed=7, text=False), Versions(tmp_path / "index")
    slow: dict[str, Any] = {"index": str(tmp_path / "index"), "name": "slow"}
    noted = tmp_path / "index" / "readers" / "slow.json"
    made: list[int] = []

    def more() -> None:
        for _ in range(3):
            story._change()
        made.append(compile_log(spark, story.log, versions).version.sequence)
        story._publish()

    more()
    _run(spark, story, tmp_path, **slow)
    assert json.loads(noted.read_text())["sequence"] == story.log.end, "all is committed"
    more()
    begun = next_event(story.log, made[1])
    with _unwritable(tmp_path / "found" / "manifests"), pytest.raises(Exception, match="manifests"):
        _run(spark, story, tmp_path, **slow)
    assert json.loads(noted.read_text())["sequence"] == begun, "a batch is under way"

    # Others have read on, and sweep.
    more()
    more()
    _run(spark, story, tmp_path / "quick", index=slow["index"])
    query = query_of(tmp_path / "quick" / "found-checkpoint")
    assert query is not None
    reached = StreamWatch(story.log, tmp_path / "quick" / "found", query, 0.0).look(0.0)
    assert reached.version == made[3]
    keeper = _keeper(story, versions)
    keeper.turn(reached)
    assert keeper.trouble is None
    assert _left(versions) == [made[1], made[3]]

    _run(spark, story, tmp_path, **slow)
    assert _used(tmp_path) == [made[0], made[1], made[1], made[3]], "one was swept"
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
    keeper.turn(reached)
    assert _left(versions) == [made[3]]


@contextmanager
def _unwritable(folder: Path) -> Iterator[None]:
    """The sink cannot commit: a batch is journaled, and stays without an end."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("a file")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


def test_a_named_stream_that_has_only_begun_is_known(spark: SparkSession, tmp_path: Path) -> None:
    """It is noted before the first batch is planned, not when that is over."""
    story, versions = Story(tmp_path / "log", seed=8, text=False), Versions(tmp_path / "index")
    for _ in range(3):
        story._change()
    first = compile_log(spark, story.log, versions).version.sequence
    story._publish()
    with _blocked(tmp_path / "found"):
        _run(spark, story, tmp_path, index=str(tmp_path / "index"), name="new")
    story._change()
    second = compile_log(spark, story.log, versions).version.sequence
    assert versions.sweep(second) == []
    _run(spark, story, tmp_path, index=str(tmp_path / "index"), name="new")
    assert _used(tmp_path) == [first]
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)


def test_versions_that_somebody_took_away_are_done_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    story, versions = Story(tmp_path / "log", seed=9, text=False), Versions(tmp_path / "index")
    for _ in range(3):
        story._change()
    compile_log(spark, story.log, versions)
    story._publish()
    _run(spark, story, tmp_path, index=str(tmp_path / "index"))
    last = _uncommit(tmp_path)
    (manifest,) = (tmp_path / "found" / "manifests").glob(f"*-{last:010d}-*.json")
    manifest.unlink()
    story._change()
    later = compile_log(spark, story.log, versions).version.sequence
    assert len(versions.sweep(later)) == 1
    _run(spark, story, tmp_path, index=str(tmp_path / "index"))
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)


def test_a_name_is_checked_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    story = Story(tmp_path / "log", seed=1, text=False)
    with pytest.raises(Exception, match="a reader is named 'a/b'") as refused:
        _run(spark, story, tmp_path, index=str(tmp_path / "index"), name="a/b")
    assert StoreError.__name__ in str(refused.value)


def test_two_streams_that_are_run_on_one_index_leave_each_other_theirs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`tamis spark run` gives each a name, by its checkpoint."""
    story = Story(tmp_path / "log", seed=10, text=False)
    story.write(20)
    jobs = [
        StreamJob(tmp_path / "log", tmp_path / "index", out, out / "checkpoint", trigger=None)
        for out in (tmp_path / "one", tmp_path / "two")
    ]
    for job in jobs:
        with Stream(job, spark=spark) as stream:
            stream.prepare()
            stream.start()
            assert stream._query is not None
            assert stream._query.awaitTermination(120)
            stream.check()
    names = {each.name for each in (tmp_path / "index" / "readers").iterdir()}
    assert names == {f"{reader_name(job.checkpoint)}.json" for job in jobs}
    assert len(names) == 2


def test_a_stream_from_the_latest_event_on_that_was_killed_in_its_first_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story(tmp_path / "log", seed=11, text=False)
    story.write(20)
    begun = story.log.end
    latest: dict[str, Any] = {"startingSequence": "latest", "name": "new"}
    with _blocked(tmp_path / "found"):
        _run(spark, story, tmp_path, **latest)
    story.write(20)
    _run(spark, story, tmp_path, **latest)
    wanted = sorted(pair for pair in story.pairs if pair[0] >= begun)
    assert wanted
    assert sorted(_found(spark, tmp_path)) == wanted
