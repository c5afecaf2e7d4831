"""Matching in Spark gives what the engine gives, row for row, in batch and in a stream."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tamis.spark
from tamis import Engine, Schema, TamisError, operator
from tamis.errors import SparkError
from tests.integration.spark.streams import run_stream
from tests.integration.spark.workload_files import OFFERS, WORKLOADS, Rows, expected, written
from tests.loaded import loaded

EVENTS = 1_500
FILES = 3


def rows(frame: DataFrame) -> Rows:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("name", WORKLOADS)
def test_answers_are_those_of_the_engine(name: str, spark: SparkSession, tmp_path: Path) -> None:
    workload = WORKLOADS[name]()
    engine = loaded(workload)
    tables = written(workload, tmp_path / "events", EVENTS, FILES)
    wanted = sorted((f"e{event}", id) for event, id in expected(engine, tables))
    assert wanted
    engine.save(tmp_path / "index")
    matched = tamis.spark.match(tmp_path / "index", id="lot")

    batch = spark.read.parquet(str(tmp_path / "events"))
    assert rows(batch.transform(matched)) == wanted

    reading = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1)
    events = reading.parquet(str(tmp_path / "events"))
    stream = run_stream(events.transform(matched), tmp_path)
    assert rows(spark.read.parquet(str(tmp_path / "found"))) == wanted
    assert len({each["batchId"] for each in stream.recentProgress}) == FILES


def offers(spark: SparkSession, *given: tuple[Any, ...]) -> DataFrame:
    kinds = "lot int, price double, tags array<string>, seller struct<rating: int, name: string>"
    return spark.createDataFrame(list(given), kinds)


def bargains() -> Engine:
    engine = Engine(OFFERS)
    engine.subscribe("price < 5", id="cheap")
    engine.subscribe('tags = "oak" and seller.rating >= 4', id="oak")
    return engine


def test_the_columns_asked_for_are_kept(spark: SparkSession) -> None:
    from pyspark.sql import functions

    events = offers(spark, (1, 3.0, ["oak"], (5, "Ann")), (2, 9.0, None, None))
    found = events.transform(
        tamis.spark.match(
            bargains(), id="lot", keep=["price", functions.col("seller.name").alias("who")]
        )
    )
    assert found.columns == ["lot", "subscription", "price", "who"]
    assert found.schema["lot"].dataType == events.schema["lot"].dataType
    assert rows(found) == [(1, "cheap", 3.0, "Ann"), (1, "oak", 3.0, "Ann")]


def test_dotted_columns_are_attributes_too(spark: SparkSession) -> None:
    given = spark.createDataFrame([(1, 9.0, ["oak"], 4)], ["lot", "price", "tags", "seller.rating"])
    assert rows(given.transform(tamis.spark.match(bargains(), id="lot"))) == [(1, "oak")]


def test_names_that_spark_does_not_tell_apart(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(3.0, 1, 2)], "price double, Price int, lot int")
    for keep in ([], ["Price"]):
        with pytest.raises(SparkError, match="columns 'price' and 'Price' have one name for Spark"):
            tamis.spark.match(bargains(), id="lot", keep=keep)(frame)
    with pytest.raises(SparkError, match="'Price' have one name"):
        tamis.spark.validate(OFFERS)(frame)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = tamis.spark.match(bargains(), id="lot", keep=["Price"])(frame)
        assert rows(found) == [(2, "cheap", 1)]
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


def test_an_engine_is_taken_as_it_is_when_it_is_given(spark: SparkSession) -> None:
    engine = bargains()
    matched = tamis.spark.match(engine, id="lot")
    engine.unsubscribe("cheap")
    assert rows(offers(spark, (1, 3.0, None, None)).transform(matched)) == [(1, "cheap")]


def test_conditions_may_be_a_dataframe(spark: SparkSession) -> None:
    conditions = spark.createDataFrame(
        [(7, "price < 5"), (8, "price > 5")], "id long, condition string"
    )
    matched = tamis.spark.match(conditions, schema=OFFERS, id="lot")
    assert rows(offers(spark, (1, 3.0, None, None), (2, 6.0, None, None)).transform(matched)) == [
        (1, 7),
        (2, 8),
    ]


def test_operators_go_along(spark: SparkSession) -> None:
    @operator(name="isRound", reads=("price",), run="here")
    def is_round(price: float) -> bool:
        return price == int(price)

    engine = Engine(OFFERS, operators=[is_round])
    engine.subscribe("isRound()", id=1)
    events = offers(spark, (1, 3.0, None, None), (2, 3.5, None, None))
    assert rows(events.transform(tamis.spark.match(engine, id="lot"))) == [(1, 1)]


def test_a_bad_event_fails_the_job_with_its_reason_or_is_left_out(spark: SparkSession) -> None:
    events = offers(spark, (1, 3.0, None, None), (2, None, None, None), (3, 4.0, None, None))
    with pytest.raises(Exception, match=r"lot 2: event type offer: 'price' is mandatory"):
        events.transform(tamis.spark.match(bargains(), id="lot")).collect()
    skipping = tamis.spark.match(bargains(), id="lot", bad="skip")
    assert rows(events.transform(skipping)) == [(1, "cheap"), (3, "cheap")]


def test_nan_is_absent_unless_it_is_refused(spark: SparkSession) -> None:
    events = offers(spark, (1, 4.0, None, None), (2, math.nan, None, None))
    engine = Engine(Schema.from_dict({"attributes": {"price": "decimal", "lot": "integer"}}))
    engine.subscribe("price exists", id="priced")
    engine.subscribe("price missing", id="free")
    matched = tamis.spark.match(engine, id="lot")
    assert rows(events.transform(matched)) == [(1, "priced"), (2, "free")]
    refusing = tamis.spark.match(engine, id="lot", missing="refuse", bad="skip")
    assert rows(events.transform(refusing)) == [(1, "priced")]
    good, bad = tamis.spark.validate(engine.schema)(events)
    assert (good.count(), bad.count()) == (2, 0)
    good, bad = tamis.spark.validate(engine.schema, missing="refuse")(events)
    assert [row["lot"] for row in bad.collect()] == [2]
    with pytest.raises(TamisError, match="missing is one of 'absent', 'refuse', got 'drop'"):
        tamis.spark.match(engine, id="lot", missing="drop")


def test_no_events_and_no_matches(spark: SparkSession) -> None:
    matched = tamis.spark.match(bargains(), id="lot")
    assert rows(offers(spark, (1, 50.0, None, None)).where("lot > 1").transform(matched)) == []
    assert rows(offers(spark, (1, 50.0, None, None)).transform(matched)) == []


def test_refusals_come_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    events = offers(spark, (1, 3.0, None, None))
    renamed = events.withColumnRenamed("lot", "subscription")
    engine = bargains()
    frames: list[tuple[DataFrame, dict[str, Any], str]] = [
        (events, {}, r"no column 'event_id' .* match\(…, id='lot'\)"),
        (events, {"id": "lot", "keep": "prise"}, "no column 'prise'; did you mean 'price'"),
        (renamed, {"id": "subscription"}, "two columns 'subscription'"),
        (events.drop("price"), {"id": "lot"}, "no column for the attribute 'price'"),
    ]
    for frame, options, message in frames:
        with pytest.raises(SparkError, match=message):
            frame.transform(tamis.spark.match(engine, **options))
    subscriptions: list[tuple[Any, dict[str, Any], str]] = [
        (tmp_path / "nowhere", {}, "no folder"),
        (engine, {"id": None}, "has to be given"),
        (engine, {"bad": "ignore"}, "'raise', 'skip'"),
        (3, {}, "got int"),
        (events, {}, "need the schema"),
        (events, {"schema": OFFERS}, "a column 'id'"),
    ]
    for given, options, message in subscriptions:
        with pytest.raises(SparkError, match=message):
            tamis.spark.match(given, **options)
