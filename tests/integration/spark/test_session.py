"""The session of jobs: the active one where there is one, and never a second."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import tamis.spark
from tamis.cli.spark.session import spark_session
from tamis.errors import SparkError
from tamis.spark.runtime import sessions


def test_the_active_session_is_used(spark: SparkSession) -> None:
    assert tamis.spark.session() is spark
    assert tamis.spark.session("local[2,4]") is spark
    for number in (3, 2):
        settings: dict[str, Any] = {"spark.sql.shuffle.partitions": number}
        tamis.spark.session(**settings)
        assert spark.conf.get("spark.sql.shuffle.partitions") == str(number)


def test_another_master_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match=r"a session on local\[2,4\] already"):
        tamis.spark.session("local[1]")


@pytest.mark.parametrize("master", ["local[x]", "spark://x", "", "Local", "k8s:"])
def test_malformed_masters(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "active", lambda: None)
    monkeypatch.setattr(sessions, "_started", lambda *_: pytest.fail("Spark is started for it"))
    with pytest.raises(SparkError, match=re.escape(f"{master!r} is not a master that Spark knows")):
        tamis.spark.session(master)


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*,4]",
        "spark://a:7077,b:7077",
        "yarn",
        "k8s://https://host:6443",
        "plugin://x",
    ],
)
def test_well_formed_masters(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "active", lambda: None)
    monkeypatch.setattr(sessions, "_started", lambda *given: given[0])
    given: Any = tamis.spark.session(master)
    assert given == master


def test_what_java_says_when_it_does_not_start_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("An error occurred while calling o1.\n: x.Y: no workers\n\tat a.b")

    monkeypatch.setattr(sessions, "active", lambda: None)
    monkeypatch.setattr(sessions, "_started", refuse)
    with (
        pytest.raises(SparkError, match=r"^Spark does not start: x\.Y: no workers$"),
        spark_session(Console(file=io.StringIO()), "spark://nowhere:7077"),
    ):
        pass


def test_without_one_it_is_started_quietly() -> None:
    code = (
        "import tamis.spark, sys\n"
        "spark = tamis.spark.session(**{'spark.ui.enabled': False})\n"
        "assert spark.sparkContext.master.endswith(',4]')\n"
        "print(spark.range(3).count())\n"
    )
    # As after a session of Connect that was stopped.
    environment = os.environ | {"SPARK_CONNECT_MODE_ENABLED": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.strip() == "3"
    assert "log level" not in ran.stderr
    assert "incubator" not in ran.stderr
