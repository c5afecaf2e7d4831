"""What a task keeps for the next one, and when it must not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa

from tamis import Engine, Schema
from tamis.replay.live_subscriptions import Live
from tamis.spark.stream import log_task as tasks
from tamis.spark.stream.log_task import Range, answered
from tamis.store import Log, subscribe

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}


def _found(log: Log, folder: Path | None = None, sequence: int = 0) -> list[tuple[int, int]]:
    base = None if folder is None else str(folder)
    part = Range(str(log.folder), 0, log.end, base, sequence, 0, 1, (), ())
    return [
        (row["sequence"], row["subscription"])
        for batch in answered(part)
        for row in batch.to_pylist()
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
    assert len(tasks._logs) == tasks._KEPT


def test_a_text_that_is_none_any_more_is_a_dead_letter() -> None:
    """As of a damaged segment: Arrow calls it text, and it is not."""
    broken = pa.array([b'{"n": 1}', b'{"n": \xa4}'], pa.binary()).view(pa.string())
    live = Live(Schema.from_dict(SCHEMA), "int64")
    some = tasks._Some(pa.table({"json": broken}), 10, json.dumps(SCHEMA))
    (row,) = some.dead_letters(live, ()).to_pylist()
    assert (row["sequence"], row["raw"]) == (11, '{"n": \ufffd}')
    assert "UTF-8" in row["reason"]
