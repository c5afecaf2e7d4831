"""A schema that grows while a stream reads the log; and past events of such a log."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tamis import Engine, Schema, parse
from tamis.errors import EventError
from tamis.model.semantics import satisfies
from tamis.spark.backtest.backtest_job import backtest
from tamis.spark.jobs.compile_index import compile_log
from tamis.spark.stats.event_stats import gather_stats
from tamis.store import Log, Versions, subscribe
from tests.unit.replay.growing_log import CLOSED, OPEN, Account, story_of, told


def test_a_running_stream_follows_the_schema_of_each_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(5)
    log, account = Log.create(tmp_path / "log", OPEN, ids="int64"), Account(OPEN)
    versions = Versions(tmp_path / "index")
    steps = [each for each in [*story_of(rng), *story_of(rng), *story_of(rng)] if each[0] != "trim"]
    told(log, account, steps[:8])
    compile_log(spark, log, versions)
    options = {"index": str(versions.folder), "columns": "n,dest", "name": "growing"}
    stream = spark.readStream.format("tamis").options(**options).load(str(log.folder))
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "found"))
    )
    try:
        for at in range(8, len(steps), 9):
            told(log, account, steps[at : at + 9])
            if at == 26:
                made = compile_log(spark, log, versions).version
                assert Schema.from_dict(made.document["schema"]) == account.schema
            query.processAllAvailable()
    finally:
        query.stop()
    assert account.schema.version > 4
    found = spark.read.parquet(str(tmp_path / "found")).collect()
    pairs = [(row["sequence"], row["subscription"]) for row in found]
    assert len(pairs) == len(set(pairs))
    assert {pair for pair in pairs if pair[1] is not None} == account.pairs
    assert {number for number, id in pairs if id is None} == account.dead
    assert len(account.pairs) > 30
    assert account.dead


def _answers(
    log: Log, conditions: dict[str, str], events: dict[int, dict[str, Any]]
) -> tuple[Counter[str], int]:
    """How many events match each condition, each event as the schema of its number reads it."""
    found: Counter[str] = Counter()
    dead = 0
    for number, given in events.items():
        schema = log.schema_at(number)
        try:
            event = schema.event(given)
        except EventError:
            dead += 1
            continue
        found.update(id for id, text in conditions.items() if satisfies(parse(text), event, WIDER))
    return found, dead


WIDER = (
    Schema.from_dict(CLOSED)
    .grow_domain("airport", {"SEA": "west"})
    .create_attribute("size", "integer")
    .extend_event_type("lot", "size")
)


def test_past_events_are_those_of_their_own_schema(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"n": 1, "dest": "SFO"},
        {"n": 2, "dest": "SEA"},
        {"n": 3, "size": 4},
        {"n": 4},
    ]
    for document, name in ((CLOSED, "closed"), (OPEN, "open")):
        log = Log.create(tmp_path / name, document)
        log.publish(pa.Table.from_pylist(rows, _types))
        wider = Schema.from_dict({**WIDER.to_dict(), "unknown": document.get("unknown", "refuse")})
        assert log.extend(wider) == 4
        log.publish(pa.Table.from_pylist(rows, _types))
        events = dict(enumerate(rows)) | dict(enumerate(rows, 5))
        engine = Engine(Schema.from_dict(document))  # as it was before the extension
        conditions = {"west": "dest <= west", "few": "n < 3", "not": "not dest = SFO"}
        for id, text in conditions.items():
            engine.subscribe(text, id=id)
        right, dead = _answers(log, conditions, events)
        found = backtest(spark, log, engine)
        counts = {row["subscription"]: row["matched"] for row in found.counts.to_pylist()}
        assert counts == right
        assert (found.events, found.dead) == (8, dead)
        assert engine.schema == Schema.from_dict(document)
        stats = gather_stats(spark, log)
        assert (stats.events, stats.dead) == (8 - dead, dead)
        assert dict(stats.attributes["dest"].frequent).keys() == {"SFO", "SEA"}
        assert stats.attributes["size"].bound == 1
        sizes = [each["size"] for each in stats.sample.to_pylist() if each["n"] == 3]
        assert sorted(sizes, key=str) == ([4] if document is CLOSED else [4, None])


_types = pa.schema([("n", pa.int64()), ("dest", pa.string()), ("size", pa.int64())])


def test_a_refused_condition_stays_refused(spark: SparkSession, tmp_path: Path) -> None:
    log, versions = Log.create(tmp_path / "log", CLOSED), Versions(tmp_path / "index")
    log.change(subscribe(["early", "good"], ["size > 3", "n > 3"]))
    assert compile_log(spark, log, versions).refused == 1
    log.extend(WIDER)
    log.change(subscribe(["late"], ["size > 3"]))
    again = compile_log(spark, log, versions)
    assert (again.refused, again.subscriptions) == (1, 2)
    assert Engine.open(again.version.shard_folders[0]).ids() == ["good", "late"]
