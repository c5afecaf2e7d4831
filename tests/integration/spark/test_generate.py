"""Workloads as parquet, and the way from there: generate, compile, match, as commands."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet
from pyspark.sql import SparkSession

from tamis import Engine, Schema
from tamis.cli.spark import generate as generate_command
from tamis.cli.spark.generate import draw
from tamis.replay.manifests import manifests
from tamis.spark.jobs.generate_tables import Draw, TableFile, generate, table_files
from tamis.store import Log, subscribe
from tamis.workload import VARIANTS, lesubscribe, make_variant
from tests.unit.cli.calls import Capture, refused, run


def numbered() -> Draw:
    """A closure: workers cannot import tests."""
    return lambda file: pa.table({"n": list(range(file.first, file.first + file.rows))})


def test_a_table_in_pieces(spark: SparkSession, tmp_path: Path) -> None:
    wanted = [*table_files("a", 1_000, 4), *table_files("b", 0, 2)]
    made = generate(spark, wanted, numbered(), tmp_path)
    assert made.rows == {"a": 1_000, "b": 0}
    assert made.files == 5
    assert parquet.read_table(tmp_path / "a")["n"].to_pylist() == list(range(1_000))
    assert parquet.read_table(tmp_path / "b").column_names == ["n"]
    before = (tmp_path / "a" / "part-00002.parquet").read_bytes()
    generate(spark, wanted, numbered(), tmp_path)  # as when a task is tried again
    assert (tmp_path / "a" / "part-00002.parquet").read_bytes() == before
    assert {each.name for each in (tmp_path / "a").iterdir()} == {each.name for each in wanted[:4]}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_workload_can_be_drawn_in_pieces(name: str) -> None:
    """Events and subscriptions of all files fit the one schema, and each other."""
    whole = generate_command._size_if_tied(name, 300)
    engine = Engine(Schema.from_dict(generate_command._base(name, 1, whole).schema))
    for file in table_files("subscriptions", 300, 3):
        engine.subscribe_table(draw(name, 1, whole, file))
    assert len(engine) == 300
    tables = [draw(name, 1, whole, file) for file in table_files("events", 400, 2)]
    ids = [id for table in tables for id in table["event_id"].to_pylist()]
    assert ids == list(range(400))
    assert not tables[0].equals(tables[1])
    assert tables[1].equals(draw(name, 1, whole, table_files("events", 400, 2)[1]))
    assert not tables[0].equals(draw(name, 2, whole, table_files("events", 400, 2)[0]))
    for table in tables:
        engine.match_batch(table.drop_columns("event_id"))
    empty = draw(name, 1, whole, table_files("subscriptions", 0, 1)[0])
    assert empty.schema.equals(draw(name, 1, whole, TableFile("subscriptions", 0, 0, 1)).schema)


def test_from_a_workload_to_notifications(
    spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    there = tmp_path / "data"
    code = run(
        *("spark", "generate", "lesubscribe", "--events", "2e3", "--subscriptions", "500"),
        *("--files", "2", "--out", str(there)),
    )
    said = capsys.readouterr().out
    assert code == 0
    assert "2,000 events" in said
    assert "500 subscriptions" in said
    assert json.loads((there / "workload.json").read_text(encoding="utf-8"))["seed"] == 1

    code = run(
        *("spark", "compile", "--conditions", str(there / "subscriptions")),
        *("--schema", str(there / "schema.yaml"), "--index", str(there / "index")),
    )
    assert code == 0
    assert "500 subscriptions in 1 shard," in capsys.readouterr().out

    matching = ("spark", "match", "--events", str(there / "events"), "--subscriptions")
    code = run(*matching, str(there / "index"), "--out", str(there / "out"), "--id", "event_id")
    assert code == 0
    engine = Engine(Schema.load(there / "schema.yaml"))
    engine.subscribe_table(parquet.read_table(there / "subscriptions"))
    events = parquet.read_table(there / "events").drop_columns("event_id")
    wanted = engine.match_batch(events).to_arrow().rename_columns(["event_id", "subscription"])
    order = [(name, "ascending") for name in wanted.column_names]
    found = parquet.read_table(there / "out" / "notifications").sort_by(order)
    assert found.equals(wanted.sort_by(order).cast(found.schema))  # which says: never null
    said = capsys.readouterr().out
    matched = pc.count_distinct(wanted["event_id"]).as_py()
    assert f"{wanted.num_rows:,} pairs" in said
    assert f"{matched:,} events matched, {2_000 - matched:,} did not, 0 are dead" in said
    assert [each["events"] for each in manifests(there / "out")] == [2_000]

    assert run(*matching, str(there / "index"), "--count-only") == 0
    assert f"{wanted.num_rows:,} pairs" in capsys.readouterr().out


def test_a_command_that_failed_can_be_run_again(
    spark: SparkSession, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "data"
    command = ("spark", "generate", "lesubscribe", "--events", "20", "--subscriptions", "20",
               "--out", str(there))  # fmt: skip

    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("tamis.model.schemas.document.to_yaml", full)  # when all files are there
        assert f"{there}: cannot be written to: No space left" in refused(capsys, *command)
    assert not list(there.rglob("*.parquet"))
    assert run(*command) == 0
    capsys.readouterr()
    before = {each: each.stat().st_mtime_ns for each in there.rglob("*")}
    assert "holds events already" in refused(capsys, *command)
    assert {each: each.stat().st_mtime_ns for each in there.rglob("*")} == before


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_conditions_from_text_files(
    ending: str, spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text("attributes: {price: decimal, title: text}", encoding="utf-8")
    rows = [(1, "price < 5"), (2, 'title = "a, b"'), (3, "price <"), (4, "colour = red")]
    path = tmp_path / f"conditions{ending}"
    if ending == ".csv":
        csv.write_csv(pa.table({"id": [1, 2, 3, 4], "condition": [text for _, text in rows]}), path)
    else:
        lines = [json.dumps({"id": id, "condition": text}) for id, text in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
    index = tmp_path / "index"
    asked = ("spark", "compile", "--conditions", str(path), "--schema", str(schema), "--index")
    assert run(*asked, str(index)) == 0
    said = capsys.readouterr().out
    assert "2 subscriptions in 1 shard," in said
    assert "2 were refused:" in said
    assert "colour" in said
    folder = next(index.glob("v*/shard-0000"))
    assert sorted(Engine.open(folder).ids()) == [1, 2]
    assert "holds a version already" in refused(capsys, *asked, str(index))


def test_a_log_is_compiled(spark: SparkSession, tmp_path: Path, capsys: Capture) -> None:
    workload = lesubscribe.make(50)
    log = Log.create(tmp_path / "log", workload.schema)
    names = [name for name in workload.schema["attributes"] if name != "event_type"]
    log.change(subscribe(["a", "b"], [f"{names[-1]} exists", f"{names[-2]} missing"]))
    index = tmp_path / "index"
    assert run("spark", "compile", "--log", str(tmp_path / "log"), "--index", str(index)) == 0
    assert "2 subscriptions in 1 shard," in capsys.readouterr().out
    assert (index / "v00000000000000000002").is_dir()


def test_mistakes(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "out" / "events").mkdir(parents=True)
    (tmp_path / "conditions.xlsx").touch()
    engine = Engine(Schema.from_dict(make_variant("dexin", 0).schema))
    engine.save(tmp_path / "engine")
    some = ("--events", "1", "--subscriptions", "1", "--out", str(tmp_path / "out"))
    many = ("--events", "1", "--subscriptions", "1e7", "--out", str(tmp_path / "other"))
    nowhere = ("--events", ".", "--subscriptions", "nowhere", "--count-only")
    match = ("match", "--subscriptions", str(tmp_path / "engine"), "--events", "nothing")
    compile_ = ("compile", "--index", str(tmp_path / "index"))
    given = (*compile_, "--schema", str(tmp_path / "schema.yaml"), "--conditions")
    for arguments, said in (
        (("generate", "dexinn", *some), "no workload 'dexinn'; did you mean 'dexin'?"),
        (("generate", "dexin", *some), "holds events already"),
        (("generate", "dexin-matching", *many), "at most 2,000,000"),
        ((*match, "--count-only"), "no such file or folder of parquet files"),
        (match, "either --out"),
        (("match", *nowhere), "there are no parquet files"),
        (compile_, "either --conditions and --schema, or --log"),
        ((*given, str(tmp_path / "nothing.csv")), "there is no such file"),
        ((*given, str(tmp_path / "conditions.xlsx")), "the format is unknown"),
        ((*given, str(tmp_path)), "the folder has no files"),
    ):
        assert said in refused(capsys, "spark", *arguments)
