"""Events by which the clauses of a version are laid out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.spark.jobs.compile_shard import _sample
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
