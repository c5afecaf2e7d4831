"""The log through `format("tamis")` and into `format("tamis_notifications")`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Schema
from tamis.errors import SparkError
from tamis.language import parse
from tamis.model.event import Event
from tamis.model.semantics import satisfies
from tamis.replay.manifests import manifests
from tamis.spark.jobs.compile_index import compile_conditions, compile_log
from tamis.store import Log, changes
from tamis.store.versions import Versions
from tests.integration.spark.streams import run_stream
from tests.schemas import one_type

DOCUMENT = one_type("event", {"price": "integer!", "kind": "text"})
SCHEMA = Schema.from_dict(DOCUMENT)
CONDITIONS = ["price < 5", "price >= 3 and kind = a", "kind = b or price = 7"]


class Story:
    """A log that is written a bit at a time, and what should come out of it."""

    def __init__(self, folder: Path, seed: int, text: bool) -> None:
        self.log = Log.create(folder, DOCUMENT, ids="text")
        self._rng = random.Random(seed)
        self._text = text
        self._live: dict[str, str] = {}
        self.pairs: set[tuple[int, str]] = set()
        self.dead: set[int] = set()
        self.events = 0

    def write(self, steps: int) -> None:
        for _ in range(steps):
            if self._rng.random() < 0.5:
                self._publish()
            else:
                self._change()

    def _change(self) -> None:
        id = f"s{self._rng.randrange(12)}"
        if self._rng.random() < 0.7:
            condition = self._rng.choice(CONDITIONS)
            self.log.change(changes.subscribe([id], [condition]))
            self._live[id] = condition
        else:
            self.log.change(changes.cancel([id]))
            self._live.pop(id, None)

    def _publish(self) -> None:
        made: list[dict[str, Any]] = [
            {"price": self._rng.randrange(10), "kind": self._rng.choice("abc")}
            for _ in range(self._rng.randint(1, 40))
        ]
        bad = {at for at in range(len(made)) if self._rng.random() < 0.05}
        if self._text:
            lines = ["{broken" if at in bad else json.dumps(e) for at, e in enumerate(made)]
            first = self.log.publish(pa.table({"json": lines})).start
        else:
            prices = [None if at in bad else e["price"] for at, e in enumerate(made)]
            kinds = [e["kind"] for e in made]
            table = pa.table({"price": pa.array(prices, pa.int64()), "kind": kinds})
            first = self.log.publish(table).start
        self.events += len(made)
        for at, event in enumerate(made):
            if at in bad:
                self.dead.add(first + at)
                continue
            for id, condition in self._live.items():
                if satisfies(parse(condition), Event.of(SCHEMA, event), SCHEMA):
                    self.pairs.add((first + at, id))


def _run(
    spark: SparkSession, story: Story, out: Path, most: int | None = None, **more: str
) -> None:
    options = {"columns": "price"} | ({} if most is None else {"maxEventsPerTrigger": str(most)})
    options |= more
    stream = spark.readStream.format("tamis").options(**options).load(str(story.log.folder))
    run_stream(stream, out, sink="tamis_notifications")


def _found(spark: SparkSession, out: Path) -> list[tuple[int, str]]:
    rows = spark.read.format("tamis_notifications").load(str(out / "found")).collect()
    return [(row["sequence"], row["subscription"]) for row in rows]


@pytest.mark.parametrize("text", [False, True])
def test_all_pairs_come_out_once_and_a_second_run_goes_on(
    spark: SparkSession, tmp_path: Path, text: bool
) -> None:
    story = Story(tmp_path / "log", seed=3, text=text)
    story.write(60)
    _run(spark, story, tmp_path, most=200)
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
    story.write(30)
    _run(spark, story, tmp_path)
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)
    dead = (
        spark.read.format("tamis_notifications")
        .option("kind", "dead")
        .load(str(tmp_path / "found"))
    )
    rows = dead.collect()
    assert {row["sequence"] for row in rows} == story.dead
    assert all(row["reason"] and row["raw"] for row in rows)
    written = manifests(tmp_path / "found")
    assert len(written) >= 3, "batches were limited"
    assert sum(each["notifications"] for each in written) == len(story.pairs)
    assert sum(each["dead"] for each in written) == len(story.dead)


def test_a_batch_job_reads_the_same(spark: SparkSession, tmp_path: Path) -> None:
    story = Story(tmp_path / "log", seed=4, text=False)
    story.write(40)
    frame = spark.read.format("tamis").option("columns", "price,kind").load(str(tmp_path / "log"))
    rows = frame.where("reason is null").collect()
    assert sorted((row["sequence"], row["subscription"]) for row in rows) == sorted(story.pairs)
    assert all(row["kind"] in "abc" for row in rows)
    assert frame.where("reason is not null").count() == len(story.dead)


@pytest.mark.parametrize("shards", [1, 3])
def test_versions_change_nothing_but_the_work(
    spark: SparkSession, tmp_path: Path, shards: int
) -> None:
    """CompiledIndex between batches, from nothing, from the version before, in shards."""
    story = Story(tmp_path / "log", seed=5, text=False)
    versions = Versions(tmp_path / "index")
    counts = []
    for _ in range(3):
        story.write(25)
        made = compile_log(spark, story.log, versions, shards=shards)
        counts.append(made.subscriptions)
        assert (made.refused, len(made.version.shards)) == (0, shards)
        story.write(15)
        _run(spark, story, tmp_path, index=str(tmp_path / "index"))
    assert len(versions.all()) == 3
    assert min(counts) > 0
    assert sorted(_found(spark, tmp_path)) == sorted(story.pairs)


def test_a_wrong_condition_is_reported_and_the_rest_is_compiled(
    spark: SparkSession, tmp_path: Path
) -> None:
    conditions = spark.createDataFrame(
        [(1, "price < 5"), (2, "prise < 5"), (3, "kind = a")], "id long, condition string"
    )
    made = compile_conditions(conditions, Versions(tmp_path / "index"), SCHEMA, shards=2)
    assert (made.subscriptions, made.refused, len(made.reasons)) == (2, 1, 1)
    assert "prise" in made.reasons[0]


def test_what_fails_in_a_task_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", DOCUMENT)
    log.change(changes.subscribe(["low"], ["price < 5"]))
    (segment,) = (tmp_path / "log" / "segments").iterdir()
    segment.write_bytes(segment.read_bytes()[:-100])
    with pytest.raises(SparkError, match=f"the log is damaged: {segment.name}: .* cut") as refused:
        compile_log(spark, log, Versions(tmp_path / "index"), shards=1)
    assert len(str(refused.value).splitlines()) == 1
    assert Versions(tmp_path / "index").latest() is None


def test_a_dataframe_is_matched_with_the_latest_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log.create(tmp_path / "log", DOCUMENT)
    log.change(changes.subscribe(["low", "high", "b"], ["price < 5", "price >= 5", "kind = b"]))
    versions = Versions(tmp_path / "index")
    compile_log(spark, log, versions, shards=2)
    events = spark.createDataFrame([(7, 1, "a"), (8, 9, "b")], "lot long, price long, kind string")
    for subscriptions in (tmp_path / "index", versions.latest()):
        assert subscriptions is not None
        found = events.transform(tamis.spark.match(subscriptions, id="lot")).collect()
        assert sorted((row.lot, row.subscription) for row in found) == [
            (7, "low"), (8, "b"), (8, "high"),
        ]  # fmt: skip
