"""Versions one after the other: what is carried on, what is made anew, and what is refused."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tamis.engine import Engine
from tamis.errors import SparkError, StoreError
from tamis.spark.jobs import compile_index as sharding
from tamis.spark.jobs.compile_index import _describe, compile_conditions, compile_log
from tamis.spark.jobs.compile_shard import CompiledShard, LogShardTask
from tamis.store import Log, changes
from tamis.store.version import Version
from tamis.store.versions import Versions
from tests.integration.spark.test_stream import DOCUMENT, SCHEMA

MODULE = "cheap_for_spark"
SOURCE = """
from tamis import operator

@operator(reads=("price",), run="here")
def cheapForSpark(price):
    return price < 5
"""


@pytest.fixture
def module(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Found here and in workers, and declares an operator where it is imported."""
    path = tmp_path / f"{MODULE}.py"
    path.write_text(SOURCE, encoding="utf-8")
    spark.sparkContext.addPyFile(str(path))
    monkeypatch.syspath_prepend(tmp_path)
    return MODULE


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.create(tmp_path / "log", DOCUMENT)


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path / "index")


def _ids(version: Version) -> set[str]:
    known: set[str] = set()
    for folder in version.shard_folders:
        engine = Engine.open(folder)
        known |= {id for id in ("ann", "bob", "cid", "dan", "eve") if id in engine}
    return known


def test_what_was_refused_is_tried_again_with_other_modules(
    spark: SparkSession, log: Log, versions: Versions, module: str
) -> None:
    log.change(changes.subscribe(["ann", "bob"], ["price < 5", "cheapForSpark()"]))
    made = compile_log(spark, log, versions)
    assert (made.subscriptions, made.refused) == (1, 1)
    again = compile_log(spark, log, versions)
    assert (again.refused, again.reasons) == (1, made.reasons), "one that is there says it too"
    with pytest.raises(SparkError, match="of sequence number 2 already"):
        compile_log(spark, log, versions, modules=[MODULE])

    log.change(changes.subscribe(["cid"], ["prise < 5"]))
    made = compile_log(spark, log, versions, modules=[MODULE])
    assert (made.subscriptions, made.refused) == (2, 1)
    import_module(module)
    assert _ids(made.version) == {"ann", "bob"}

    # Those that stay wrong stay known, and go when they are said to.
    log.change(changes.subscribe(["dan"], ["kind = a"]))
    made = compile_log(spark, log, versions, modules=[MODULE])
    assert (made.subscriptions, made.refused, len(made.reasons)) == (3, 1, 1)
    assert "'cid'" in made.reasons[0]
    log.change(changes.subscribe(["cid"], ["price < 5"]))
    made = compile_log(spark, log, versions, modules=[MODULE])
    assert (made.subscriptions, made.refused) == (4, 0)


def test_a_version_that_is_there_is_not_said_to_be_another(
    spark: SparkSession, log: Log, versions: Versions
) -> None:
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    made = compile_log(spark, log, versions)
    assert compile_log(spark, log, versions).version == made.version
    with pytest.raises(SparkError, match="in 2 shards, instead of 1"):
        compile_log(spark, log, versions, shards=2)
    rows = spark.createDataFrame([("bob", "price < 5")], "id string, condition string")
    with pytest.raises(StoreError, match="of sequence number 1 already"):
        compile_conditions(rows, versions, SCHEMA, sequence=1)
    assert _ids(made.version) == {"ann"}


def test_rows_without_an_id_are_counted(spark: SparkSession, versions: Versions) -> None:
    rows = [("ann", "price < 5"), (None, "price < 5"), (None, "kind = a")]
    frame = spark.createDataFrame(rows, "id string, condition string")
    made = compile_conditions(frame, versions, SCHEMA, shards=2)
    assert (made.subscriptions, made.refused, made.reasons) == (1, 2, ["2 rows have no id"])
    assert len(made.version.shards) == 2


def test_two_attempts_at_a_shard_do_not_meet(log: Log, versions: Versions) -> None:
    """Spark starts a task again while the first attempt is still writing: one of them counts."""
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    with versions.publish(log.end) as draft:
        task = LogShardTask(str(log.folder), str(draft), 0, log.end, 1, None, None, ())
        first, second = (CompiledShard(**row) for _ in range(2) for row in task.run(0))
        assert (draft / first.folder).is_dir(), "the second has left it alone"
        assert first.folder != second.folder
        _describe(draft, [second], log.end, DOCUMENT, "text", {})
        assert sorted(each.name for each in draft.iterdir()) == ["shard-0000", "version.json"]
    latest = versions.latest()
    assert latest is not None
    assert _ids(latest) == {"ann"}


def test_shards_are_for_those_that_are_live(
    spark: SparkSession, log: Log, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharding, "SHARD", 10)
    ids = [f"s{number}" for number in range(8)]
    for _ in range(5):
        log.change(changes.subscribe(ids, ["price < 5"] * len(ids)))
    assert log.counts(0)[1] == 40
    made = compile_log(spark, log, versions)
    assert (made.subscriptions, len(made.version.shards)) == (8, 1)
    more = [f"t{number}" for number in range(50)]
    log.change(changes.subscribe(more[:5], ["price < 5"] * 5))
    made = compile_log(spark, log, versions)
    assert (made.subscriptions, len(made.version.shards)) == (13, 2)
    log.change(changes.subscribe(more, ["price < 5"] * 50))
    made = compile_log(spark, log, versions)
    assert (made.subscriptions, len(made.version.shards)) == (58, 6)
    log.change(changes.cancel([*ids, *more[:45]]))
    made = compile_log(spark, log, versions)
    assert (made.subscriptions, len(made.version.shards)) == (5, 1)

    # As many as were asked for stay.
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    made = compile_log(spark, log, versions, shards=6)
    log.change(changes.subscribe(["bob"], ["price < 5"]))
    made = compile_log(spark, log, versions)
    assert (made.subscriptions, len(made.version.shards)) == (7, 6)
