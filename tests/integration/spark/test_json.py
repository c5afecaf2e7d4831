"""Lines of JSON to columns: a broken line is a row with a reason, and never a failed task."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis.spark
from tamis import Engine, Schema
from tamis.errors import SparkError
from tamis.workload import auctions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "n": "integer",
            "at": "timestamp",
            "tags": "text",
            "seller.rating": "integer",
            "photo": "opaque",
        },
        "event_types": {
            "offer": {
                "price": "mandatory",
                "n": "optional",
                "at": "optional",
                "tags": "optional multiple",
                "seller.rating": "optional",
                "photo": "optional",
            }
        },
    }
)


def test_lines_to_columns(spark: SparkSession) -> None:
    lines = spark.createDataFrame(
        [
            (
                1,
                '{"price": 3, "at": "2026-01-31T12:00Z", "tags": ["a"], "seller": {"rating": 4}}',
            ),
            (2, "{"),
            (3, '{"n": 1}'),
            (4, None),
            (5, '{"price": 1.5, "tags": "one", "n": 2.0, "photo": {"w": 1}}'),
        ],
        "line int, value string",
    )
    events = lines.transform(tamis.spark.from_json(SCHEMA, keep=["line", "value"]))
    assert events.columns == [
        *("line", "value", "event_type", "price", "n", "at", "tags", "seller", "photo", "dead")
    ]
    # An instant is told in the session's own time, so it is compared as seconds.
    told = events.selectExpr("*", "unix_timestamp(at) as seconds").orderBy("line").collect()
    moment = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp())
    assert [row.dead for row in told] == [
        None,
        "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "event type offer: 'price' is mandatory but the event does not bind it (rule R2)",
        "there is no text",
        None,
    ]
    assert [row.price for row in told] == [3.0, None, None, None, 1.5]
    assert (told[0].seconds, told[0].tags, told[0].seller.rating) == (moment, ["a"], 4)
    assert (told[4].n, told[4].tags, told[4].photo) == (2, ["one"], '{"w": 1}')
    assert told[1].value == "{"


def test_from_text_to_matches(spark: SparkSession, tmp_path: Path) -> None:
    workload = auctions.make(500)
    engine = Engine(Schema.from_dict(workload.schema))
    engine.subscribe_table(workload.subscriptions)
    events = workload.events(800)
    texts = [
        json.dumps({"value": json.dumps(each, default=datetime.isoformat), "lot": row})
        for row, each in enumerate(events.to_pylist())
    ]
    texts[400:400] = [json.dumps({"value": "no event", "lot": -1})]
    (tmp_path / "lines").mkdir()
    for part, first in enumerate(range(0, len(texts), 300)):
        chosen = "\n".join(texts[first : first + 300])
        (tmp_path / "lines" / f"{part}.json").write_text(chosen, encoding="utf-8")
    read = spark.readStream.schema("lot long, value string").json(str(tmp_path / "lines"))
    parsed = read.transform(tamis.spark.from_json(engine.schema, keep="lot"))
    found = parsed.where("dead is null").transform(tamis.spark.match(engine, id="lot"))
    query = (
        found.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "found"))
    )
    query.awaitTermination()
    answer = engine.match_batch(events).to_arrow()
    wanted = zip(answer["event"].to_pylist(), answer["subscription"].to_pylist(), strict=True)
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "found")).collect())) == sorted(
        wanted
    )


def test_bytes_are_read_as_utf8(spark: SparkSession) -> None:
    lines = spark.createDataFrame(
        [(1, '{"price": 1, "tags": ["é"]}'.encode()), (2, b'{"price": 1, "tags": ["\xff"]}')],
        "line int, body binary",
    )
    events = lines.transform(tamis.spark.from_json(SCHEMA, "body", keep="line", dead="why"))
    one, two = events.orderBy("line").collect()
    assert (one.tags, one.why) == (["é"], None)
    assert (two.tags, two.why) == (None, "not UTF-8: invalid start byte at byte 23")


def test_refusals(spark: SparkSession) -> None:
    lines = spark.createDataFrame([(1, "{}")], "line int, value string")
    with pytest.raises(SparkError, match="no column 'valu'; did you mean 'value'"):
        lines.transform(tamis.spark.from_json(SCHEMA, "valu"))
    with pytest.raises(SparkError, match="'line' is int, expected JSON as string or binary"):
        lines.transform(tamis.spark.from_json(SCHEMA, "line"))
    with pytest.raises(SparkError, match="two columns 'price'"):
        lines.withColumnRenamed("line", "price").transform(
            tamis.spark.from_json(SCHEMA, keep="price")
        )
    with pytest.raises(SparkError, match="'price' is an attribute"):
        tamis.spark.from_json(SCHEMA, dead="price")
