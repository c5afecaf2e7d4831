"""Lists of structs in Spark: a DataFrame, lines of JSON, a log, and a compiled version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Engine, Schema
from tamis.language import parse
from tamis.model.semantics import satisfies
from tamis.spark.jobs.compile_index import compile_log
from tamis.spark.jobs.match_files import match_files
from tamis.store import Log, changes
from tamis.store.versions import Versions
from tests.integration.spark.streams import run_stream

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "n": "integer",
            "items": {
                "kind": "structs",
                "attributes": {
                    "sku": "text",
                    "qty": "integer",
                    "tags": "text",
                    "at": "timestamp",
                    "lines": {"kind": "structs", "attributes": {"a": "integer"}},
                },
                "multiple": ["tags"],
            },
        }
    }
)
CONDITIONS = {
    "both": "some i in items (i.sku = A1 and i.qty >= 2)",
    "none": "not some i in items (i.sku = A1 and i.qty >= 2)",
    "nested": "n > 3 and some i in items (i.tags = red and some l in i.lines (l.a > 1))",
    "late": "some i in items (i.at > 2026-01-01)",
}
EVENTS: list[dict[str, Any]] = [
    {"n": 0, "items": [{"sku": "A1", "qty": 1}, {"sku": "B2", "qty": 5}]},
    {"n": 1, "items": [{"sku": "A1", "qty": 3}]},
    {"n": 2, "items": [{"at": "2026-02-01T00:00:00Z"}]},
    {"n": 3, "items": []},
    {"n": 4, "items": [{"tags": ["red", "old"], "lines": [{"a": 0}, {"a": 2}]}]},
    {"n": 5, "items": [{"tags": ["red"]}, {"lines": [{"a": 2}]}]},
    {"n": 6},
]
RIGHT = sorted(
    (event["n"], id)
    for event in EVENTS
    for id, text in CONDITIONS.items()
    if satisfies(parse(text, SCHEMA), event, SCHEMA)
)


def _engine() -> Engine:
    engine = Engine(SCHEMA)
    for id, text in CONDITIONS.items():
        engine.subscribe(text, id=id)
    return engine


def test_a_frame_of_arrays_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    assert {id for _, id in RIGHT} == set(CONDITIONS)
    lines = spark.createDataFrame([(json.dumps(each),) for each in EVENTS], ["value"])
    frame = lines.transform(tamis.spark.from_json(SCHEMA))
    assert [row["dead"] for row in frame.collect()] == [None] * len(EVENTS)
    events = frame.drop("dead")
    found = events.transform(tamis.spark.match(_engine(), id="n"))
    assert sorted(tuple(row) for row in found.collect()) == RIGHT
    # The columns give a schema in which the same conditions mean the same.
    imported = Schema.from_spark(events.schema)
    engine = Engine(imported)
    for id, text in CONDITIONS.items():
        engine.subscribe(text, id=id)
    again = events.transform(tamis.spark.match(engine, id="n"))
    assert sorted(tuple(row) for row in again.collect()) == RIGHT


def test_files_against_a_saved_engine(spark: SparkSession, tmp_path: Path) -> None:
    _engine().save(tmp_path / "index")
    (tmp_path / "events").mkdir()
    parquet.write_table(pa.Table.from_pylist(EVENTS), tmp_path / "events" / "a.parquet")
    for trusted in (False, True):
        out = tmp_path / f"out-{trusted}"
        match_files(spark, tmp_path / "events", tmp_path / "index", out, id="n", trusted=trusted)
        found = spark.read.format("tamis_notifications").load(str(out)).collect()
        assert sorted((row["n"], row["subscription"]) for row in found) == RIGHT


def test_a_log_and_its_version(spark: SparkSession, tmp_path: Path) -> None:
    """Half of the subscriptions are in the version, and the others come later."""
    log = Log.create(tmp_path / "log", SCHEMA.to_dict(), ids="text")
    ids = list(CONDITIONS)
    log.change(changes.subscribe(ids[:2], [CONDITIONS[id] for id in ids[:2]]))
    compile_log(spark, log, Versions(tmp_path / "index"), shards=1)
    log.change(changes.subscribe(ids[2:], [CONDITIONS[id] for id in ids[2:]]))
    first = log.publish(pa.table({"json": [json.dumps(each) for each in EVENTS[:4]]})).start
    log.publish(pa.Table.from_pylist(EVENTS[4:]))
    reading = spark.readStream.format("tamis").option("index", str(tmp_path / "index"))
    stream = reading.load(str(log.folder))
    run_stream(stream, tmp_path, sink="tamis_notifications")
    rows = spark.read.format("tamis_notifications").load(str(tmp_path / "found")).collect()
    found = sorted((row["sequence"] - first, row["subscription"]) for row in rows)
    assert found == RIGHT
