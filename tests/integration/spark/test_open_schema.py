"""Spark without a schema: DataFrames with any columns, and logs with an open schema."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Engine, Schema
from tamis.errors import SparkError
from tamis.spark.jobs.compile_index import compile_log
from tamis.store import Log, Versions, subscribe

LINES = [
    {"action": "opened", "pr": {"n": 7, "labels": [{"name": "bug"}]}},
    {"action": "closed", "pr": {"n": "7"}},
    {"action": None, "pr": {"n": 1.5, "labels": []}},
]
CONDITIONS = {
    "opened": "action = opened",
    "numbers": "pr.n > 1",
    "bugs": "pr.labels.name contains bug",
    "none": "action is null",
}


def test_a_frame_with_any_columns_is_matched(spark: SparkSession) -> None:
    engine = Engine()
    for id, condition in CONDITIONS.items():
        engine.subscribe(condition, id=id)
    frame = spark.createDataFrame(
        [
            (1, "opened", (7.0, [("bug",), ("ui",)])),
            (2, "closed", (0.5, [])),
            (3, None, None),
        ],
        "id int, action string, pr struct<n: double, labels: array<struct<name: string>>>",
    )
    found = frame.transform(tamis.spark.match(engine, id="id")).collect()
    assert sorted((row.id, row.subscription) for row in found) == [
        *[(1, "bugs"), (1, "numbers"), (1, "opened")],
        (3, "none"),
    ]


def test_a_log_with_an_open_schema_is_compiled_and_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log.create(tmp_path / "log", Schema.open())
    log.change(subscribe(list(CONDITIONS)[:2], list(CONDITIONS.values())[:2]))
    compile_log(spark, log, Versions(tmp_path / "index"), shards=2)
    log.change(subscribe(list(CONDITIONS)[2:], list(CONDITIONS.values())[2:]))
    log.publish(pa.table({"json": [*map(json.dumps, LINES), "nonsense"]}))
    read = spark.read.format("tamis").option("index", str(tmp_path / "index"))
    rows = read.load(str(log.folder)).collect()
    assert sorted((row.sequence, row.subscription) for row in rows if row.reason is None) == [
        *[(4, "bugs"), (4, "numbers"), (4, "opened")],
        *[(6, "none"), (6, "numbers")],
    ]
    assert [row.sequence for row in rows if row.reason is not None] == [7]


def test_lines_with_dynamic_attributes_have_no_columns() -> None:
    with pytest.raises(SparkError, match="declare the attributes"):
        tamis.spark.from_json(Schema.open())
