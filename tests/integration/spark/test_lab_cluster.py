"""Experiments on Spark: `tamis lab run --scale cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tamis.lab.experiments.experiment import LabScale
from tamis.lab.experiments.registry import EXPERIMENTS
from tamis.lab.experiments.result_files import read_result, result_path
from tamis.spark.runtime import sessions
from tests.unit.cli.calls import Capture, refused, run
from tests.unit.lab.experiments.tiny_experiment import WHERE


def test_an_experiment_has_the_session_of_the_run(
    spark: SparkSession, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "TINY", f"{WHERE}:Sharded")
    at = ("--scale", "cluster", "--folder", str(tmp_path))
    assert run("lab", "run", "tiny", *at) == 0
    found = read_result(result_path(tmp_path, LabScale.CLUSTER, "TINY"))
    assert found.whole
    assert found.observations[0].counts == {"nodes": 2}
    assert sessions.active() is spark, "a session that was there stays"
    capsys.readouterr()
    other = refused(capsys, "lab", "run", "tiny", "--fresh", "--master", "local[1]", *at)
    assert "has a session on local[2,4] already" in other
