"""The session of jobs: the active one where there is one, and never a second."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tamis.spark
from tamis.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_active_session_is_used(spark: SparkSession) -> None:
    assert tamis.spark.session() is spark
    assert tamis.spark.session("local[2,4]") is spark
    for number in (3, 2):
        settings: dict[str, Any] = {"spark.sql.shuffle.partitions": number}
        tamis.spark.session(**settings)
        assert spark.conf.get("spark.sql.shuffle.partitions") == str(number)


def test_another_master_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match=r"a session on local\[2,4\] already"):
        tamis.spark.session("local[1]")


def test_without_one_it_is_started_quietly() -> None:
    code = (
        "import tamis.spark, sys\n"
        "spark = tamis.spark.session(**{'spark.ui.enabled': False})\n"
        "assert spark.sparkContext.master.endswith(',4]')\n"
        "print(spark.range(3).count())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "3"
    assert "log level" not in ran.stderr


_CONNECT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").getOrCreate()
import tamis.spark
from tamis import Engine, Schema
assert tamis.spark.session() is spark
uses = {"price": "mandatory"}
schema = Schema.from_dict({"attributes": {"price": "decimal"}, "event_types": {"offer": uses}})
engine = Engine(schema)
engine.subscribe("price < 5", id="cheap")
lines = spark.createDataFrame([(1, '{"price": 2}'), (2, "x"), (3, "{}")], "lot int, value string")
events = lines.transform(tamis.spark.from_json(schema, keep="lot"))
good, bad = tamis.spark.validate(schema)(events.select("lot", "price"))
found = good.transform(tamis.spark.match(engine, id="lot"))
print([tuple(row) for row in found.collect()], sorted(row.lot for row in bad.collect()))
"""


def test_all_of_it_works_through_spark_connect() -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'pyspark[connect]'")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, "-c", _CONNECT],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert ran.stdout.strip().endswith("[(1, 'cheap')] [2, 3]"), ran.stderr[-2000:]
