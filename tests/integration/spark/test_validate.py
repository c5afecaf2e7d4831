"""Events are separated from invalid rows, each of which has its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Schema
from tamis.errors import EventError, SchemaError, SparkError
from tests.integration.spark.streams import run_stream

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "tags": "text",
            "seller.rating": {"kind": "integer", "low": 0, "high": 5},
        },
        "event_types": {
            "offer": {
                "price": "mandatory",
                "tags": "optional multiple",
                "seller.rating": "optional",
            },
            "notice": {"tags": "mandatory multiple"},
        },
    }
)
COLUMNS = (
    "n int, event_type array<string>, price double, tags array<string>, seller struct<rating: int>"
)
GIVEN: list[tuple[Any, ...]] = [
    (0, ["offer"], 3.0, ["oak"], (5,)),
    (1, ["offer"], None, None, None),
    (2, ["notice"], None, ["x"], None),
    (3, ["notice"], 3.0, ["x"], None),
    (4, ["offer"], float("nan"), None, None),
    (5, ["offer"], 3.0, None, (6,)),
    (6, None, 3.0, None, None),
    (7, ["ofer"], 3.0, None, None),
    (8, ["offer", "notice"], 1.0, ["y"], None),
    (9, ["offer"], 1.0, [], None),
]


def reason(row: tuple[Any, ...]) -> str | None:
    """What the event alone is refused with; NaN is absent in a DataFrame."""
    _, kind, price, tags, seller = row
    price = None if price != price else price
    rating = None if seller is None else seller[0]
    try:
        SCHEMA.event({"event_type": kind, "price": price, "tags": tags, "seller.rating": rating})
    except EventError as why:
        return str(why)
    return None


def test_good_and_bad_are_all_rows(spark: SparkSession) -> None:
    events = spark.createDataFrame(GIVEN, COLUMNS)
    good, bad = tamis.spark.validate(SCHEMA)(events)
    assert good.schema == events.schema
    assert bad.columns == [*events.columns, "reason"]
    wanted = {row[0]: why for row in GIVEN if (why := reason(row)) is not None}
    assert {row.n: row.reason for row in bad.collect()} == wanted
    assert {row.n for row in good.collect()} == {row[0] for row in GIVEN} - wanted.keys()
    assert len(wanted) == 6


def test_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(GIVEN, COLUMNS).write.parquet(str(tmp_path / "events"))
    events = spark.readStream.schema(COLUMNS).parquet(str(tmp_path / "events"))
    counts = {}
    for name, part in zip(("good", "bad"), tamis.spark.validate(SCHEMA)(events), strict=True):
        run_stream(part, tmp_path, name)
        counts[name] = spark.read.parquet(str(tmp_path / name)).count()
    assert counts == {"good": 4, "bad": 6}


def test_what_is_good_can_be_matched(spark: SparkSession) -> None:
    engine = tamis.Engine(SCHEMA)
    engine.subscribe("price < 5", id=1)
    good, _ = tamis.spark.validate(SCHEMA)(spark.createDataFrame(GIVEN, COLUMNS))
    found = good.transform(tamis.spark.match(engine, id="n"))
    assert sorted(row.n for row in found.collect()) == [0, 8, 9]


def test_refusals(spark: SparkSession) -> None:
    events = spark.createDataFrame(GIVEN, COLUMNS)
    with pytest.raises(SparkError, match="a column 'n' already"):
        tamis.spark.validate(SCHEMA, reason="n")(events)
    with pytest.raises(SparkError, match="no column for the attribute 'event_type'"):
        tamis.spark.validate(SCHEMA)(events.drop("event_type"))
    with pytest.raises(SchemaError, match="expected a Schema"):
        tamis.spark.validate({})  # type: ignore[arg-type]
