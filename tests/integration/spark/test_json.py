"""Lines of JSON to columns: a broken line is a row with a reason, and never a failed task."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Schema
from tamis.errors import SparkError
from tamis.workload import auctions
from tests.integration.spark.streams import run_stream
from tests.loaded import loaded
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type(
        "offer",
        {
            "price": "decimal!",
            "n": "integer",
            "at": "timestamp",
            "tags": "text*",
            "seller.rating": "integer",
            "photo": "opaque",
        },
    )
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
    # An instant is shown in the session's own time, so it is compared as seconds.
    found = events.selectExpr("*", "unix_timestamp(at) as seconds").orderBy("line").collect()
    moment = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp())
    assert [row.dead for row in found] == [
        None,
        "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "event type offer: 'price' is mandatory but the event does not bind it (rule R2)",
        "there is no text",
        None,
    ]
    assert [row.price for row in found] == [3.0, None, None, None, 1.5]
    assert (found[0].seconds, found[0].tags, found[0].seller.rating) == (moment, ["a"], 4)
    assert (found[4].n, found[4].tags, found[4].photo) == (2, ["one"], '{"w": 1}')
    assert found[1].value == "{"


def test_from_text_to_matches(spark: SparkSession, tmp_path: Path) -> None:
    workload = auctions.make(500)
    engine = loaded(workload)
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
    run_stream(found, tmp_path)
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
    priced = lines.withColumnRenamed("line", "price")
    for frame, options, message in (
        (lines, {"column": "valu"}, "no column 'valu'; did you mean 'value'"),
        (lines, {"column": "line"}, "'line' is int, expected JSON as string or binary"),
        (priced, {"keep": "price"}, "two columns 'price'"),
        (lines, {"dead": "price"}, "'price' is an attribute"),
    ):
        with pytest.raises(SparkError, match=message):
            tamis.spark.from_json(SCHEMA, **options)(frame)
