"""What `tamis bench spark` measures, at sizes that say nothing but that it works."""

from __future__ import annotations

import json
import mmap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tamis.errors import TamisError
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.bench.spark import answers, jobs, memory
from tamis.lab.results.records import Figure
from tests.unit.cli.calls import Capture, refused, run


@pytest.mark.parametrize("rows", [("matching",), ("reading", "sql"), ("answers",)])
def test_as_many_results_as_it_says(
    rows: tuple[str, ...], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "VARIANTS", ("dexin",))
    monkeypatch.setattr(answers, "STEPS", 1 + 2 * len(answers.JOBS))
    setting = BenchSetting(rows=rows).quick()
    given = list(jobs.measure(setting))
    assert len(given) == jobs.steps(setting)
    figures = [each for each in given if isinstance(each, Figure)]
    assert {each.measurement for each in figures} == {"spark"}
    assert all(each.value > 0 for each in figures) == (rows != ("answers",))
    if rows == ("answers",):
        assert [each.value for each in figures] == [0.0] * len(answers.JOBS)
        assert all(each.parameters["pairs"] > 500 for each in figures)
    assert spark.range(3).count() == 3  # a session that was there is left alone


def test_a_wrong_answer_is_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "VARIANTS", ("dexin",))
    right = answers._in_order
    monkeypatch.setattr(answers, "_in_order", lambda pairs: right(pairs)[1:])
    monkeypatch.setattr(answers, "JOBS", {"files": answers._counted})
    found = list(answers.figures(BenchSetting().quick(), spark, tmp_path))
    assert [each.value for each in found if isinstance(each, Figure)] == [1.0]


def test_the_command(spark: SparkSession, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "bench"
    assert run("bench", "spark", "--rows", "reading", "--quick", "--out", str(out)) == 0
    assert "of what can be read" in capsys.readouterr().out
    (path,) = out.glob("*.json")
    assert json.loads(path.read_text(encoding="utf-8"))["parameters"]["rows"] == ["reading"]
    said = refused(capsys, "bench", "spark", "--rows", "dexin")
    assert "unknown row 'dexin' of spark" in said
    with pytest.raises(TamisError, match="unknown row 'memry' of spark; did you mean 'memory'"):
        jobs.rows(("memry",))


def test_what_the_kernel_says_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(256)) * 4096)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[::4096]) == 0
        seen = memory._smaps("smaps", str(path))
        assert seen["Rss"] == 1 << 20
        assert seen["Private_Clean"] + seen["Private_Dirty"] == seen["Pss"] == 1 << 20
        everything = memory._smaps("smaps_rollup", "")
        assert everything["Rss"] > 1 << 20
    assert memory._smaps("smaps", str(path))["Rss"] == 0
