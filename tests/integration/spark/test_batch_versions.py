"""A stream of a DataFrame follows the versions of an index, batch by batch, and replays agree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tamis.spark
from tamis import Engine, Schema
from tamis.errors import TamisError
from tamis.store import Shard, Version, Versions, describe
from tests.integration.spark.streams import run_stream
from tests.schemas import one_type

DOCUMENT: dict[str, Any] = one_type("event", {"price": "integer!", "kind": "text"})
COLUMNS = "lot long, price long, kind string, colour string"
Pairs = set[tuple[int, Any]]


class World:
    """Events in files, a file a batch, and versions of an index."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self._folder, self._spark = folder, spark
        self.versions = Versions(folder / "index")
        self.found: dict[int, list[Pairs]] = {}  # by batch: what came out, each time it was run
        self.after: Callable[[int], object] = lambda batch: None
        (folder / "events").mkdir()

    def publish(
        self,
        sequence: int,
        conditions: dict[Any, str],
        *,
        schema: dict[str, Any] = DOCUMENT,
        ids: str = "text",
        shards: int = 1,
    ) -> None:
        """A version, by hand: a shard has every so-manieth condition."""
        with self.versions.publish(sequence) as draft:
            made = []
            for shard in range(shards):
                engine = Engine(Schema.from_dict(schema))
                for id, condition in list(conditions.items())[shard::shards]:
                    engine.subscribe(condition, id=id)
                engine.save(draft / f"shard-{shard:04d}")
                made.append(Shard(f"shard-{shard:04d}", len(engine), 1))
            describe(draft, sequence=sequence, schema=schema, ids=ids, shards=made)

    def file(self, number: int, rows: int = 20) -> None:
        """Events of which each satisfies just what its price says."""
        lots = range(100 * number, 100 * number + rows)
        table = pa.table(
            {
                "lot": pa.array(lots, pa.int64()),
                "price": pa.array([lot % 10 for lot in lots], pa.int64()),
                "kind": ["a"] * rows,
                "colour": ["red"] * rows,
            }
        )
        path = self._folder / "events" / f"{number}.parquet"
        parquet.write_table(table, path)
        os.utime(path, (number, 1e9 + number))  # Spark reads them in this order

    def files(self, count: int) -> None:
        for number in range(count):
            self.file(number)

    def stream(self, columns: str = COLUMNS, tasks: int = 1) -> DataFrame:
        return (
            self._spark.readStream.schema(columns)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._folder / "events"))
            .repartition(tasks)
        )

    def table(self) -> DataFrame:
        return self._spark.read.schema(COLUMNS).parquet(str(self._folder / "events"))

    def run(self, stream: DataFrame | None = None, **options: Any) -> StreamingQuery:
        """All there is, and end. What comes out of a batch is kept, and then `after` is called."""
        frame = self.stream() if stream is None else stream
        matched = frame.transform(tamis.spark.match(self.versions.folder, id="lot", **options))

        def take(rows: DataFrame, batch: int) -> None:
            pairs = [(row["lot"], row["subscription"]) for row in rows.collect()]
            assert len(pairs) == len(set(pairs))
            self.found.setdefault(batch, []).append(set(pairs))
            self.after(batch)

        query = (
            matched.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert not query.isActive
        return query

    def uncommit(self, batch: int) -> None:
        """As if Spark had been killed before it noted the end of a batch."""
        for name in (str(batch), f".{batch}.crc"):
            (self._folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> World:
    return World(tmp_path, spark)


def _below(limit: int, id: Any, file: int, rows: int = 20) -> Pairs:
    lots = range(100 * file, 100 * file + rows)
    return {(lot, id) for lot in lots if lot % 10 < limit}


def test_each_batch_takes_the_latest_version(world: World) -> None:
    world.files(3)
    world.publish(10, {"ann": "price < 3"})

    def after(batch: int) -> None:
        if batch == 0:  # with more shards than before
            world.publish(20, {"bob": "price < 5", "eve": "price < 1"}, shards=2)

    world.after = after
    world.run(world.stream(tasks=2))
    assert world.found == {
        0: [_below(3, "ann", 0)],
        1: [_below(5, "bob", 1) | _below(1, "eve", 1)],
        2: [_below(5, "bob", 2) | _below(1, "eve", 2)],
    }


def test_a_batch_that_is_run_again_has_the_rows_of_the_first_time(world: World) -> None:
    world.files(2)
    world.publish(10, {"ann": "price < 3"})
    world.run()
    world.publish(20, {"bob": "price < 5"})
    world.uncommit(1)
    world.file(2)
    assert world.versions.sweep(20) == [], "a version that a batch may need again stays"
    world.run()
    assert world.found == {
        0: [_below(3, "ann", 0)],
        1: [_below(3, "ann", 1)] * 2,
        2: [_below(5, "bob", 2)],
    }


def test_the_driver_is_killed_before_a_batch_ends(world: World) -> None:
    """Whatever it has answered of the batch, the rest is answered by the same version."""
    world.file(0)
    world.publish(10, {"ann": "price < 3"})

    def killed(batch: int) -> None:
        world.publish(20, {"bob": "price < 5"})
        raise RuntimeError("killed")

    world.after = killed
    with pytest.raises(Exception, match="killed"):
        world.run()
    world.after = lambda batch: None
    world.run()
    assert world.found == {0: [_below(3, "ann", 0)] * 2}


def test_tasks_that_are_tried_again_agree(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    """Both tasks of a batch fail at first, when a newer version is there already."""
    from pyspark.sql import functions
    from pyspark.sql.functions import udf

    world.file(0, rows=60)
    world.publish(10, {"ann": "price < 3"})
    index, newer = str(world.versions.folder), tmp_path / "newer"
    world.publish(20, {"bob": "price < 5"})
    newer.mkdir()
    shutil.move(world.versions.folder / f"v{20:020d}", newer / "version")
    failed = str(tmp_path / "failed")

    def once(subscription: str) -> str:
        from contextlib import suppress
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            mark = Path(failed) / str(context.partitionId())
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
            with suppress(OSError):  # the first of them puts it in place
                (newer / "version").rename(Path(index) / f"v{20:020d}")
            raise RuntimeError("tried again")
        return subscription

    matched = world.stream(tasks=2).transform(tamis.spark.match(index, id="lot"))
    failing = udf(once, "string", useArrow=False)(functions.col("subscription"))
    out = tmp_path / "out"
    run_stream(matched.withColumn("subscription", failing), tmp_path, "out")
    latest = world.versions.latest()
    assert latest is not None
    assert latest.sequence == 20
    assert len(list(Path(failed).iterdir())) == 2, "both tasks were tried again"
    rows = spark.read.parquet(str(out)).collect()
    assert {(row["lot"], row["subscription"]) for row in rows} == _below(3, "ann", 0, 60)
    assert len(rows) == len(_below(3, "ann", 0, 60))


def test_a_version_by_itself_does_not_move(world: World) -> None:
    world.files(2)
    world.publish(10, {"ann": "price < 3"})
    version = world.versions.latest()
    assert isinstance(version, Version)
    world.after = lambda batch: world.publish(20 + batch, {"bob": "price < 5"})
    matched = world.stream().transform(tamis.spark.match(version, id="lot"))
    found: list[tuple[int, Any]] = []

    def take(rows: DataFrame, batch: int) -> None:
        found.extend((row["lot"], row["subscription"]) for row in rows.collect())
        world.after(batch)

    query = matched.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert set(found) == _below(3, "ann", 0) | _below(3, "ann", 1)
    assert not (world.versions.folder / "pins").exists()


def test_a_table_is_matched_with_a_version_that_others_would_sweep(world: World) -> None:
    """It is planned now and runs later, maybe twice: nobody says when it is over."""
    world.publish(1, {"old": "price < 5"})
    world.file(1)
    table = world.table()
    matched = table.transform(tamis.spark.match(world.versions.folder, id="lot"))
    world.publish(2, {"new": "price >= 5"})
    assert world.versions.sweep(2) == []
    for _ in range(2):
        assert {row["subscription"] for row in matched.collect()} == {"old"}


def test_an_index_that_is_empty_at_first_knows_what_its_ids_are(world: World) -> None:
    world.files(2)
    world.publish(10, {})
    world.after = lambda batch: world.publish(20 + batch, {"bob": "price < 5"})
    world.run()
    assert world.found == {0: [set()], 1: [_below(5, "bob", 1)]}


@pytest.mark.parametrize(
    ("first", "later", "why"),
    [
        ({"ids": "int64"}, {}, "ids that are text, and the stream was started with num"),
        (
            {},
            {"schema": {**DOCUMENT, "attributes": {"price": "integer", "kind": "integer"}}},
            "does not fit the events any more: the column 'kind'",
        ),
    ],
)
def test_a_version_that_does_not_fit_the_stream_is_refused(
    world: World, first: dict[str, Any], later: dict[str, Any], why: str
) -> None:
    world.files(2)
    id: Any = 7 if first else "ann"
    world.publish(10, {id: "price < 3"}, **first)
    world.after = lambda batch: world.publish(20, {"bob": "price < 5"}, **later)
    with pytest.raises(Exception, match=why):
        world.run()
    assert world.found == {0: [_below(3, id, 0)]}


GROWN: dict[str, Any] = {
    "attributes": {**DOCUMENT["attributes"], "colour": "text"},
    "event_types": {"event": {**DOCUMENT["event_types"]["event"], "colour": "optional"}},
}


def test_an_attribute_that_is_new_and_has_a_column_stops_the_stream_until_its_next_start(
    world: World,
) -> None:
    world.files(2)
    world.publish(10, {"ann": "price < 3"})
    world.after = lambda batch: world.publish(
        20, {"bob": "price < 5 and colour = red"}, schema=GROWN
    )
    with pytest.raises(Exception, match="'colour' for a column that the stream"):
        world.run()
    world.after = lambda batch: None
    world.publish(30, {"eve": "price < 9"}, schema=GROWN)
    world.run()
    assert world.found == {0: [_below(3, "ann", 0)], 1: [_below(5, "bob", 1)]}


def test_an_attribute_that_is_new_and_has_no_column_is_absent(world: World) -> None:
    world.files(2)
    world.publish(10, {"ann": "price < 3"})
    conditions = {"bob": "price < 5", "eve": "colour = red"}
    world.after = lambda batch: world.publish(20, conditions, schema=GROWN)
    world.run(world.stream("lot long, price long, kind string"))
    assert world.found == {0: [_below(3, "ann", 0)], 1: [_below(5, "bob", 1)]}


def test_what_a_stream_needs_of_the_folder(world: World) -> None:
    world.file(0)
    world.versions.folder.mkdir()
    with pytest.raises(TamisError, match="index"):
        world.run()
    world.publish(10, {"ann": "price < 3"})
    (world.versions.folder / "pins").write_text("a file, where a folder should be")
    with pytest.raises(Exception, match="the version of a batch cannot be noted"):
        world.run()
