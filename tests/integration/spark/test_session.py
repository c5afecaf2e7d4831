"""The session of jobs: the active one where there is one, and never a second."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tamis.spark
from tamis.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
