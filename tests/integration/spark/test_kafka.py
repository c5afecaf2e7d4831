"""From a Kafka broker to pairs. `TAMIS_KAFKA=1` asks for it: it fetches 50 MB by Maven.

Spark takes jars when it starts, and the session of the other tests has none: this one is in a
process of its own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import tamis.spark
from tamis import Engine, Schema
from tamis.workload import auctions
from tests import kafka
from tests.integration.spark.streams import run_stream
from tests.loaded import loaded

pytestmark = pytest.mark.skipif(
    not os.environ.get("TAMIS_KAFKA"), reason="TAMIS_KAFKA=1 fetches a broker by Maven"
)

Rows = list[tuple[Any, ...]]
TOPIC = "lots"
LOTS = 600
BROKEN = ["no JSON", '{"nonsense": 1}', ""]


def _start(jars: list[Path]) -> None:
    settings: dict[str, Any] = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.ui.enabled": False,
    }
    tamis.spark.session("local[2,4]", **settings)


def _publish(broker: str, lines: list[tuple[str, str]]) -> None:
    rows = tamis.spark.session().createDataFrame(lines, "key string, value string")
    sink = rows.write.format("kafka").option("kafka.bootstrap.servers", broker)
    sink.option("topic", TOPIC).save()


def _matched(broker: str, folder: Path) -> tuple[Rows, Rows, int]:
    """Read what is new on the topic; all pairs so far, all dead letters, and how many batches."""
    from pyspark.sql import functions

    spark = tamis.spark.session()
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 250)
        .load()
    )
    schema = Schema.load(folder / "schema.yaml")
    lot = functions.col("key").cast("string").alias("lot")
    place = functions.concat_ws("-", "partition", "offset").alias("place")
    events = lines.transform(tamis.spark.from_json(schema, keep=[lot, place]))
    pairs = events.where("dead is null").transform(
        tamis.spark.match(folder / "engine", id="place", keep=["lot"])
    )
    dead = events.where("dead is not null").select("lot", "dead")
    found, batches = [], 0
    for name, frame in {"pairs": pairs, "dead": dead}.items():
        query = run_stream(frame, folder, name)
        batches += len({each["batchId"] for each in query.recentProgress})
        found.append([tuple(row) for row in spark.read.parquet(str(folder / name)).collect()])
    return found[0], found[1], batches


def _expected(engine: Engine, lines: Iterable[tuple[str, str]]) -> Rows:
    good = [(lot, json.loads(line)) for lot, line in lines if line not in BROKEN]
    return sorted((lot, id) for lot, event in good for id in engine.match(event))


def test_from_a_topic_to_pairs(tmp_path: Path) -> None:
    from tamis.model.schemas.document import to_yaml

    workload = auctions.make(500)
    engine = loaded(workload)
    engine.save(tmp_path / "engine")
    (tmp_path / "schema.yaml").write_text(to_yaml(engine.schema), encoding="utf-8")
    bound = [
        {name: value for name, value in event.items() if value is not None}
        for event in workload.events(LOTS).to_pylist()
    ]
    texts = [json.dumps(event, default=lambda time: time.isoformat()) for event in bound]
    lines = [(f"e{at}", text) for at, text in enumerate([*texts[:400], *BROKEN, *texts[400:]])]

    jars = kafka.connector(version("pyspark"))
    print("the connector is", *sorted(each.name for each in jars))
    fresh = multiprocessing.get_context("spawn")
    with (
        kafka.broker() as broker,
        ProcessPoolExecutor(1, fresh, initializer=_start, initargs=(jars,)) as process,
    ):
        seen = 0
        for end in (450, len(lines)):  # and on from the checkpoint
            process.submit(_publish, broker, lines[seen:end]).result()
            seen = end
            pairs, dead, batches = process.submit(_matched, broker, tmp_path).result()
            assert sorted((lot, id) for _, id, lot in pairs) == _expected(engine, lines[:end])
            lots = {lot: place for place, _, lot in pairs}
            assert len(set(lots.values())) == len(lots), "places tell events apart"
            assert sorted(lot for lot, _ in dead) == sorted(
                lot for lot, line in lines[:end] if line in BROKEN
            )
            assert batches >= 2
    assert len(pairs) > 100
    assert all(reason for _, reason in dead)
