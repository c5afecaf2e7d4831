"""What a task keeps for the next one, and when it must not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

from tamis import Engine, Schema
from tamis.encode.encoder import Encoder
from tamis.replay.event_source import EventChunk, RowLayout
from tamis.replay.pipeline import BatchPace, read_events
from tamis.spark.runtime.worker_cache import open_engine
from tamis.spark.stream import log_task as tasks
from tamis.spark.stream.log_task import LogTask
from tamis.store import Log, subscribe
from tests.schemas import one_type

SCHEMA = one_type("event", {"n": "integer!"})


def _found(log: Log, folder: Path | None = None, sequence: int = 0) -> list[tuple[int, int]]:
    base = None if folder is None else str(folder)
    task = LogTask(str(log.folder), 0, log.end, base, sequence, 0, 1, (), ())
    return [
        (row["sequence"], row["subscription"]) for batch in task.run() for row in batch.to_pylist()
    ]


def _log(folder: Path, condition: str) -> Log:
    log = Log.create(folder, SCHEMA, ids="int64")
    log.change(subscribe([1], [condition]))
    log.publish(pa.table({"n": [1, 5]}))
    return log


def test_a_log_that_was_made_anew_is_another_one(tmp_path: Path) -> None:
    for _ in range(2):
        assert _found(_log(tmp_path / "log", "n < 3")) == [(1, 1)]
        shutil.rmtree(tmp_path / "log")
        assert _found(_log(tmp_path / "log", "n > 3")) == [(2, 1)]
        shutil.rmtree(tmp_path / "log")


def test_a_shard_that_was_made_anew_is_another_one(tmp_path: Path) -> None:
    log = _log(tmp_path / "log", "n > 100")
    for condition, at in (("n < 3", 1), ("n > 3", 2)):
        engine = Engine(Schema.from_dict(SCHEMA))
        engine.subscribe(condition, id=7)
        engine.save(tmp_path / "shard", replace=True)
        assert _found(log, tmp_path / "shard", 1) == [(at, 7)]


def test_few_logs_are_kept(tmp_path: Path) -> None:
    for number in range(tasks._KEPT + 2):
        _found(_log(tmp_path / str(number), "n < 3"))
    assert len(tasks._logs.kept) == tasks._KEPT


def test_a_text_that_is_damaged_is_a_dead_letter() -> None:
    """As of a damaged segment: Arrow calls it text, and it is not."""
    broken = pa.array([b'{"n": 1}', b'{"n": \xa4}'], pa.binary()).view(pa.string())
    chunk = EventChunk(
        np.array([10, 11]), pa.table({"json": broken}), RowLayout(document=json.dumps(SCHEMA))
    )
    (events,) = read_events([chunk], Encoder(Schema.from_dict(SCHEMA)), BatchPace())
    assert events.numbers.tolist() == [10]
    assert events.raw_texts().to_pylist() == ['{"n": \ufffd}']
    ((row, reason),) = events.valid.refused
    assert row == 1
    assert "UTF-8" in reason


def test_an_attribute_that_a_segment_lacks_is_null(tmp_path: Path) -> None:
    schema = one_type("event", {"n": "integer!", "kind": "text"})
    log = Log.create(tmp_path / "log", schema, ids="int64")
    log.change(subscribe([1], ["n < 3"]))
    log.publish(pa.table({"n": [1]}))
    log.publish(pa.table({"n": [2], "kind": ["oak"]}))
    task = LogTask(str(log.folder), 0, log.end, None, 0, 0, 1, (("kind", pa.string()),), ())
    assert [row["kind"] for batch in task.run() for row in batch.to_pylist()] == [None, "oak"]


def test_columns_keep_the_types_that_spark_knows(tmp_path: Path) -> None:
    """A single value may be bare where several are allowed; and they may be allowed only later."""
    schema = one_type("event", {"n": "integer!", "tags": "text*", "kind": "text"})
    log = Log.create(tmp_path / "log", schema, ids="int64")
    log.change(subscribe([1], ["n < 9"]))
    log.publish(pa.table({"n": [1, 2], "tags": ["oak", None], "kind": ["a", None]}))
    log.extend(
        log.schema_at().create_event_type("lot", {"n": "optional", "kind": "optional multiple"})
    )
    types = pa.list_(pa.string())
    log.publish(
        pa.table(
            {
                "event_type": ["event", "lot", "lot"],
                "n": [3, 4, 5],
                "tags": pa.array([["elm", "ash"], [], None], types),
                "kind": pa.array([["b"], ["c", "d"], []], types),
            }
        )
    )
    columns = (("tags", types), ("kind", pa.string()))
    task = LogTask(str(log.folder), 0, log.end, None, 0, 0, 1, columns, ())
    found = [row for batch in task.run() for row in batch.to_pylist()]
    assert [row["tags"] for row in found] == [["oak"], None, ["elm", "ash"], [], None]
    assert [row["kind"] for row in found] == ["a", None, "b", "c", None]


def test_an_attribute_that_did_not_exist_yet_is_null(tmp_path: Path) -> None:
    document = one_type("event", {"n": "integer!"}) | {"unknown": "ignore"}
    log = Log.create(tmp_path / "log", document, ids="int64")
    log.change(subscribe([1], ["n < 9"]))
    log.publish(pa.table({"n": [1], "size": ["big"]}))
    log.extend(
        log.schema_at().create_attribute("size", "integer").extend_event_type("event", "size")
    )
    log.publish(pa.table({"n": [2], "size": [7]}))
    task = LogTask(str(log.folder), 0, log.end, None, 0, 0, 1, (("size", pa.int64()),), ())
    assert [row["size"] for batch in task.run() for row in batch.to_pylist()] == [None, 7]


def test_the_engine_of_a_version_stays_as_it_is(tmp_path: Path) -> None:
    """Other jobs use it: a stream that follows the log has one of its own."""
    log = _log(tmp_path / "log", "n > 100")
    engine = Engine(Schema.from_dict(SCHEMA))
    engine.subscribe("n < 3", id=7)
    engine.save(tmp_path / "shard")
    shared = open_engine(tmp_path / "shard")
    wider = log.schema_at().create_attribute("size", "integer").extend_event_type("event", "size")
    log.extend(wider)
    log.change(subscribe([8], ["size = 4"]))
    log.publish(pa.table({"n": [1], "size": [4]}))
    for _ in range(2):
        assert _found(log, tmp_path / "shard", 1) == [(1, 7), (5, 7), (5, 8)]
        assert open_engine(tmp_path / "shard") is shared
        assert shared.schema == Schema.from_dict(SCHEMA)
