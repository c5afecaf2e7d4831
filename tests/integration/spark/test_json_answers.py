"""The jobs of `tamis spark` answer programs: one document on standard output, text elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.unit.cli.calls import Capture, run


@pytest.mark.usefixtures("spark")
def test_every_job_answers_with_json(tmp_path: Path, capsys: Capture, spark: SparkSession) -> None:
    data, index = tmp_path / "data", tmp_path / "index"

    def said(*arguments: str | Path) -> Any:
        assert run("spark", *map(str, arguments), "--json") == 0
        out, err = capsys.readouterr()
        assert out.count("\n") == 1
        assert err, "people read what was done on standard error"
        return json.loads(out)

    drawn = said("generate", "dexin", "--events", "200", "--subscriptions", "100", "--out", data)
    assert drawn["rows"] == {"events": 200, "subscriptions": 100}
    schema = ("--schema", data / "schema.yaml")
    made = said("compile", "--conditions", data / "subscriptions", *schema, "--index", index)
    assert (made["subscriptions"], made["refused"]) == (100, 0)
    assert Path(made["version"]).is_dir()
    events = ("--events", data / "events")
    found = said("match", *events, "--subscriptions", index, "--out", tmp_path / "found")
    assert (found["events"], found["dead"]) == (200, 0)
    written = spark.read.parquet(f"{tmp_path}/found/notifications").count()
    assert found["pairs"] == written
    tested = said("backtest", *events, "--subscriptions", index, "--samples", "1")
    assert (tested["events"], tested["pairs"]) == (200, written)
    assert sum(each["matched"] for each in tested["counts"]) == written
    stats = said("stats", *events, *schema, "--out", tmp_path / "stats")
    assert (stats["events"], stats["dead"]) == (200, 0)
    assert stats["attributes"]
