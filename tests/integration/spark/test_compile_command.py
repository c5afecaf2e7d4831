"""`tamis spark compile` with files of conditions, as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tamis.engine import Engine
from tamis.store import Log, changes
from tamis.store.versions import Versions
from tests.unit.cli.calls import Capture, refused, run

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def given(spark: SparkSession, tmp_path: Path) -> tuple[str, ...]:
    schema = tmp_path / "schema.yaml"
    schema.write_text("attributes: {dep_delay: decimal, carrier: text}\n", encoding="utf-8")
    return ("spark", "compile", "--schema", str(schema), "--index", str(tmp_path / "index"))


def _ids(index: Path) -> list[int | str]:
    latest = Versions(index).latest()
    assert latest is not None
    return sorted(id for folder in latest.shard_folders for id in Engine.open(folder).ids())


def test_a_condition_is_not_cut_at_its_comma(
    given: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "wanted.csv"
    path.write_text('id,condition\n1,dep_delay > 1,000\n2,"carrier in (UA, AA)"\n', "utf-8")
    assert "--strict" in refused(capsys, *given, "--conditions", str(path), "--strict")
    assert Versions(tmp_path / "index").latest() is None
    assert run(*given, "--conditions", str(path)) == 0
    said = capsys.readouterr().out
    assert "1 of 2 subscriptions was refused:" in said
    assert f"{path}, line 2: has 3 fields, expected 2: id, condition" in said
    assert "1 subscription in 1 shard," in said
    assert _ids(tmp_path / "index") == [2]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_nothing_is_published_if_every_condition_is_wrong(
    suffix: str, given: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / f"wanted{suffix}"
    table = pa.table({"id": [1, 2], "condition": ["dep_dealy > 5", "carrier <"]})
    if suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    said = refused(capsys, *given, "--conditions", str(path))
    assert "nothing was published: 2 of 2 conditions are wrong" in said
    assert "did you mean 'dep_delay'" in said
    assert Versions(tmp_path / "index").latest() is None


def test_strict(given: tuple[str, ...], tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "wanted.parquet"
    table = pa.table({"id": ["a", "b"], "condition": ["dep_delay > 5", "dep_dealy > 5"]})
    parquet.write_table(table, path)
    said = refused(capsys, *given, "--conditions", str(path), "--strict")
    assert "nothing was published: 1 of 2 conditions is wrong" in said
    assert run(*given, "--conditions", str(path)) == 0
    assert _ids(tmp_path / "index") == ["a"]


def test_a_log_in_which_every_condition_is_wrong(
    spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    log = Log.create(tmp_path / "log", {"attributes": {"price": "decimal"}})
    log.change(changes.subscribe(["ann"], ["prise < 5"]))
    asked = ("spark", "compile", "--log", str(log.folder), "--index", str(tmp_path / "index"))
    assert "1 of 1 condition is wrong" in refused(capsys, *asked)
    log.change(changes.subscribe(["bob"], ["price < 5"]))
    assert "1 of 2 conditions is wrong" in refused(capsys, *asked, "--strict")
    assert run(*asked) == 0
    assert _ids(tmp_path / "index") == ["bob"]


def test_mistakes(given: tuple[str, ...], tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "zero.csv").touch()
    (tmp_path / "a.xlsx").touch()
    for name, said in (
        ("nowhere.csv", "there is no such file or folder"),
        ("zero.csv", "has no subscriptions"),
        ("a.xlsx", "the format is unknown"),
    ):
        assert said in refused(capsys, *given, "--conditions", str(tmp_path / name))
