"""Files of events against folders of subscriptions: the engine's answers, row for row."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tamis import Engine, Schema
from tamis.errors import SparkError
from tamis.replay.manifests import manifests
from tamis.spark.jobs import match_task as file_tasks
from tamis.spark.jobs.compile_index import compile_conditions
from tamis.spark.jobs.match_files import match_files, read_files
from tamis.store.versions import Versions
from tamis.workload import sparse
from tamis.workload.tables import conditions
from tests.integration.spark.workload_files import WORKLOADS, Rows, expected, written
from tests.loaded import loaded
from tests.schemas import one_type

ALL = WORKLOADS | {"sparse": lambda: sparse.make(1_000, attributes=200)}
EVENTS = 3_000
SCHEMA = Schema.from_dict(
    one_type(
        "offer", {"price": "decimal!", "tags": "text*", "seller.rating": "integer", "n": "text!"}
    )
)


pytestmark = pytest.mark.usefixtures("small_shares")


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def notified(out: Path, folder: str = "notifications") -> pa.Table:
    """All rows of the parts that manifests name."""
    named = [
        part["name"]
        for manifest in manifests(out)
        for part in manifest["parts"]
        if part["folder"] == folder
    ]
    assert set(named) == names(out / folder)
    return pa.concat_tables([parquet.read_table(out / folder / name) for name in named])


def pairs_of(out: Path) -> Rows:
    table = notified(out)
    columns = [table[name].to_pylist() for name in table.column_names[:2]]
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("name", ALL)
def test_answers_are_those_of_the_engine(name: str, spark: SparkSession, tmp_path: Path) -> None:
    workload = ALL[name]()
    engine = loaded(workload)
    tables = written(workload, tmp_path / "events", EVENTS)
    wanted = expected(engine, tables)
    assert wanted
    engine.save(tmp_path / "engine")
    done = match_files(spark, tmp_path / "events", tmp_path / "engine", tmp_path / "out")
    assert pairs_of(tmp_path / "out") == wanted
    assert notified(tmp_path / "out").column_names == ["sequence", "subscription"]
    counts = (EVENTS, len({event for event, _ in wanted}), len(wanted), 0)
    assert done[:4] == counts
    assert done.tasks > 3
    assert names(tmp_path / "out") == {"manifests", "notifications"}

    for trusted in (False, True):
        only = match_files(spark, tmp_path / "events", tmp_path / "engine", trusted=trusted)
        assert only[:4] == counts
    assert read_files(spark, tmp_path / "events", engine.schema).events == EVENTS
    # Spark reads the parts as well.
    frame = spark.read.format("tamis_notifications").load(str(tmp_path / "out"))
    assert frame.count() == len(wanted)
    assert spark.read.parquet(str(tmp_path / "out" / "notifications")).count() == len(wanted)


def test_shards_of_a_version(spark: SparkSession, tmp_path: Path) -> None:
    workload = WORKLOADS["TO W4"]()
    engine = loaded(workload)
    wanted = expected(engine, written(workload, tmp_path / "events", EVENTS))
    frame = spark.createDataFrame(
        pa.table(
            {"id": workload.subscriptions["id"], "condition": conditions(workload.subscriptions)}
        )
    )
    versions = Versions(tmp_path / "index")
    version = compile_conditions(frame, versions, engine.schema, shards=3).version
    done = match_files(spark, tmp_path / "events", tmp_path / "index", tmp_path / "out")
    assert pairs_of(tmp_path / "out") == wanted
    assert done[:4] == (EVENTS, len({event for event, _ in wanted}), len(wanted), 0)
    assert match_files(spark, tmp_path / "events", version)[:4] == done[:4]


def offers(folder: Path) -> Path:
    folder.mkdir()
    table = pa.table(
        {
            "lot": ["a", "b", "c", "d"],
            "price": [3.0, None, 9.0, 4.0],
            "tags": [["oak"], None, ["oak", "old"], None],
            "seller": [{"rating": 5, "name": "Ann"}, None, {"rating": 3, "name": "Ben"}, None],
            "n": pa.array(["x", "y", "z", None]).dictionary_encode(),
        }
    )
    parquet.write_table(table, folder / "offers.parquet")
    return folder


def bargains(folder: Path) -> Path:
    engine = Engine(SCHEMA)
    engine.subscribe("price < 5", id="cheap")
    engine.subscribe('tags = "oak" and seller.rating >= 3', id="oak")
    engine.save(folder)
    return folder


def test_dead_letters_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    events, engine = offers(tmp_path / "events"), bargains(tmp_path / "engine")
    done = match_files(
        spark, events, engine, tmp_path / "out", id="lot", columns=["price", "seller"]
    )
    assert done[:4] == (4, 2, 3, 2)
    found = notified(tmp_path / "out").sort_by(
        [("lot", "ascending"), ("subscription", "ascending")]
    )
    ann, ben = {"rating": 5, "name": "Ann"}, {"rating": 3, "name": "Ben"}
    assert found.to_pylist() == [
        {"lot": "a", "subscription": "cheap", "price": 3.0, "seller": ann},
        {"lot": "a", "subscription": "oak", "price": 3.0, "seller": ann},
        {"lot": "c", "subscription": "oak", "price": 9.0, "seller": ben},
    ]
    dead = notified(tmp_path / "out", "dead").sort_by("lot").to_pylist()
    assert [(each["lot"], each["reason"]) for each in dead] == [
        ("b", "event type offer: 'price' is mandatory but the event does not bind it (rule R2)"),
        ("d", "event type offer: 'n' is mandatory but the event does not bind it (rule R2)"),
    ]
    assert '"n": "y"' in dead[0]["raw"]
    # Who trusts the events does not look at what nobody asks for.
    assert match_files(spark, events, engine, trusted=True)[:4] == (4, 3, 4, 0)


def test_a_folder_that_holds_notifications_is_left_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    events, engine = offers(tmp_path / "events"), bargains(tmp_path / "engine")
    match_files(spark, events, engine, tmp_path / "out", id="lot")
    with pytest.raises(SparkError, match="holds notifications already"):
        match_files(spark, events, engine, tmp_path / "out", id="lot")
    match_files(spark, events, engine, tmp_path / "out", id="lot", append=True)
    assert len(notified(tmp_path / "out")) == 6
    for path in (tmp_path / "events").iterdir():
        data = bytearray(path.read_bytes())
        data[4:60] = bytes(56)  # the pages, not the last bytes
        (path.parent / "worse.parquet").write_bytes(bytes(data))
    with pytest.raises(SparkError):
        match_files(spark, events, engine, tmp_path / "failed", id="lot")
    assert not any(path.is_file() for path in (tmp_path / "failed").rglob("*"))


def test_a_task_that_is_tried_again_does_no_harm(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = WORKLOADS["LS"]()
    engine = loaded(workload)
    wanted = expected(engine, written(workload, tmp_path / "events", EVENTS))
    engine.save(tmp_path / "engine")
    failed = tmp_path / "failed"
    run = file_tasks.MatchTask.run

    def fails_once(self: Any, number: int) -> Any:
        yield from run(self, number)  # after its parts were closed
        if not failed.exists():
            failed.touch()
            raise RuntimeError("the worker is gone")

    monkeypatch.setattr(file_tasks.MatchTask, "run", fails_once)
    done = _by_value(spark, tmp_path)
    assert failed.exists()
    assert done.pairs == len(wanted)
    named = {part["name"] for each in manifests(tmp_path / "out") for part in each["parts"]}
    there = names(tmp_path / "out" / "notifications")
    assert len(there - named) == 1  # a leftover, for `sweep`
    for name in there - named:
        (tmp_path / "out" / "notifications" / name).unlink()
    assert pairs_of(tmp_path / "out") == wanted


def _by_value(spark: SparkSession, tmp_path: Path) -> Any:
    """With code that workers do not import, but are sent."""
    cloudpickle: Any = import_module("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(file_tasks)
    try:
        return match_files(spark, tmp_path / "events", tmp_path / "engine", tmp_path / "out")
    finally:
        cloudpickle.unregister_pickle_by_value(file_tasks)


def test_progress_and_columns_that_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    events, engine = offers(tmp_path / "events"), bargains(tmp_path / "engine")
    seen: list[tuple[int, int]] = []
    match_files(spark, events, engine, progress=lambda *steps: seen.append(steps))
    assert seen[-1] == (1, 1)
    with pytest.raises(SparkError, match="there is no column 'lott'; did you mean 'lot'"):
        match_files(spark, events, engine, id="lott")
    with pytest.raises(SparkError, match="two columns 'lot'"):
        match_files(spark, events, engine, id="lot", columns=["lot"])
    parquet.write_table(pa.table({"price": ["much"], "n": ["x"]}), events / "worse.parquet")
    with pytest.raises(SparkError, match=r"worse\.parquet: the column 'price' is string"):
        match_files(spark, events, engine)


def test_parts_of_somebody_who_was_killed_go(spark: SparkSession, tmp_path: Path) -> None:
    """Who reads the folder without its manifests would find their pairs twice."""
    workload = WORKLOADS["LS"]()
    engine = loaded(workload)
    wanted = expected(engine, written(workload, tmp_path / "events", EVENTS))
    engine.save(tmp_path / "engine")
    left = tmp_path / "out" / "notifications" / "part-killed.parquet"
    left.parent.mkdir(parents=True)
    parquet.write_table(pa.table({"sequence": [1], "subscription": [1]}), left)
    done = _by_value(spark, tmp_path)
    assert done.pairs == len(wanted)
    assert not left.exists()
    assert parquet.read_table(left.parent).num_rows == done.pairs
