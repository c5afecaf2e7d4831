"""Events by which the clauses of a version are laid out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tamis import Engine
from tamis.spark.jobs.compile_shard import LogShardTask, _sample
from tamis.store.changes import subscribe
from tamis.store.log import Log
from tests.schemas import one_type

SCHEMA = one_type("lot", {"price": "integer", "seller.rating": "integer"})


def test_a_log_with_structs_and_texts(tmp_path: Path) -> None:
    """The rating is a field of a column here, and a column with a dot there."""
    log = Log.create(tmp_path / "log", SCHEMA)
    log.publish(pa.table({"price": [1, 2], "seller": [{"rating": 3}, {"rating": 4}]}))
    lines = [json.dumps({"price": n, "seller": {"rating": n}}) for n in (5, 6)]
    log.publish(pa.table({"json": [*lines, "rubbish"]}))
    log.publish(pa.table({"price": [7], "seller.rating": [8]}))
    found = _sample(log, log.end)
    assert found is not None
    assert sorted(found.column_names) == ["price", "seller.rating"]
    assert found.num_rows > 0
    assert found["seller.rating"].null_count == 0


def test_there_may_be_no_events(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    assert _sample(log, log.end) is None


def test_a_log_that_was_trimmed_a_moment_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.store.segment_files.MOST", 2)
    monkeypatch.setattr("tamis.spark.jobs.compile_shard._TAIL", 10)
    log = Log.create(tmp_path / "log", SCHEMA)
    for n in range(20):
        log.publish(pa.table({"price": [n]}))
    assert log.trim(log.end) > 10
    found = _sample(log, log.end)
    assert found is not None
    assert min(found["price"].to_pylist()) >= log.begin


def test_conditions_are_compiled_in_their_languages(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    pattern = '{"price": [{"numeric": ["<", 5]}], "seller": {"rating": [{"exists": true}]}}'
    for id, condition, language in (
        ("ours", "price < 3", None),
        ("theirs", pattern, "eventbridge"),
        ("cloud", "price IN (3, 4)", "cesql"),
        ("wrong", pattern, "tamis"),
    ):
        change = subscribe([id], [condition])
        log.change(change.append_column("language", pa.array([language], pa.string())))
    draft = tmp_path / "draft"
    draft.mkdir()
    task = LogShardTask(str(log.folder), str(draft), 0, log.end, 1, None, None, ())
    (made,) = task.run(0)
    assert (made["subscriptions"], made["refused"]) == (3, 1)
    engine = Engine.open(draft / made["folder"])
    event = {"price": 4, "seller": {"rating": 1}}
    assert sorted(engine.match(event)) == ["cloud", "theirs"]
    (again,) = task._replace(since=log.end, folders=[str(draft / made["folder"])]).run(0)
    assert (again["subscriptions"], again["refused"]) == (3, 1)
