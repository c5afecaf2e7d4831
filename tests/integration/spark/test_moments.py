"""`now` on Spark: the time of the log, a column, or the moment of the call."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Engine, Schema, parse
from tamis.errors import SparkError
from tamis.model.semantics import satisfies
from tamis.model.times.moments import moment_text
from tamis.replay.event_source import RowLayout
from tamis.spark.backtest.backtest_job import backtest
from tamis.spark.frames.match_frame import FrameTask
from tamis.spark.jobs.compile_index import compile_log
from tamis.spark.jobs.match_files import match_files
from tamis.store import Log, Versions, subscribe

pytestmark = pytest.mark.slow

SCHEMA = Schema.from_dict({"attributes": {"at": "timestamp", "until": "timestamp"}})
CONDITIONS = ["at > now - 1h", "at < now and until > now", "@until - now < now - @at"]
BEGIN, HOUR = 4_000_000_000_000_000, 3_600_000_000
NEAR = [-2 * HOUR, -HOUR, -HOUR + 1, -1, 0, 1, HOUR]


def written(moment: int) -> dict[str, str]:
    at = NEAR[moment // 7 % 7]
    return {"at": moment_text(moment + at), "until": moment_text(moment + NEAR[moment % 7])}


def expected(rows: list[tuple[int, dict[str, str], int]], live: dict[str, str]) -> set[tuple]:  # type: ignore[type-arg]
    return {
        (number, id)
        for number, event, moment in rows
        for id, text in live.items()
        if satisfies(parse(text), event, SCHEMA, now=moment_text(moment))
    }


def test_a_log_has_its_own_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 3)
    log, versions = Log.create(tmp_path / "log", SCHEMA), Versions(tmp_path / "index")
    rows: list[tuple[int, dict[str, str], int]] = []
    right: set[tuple[int, str]] = set()
    live: dict[str, str] = {}
    for step, text in enumerate(CONDITIONS):
        live[str(step)] = text
        log.change(subscribe([str(step)], [text]))
        if step == 1:
            compile_log(spark, log, versions, shards=2)
        for at in range(7):
            moment = BEGIN + step * 8 + at
            first = log.append(
                events=pa.table({"json": [json.dumps(written(moment + 7 * n)) for n in range(7)]}),
                moment=moment,
            ).events.start
            rows = [(first + n, written(moment + 7 * n), moment) for n in range(7)]
            right |= expected(rows, live)
    read = spark.read.format("tamis").option("index", str(versions.folder))
    for _ in range(2):
        found = read.load(str(log.folder)).collect()
        assert {row.reason for row in found} == {None}
        assert {(row.sequence, row.subscription) for row in found} == right
        assert log.compact(log.end) >= 0
    assert len(right) > 50
    wanted = Engine(SCHEMA)
    wanted.subscribe(CONDITIONS[0], id="fresh")
    past = backtest(spark, log, wanted, samples=0)
    assert past.matched == len({number for number, id in _all(log) if id == "fresh"})


def _all(log: Log) -> set[tuple[int, str]]:
    from tamis.store.pack import moments

    rows = [
        (first + at, json.loads(text), int(moment))
        for first, table in log.events(0)
        for at, (text, moment) in enumerate(
            zip(table["json"].to_pylist(), moments(table), strict=True)
        )
    ]
    return expected(rows, {"fresh": CONDITIONS[0]})


def test_frames_and_files(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(SCHEMA)
    for id, text in enumerate(CONDITIONS):
        engine.subscribe(text, id=str(id))
    moments = [BEGIN + at for at in range(49)]
    times = [datetime.fromisoformat(moment_text(each)) for each in moments]
    events = [written(each) for each in moments]
    table = pa.table(
        {
            "number": list(range(49)),
            "arrived": pa.array([*times[:-1], None], pa.timestamp("us", "UTC")),
            **{
                name: pa.array(
                    [datetime.fromisoformat(each[name]) for each in events],
                    pa.timestamp("us", "UTC"),
                )
                for name in ("at", "until")
            },
        }
    )
    (tmp_path / "events").mkdir()
    parquet.write_table(table, tmp_path / "events" / "one.parquet")
    frame = spark.read.parquet(str(tmp_path / "events"))
    live = {str(id): text for id, text in enumerate(CONDITIONS)}

    def pairs(now: str | datetime | None) -> set[tuple[int, str]]:
        matched = frame.transform(tamis.spark.match(engine, id="number", now=now))
        return {(row.number, row.subscription) for row in matched.collect()}

    by_column = expected(list(zip(range(48), events, moments, strict=False)), live)
    assert pairs("arrived") == by_column  # the last event has no moment
    fixed = BEGIN + HOUR
    at_once = expected([(n, each, fixed) for n, each in enumerate(events)], live)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=fixed)
    assert pairs(moment) == at_once != by_column
    assert len(pairs(None)) == 49  # all of them are in the future
    with pytest.raises(SparkError, match="the column for now is bigint"):
        pairs("number")
    engine.save(tmp_path / "engine")
    task = FrameTask((str(tmp_path / "engine"),), b"", RowLayout(), (), True, "raise", None)
    with pytest.raises(SparkError, match="a stream has no moment"):
        list(task.run(iter(())))

    counted = match_files(
        spark, str(tmp_path / "events"), tmp_path / "engine", now=moment_text(fixed)
    )
    assert counted.pairs == len(at_once)
    past = backtest(spark, str(tmp_path / "events"), engine, time="arrived", samples=0)
    assert (past.pairs, past.dead) == (len(by_column), 0)
    for time in (None, "number"):
        with pytest.raises(SparkError, match="a condition mentions now"):
            backtest(spark, str(tmp_path / "events"), engine, time=time, samples=0)
