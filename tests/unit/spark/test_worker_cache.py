"""What a worker process keeps: engines and encoders, each opened once."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from pyspark import TaskContext

from tamis import Engine, Schema, operator
from tamis.errors import SparkError
from tamis.spark.runtime import worker_cache as worker

SCHEMA = Schema.from_dict({"attributes": {"n": "integer"}, "event_types": {"e": {"n": "optional"}}})


def saved(folder: Path, condition: str = "n > 1", replace: bool = False) -> Path:
    engine = Engine(SCHEMA)
    engine.subscribe(condition, id=1)
    engine.save(folder, replace=replace)
    return folder


def test_a_folder_is_opened_once_and_another_in_its_place_anew(tmp_path: Path) -> None:
    folder = saved(tmp_path / "index")
    engine = worker.open_engine(folder)
    assert worker.open_engine(str(folder)) is engine
    saved(folder, "n < 1", replace=True)
    assert worker.open_engine(folder).match({"n": 0}) == [1]
    assert engine.match({"n": 2}) == [1]


def test_an_engine_with_the_same_number_and_time_is_another(tmp_path: Path) -> None:
    """The clock of a file system ticks slowly, and numbers of deleted folders are used again."""
    folder, other = saved(tmp_path / "index"), saved(tmp_path / "other", "n < 1")
    assert worker.open_engine(folder).match({"n": 0}) == []
    before = folder.stat()
    for name in ("data", "manifest"):
        (folder / name).write_bytes((other / name).read_bytes())
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder.stat().st_mtime_ns == before.st_mtime_ns
    assert worker.open_engine(folder).match({"n": 0}) == [1]


def test_few_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All shards of a version and of the one before."""
    monkeypatch.setattr(worker, "_engines", worker.LruCache())
    folders = [saved(tmp_path / f"shard-{number}") for number in range(12)]
    engines = [worker.open_engine(folder) for folder in folders[:6]]
    assert worker.open_engine(folders[5]) is engines[5]
    assert worker.open_engine(folders[0]) is not engines[0]
    engines = [worker.open_engine(folder, shards=6) for folder in folders]
    assert [worker.open_engine(folder, shards=6) for folder in folders] == engines
    more = worker.open_engine(saved(tmp_path / "later"))
    assert worker.open_engine(folders[-1]) is engines[-1]
    assert worker.open_engine(tmp_path / "later") is more
    assert worker.open_engine(folders[0]) is not engines[0], "not for ever"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="a folder that all machines share"):
        worker.open_engine(tmp_path / "nowhere")


def test_operators_travel_as_bytes(tmp_path: Path) -> None:
    @operator(name="isEven", reads=("n",), run="here")
    def is_even(n: int) -> bool:
        return n % 2 == 0

    engine = Engine(SCHEMA, operators=[is_even])
    engine.subscribe("isEven()", id=1)
    engine.save(tmp_path / "index")
    packed = worker.pack_operators([is_even])
    assert worker.pack_operators([is_even]) == packed
    opened = worker.open_engine(tmp_path / "index", packed)
    assert opened.match({"n": 2}) == [1]
    assert worker.open_engine(tmp_path / "index", packed) is opened
    assert worker.pack_operators(()) == b""


def test_an_encoder_is_made_once() -> None:
    document = worker.schema_document(SCHEMA)
    assert worker.schema_encoder(document) is worker.schema_encoder(document)
    assert worker.schema_encoder(document).schema == SCHEMA


def test_a_worker_alone_puts_aside_what_it_has_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes that open an engine decide for themselves what is collected."""
    saved(tmp_path / "a")
    before = gc.get_freeze_count()
    worker.open_engine(tmp_path / "a")
    assert gc.get_freeze_count() == before
    monkeypatch.setattr("pyspark.TaskContext.get", TaskContext)
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    saved(tmp_path / "b")
    try:
        worker.open_engine(tmp_path / "b")
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
