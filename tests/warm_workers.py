"""A Python for Spark's workers that has imported everything before it forks them.

Spark forks a worker for each task at a time, and one for each plan, write and commit of a stream.
Its daemon imports nothing before a fork, so that each of them takes a second of processor time for
the same imports. The workers are as real, and are killed as such. Tests that start Spark in a
process of their own have the usual Python.
"""

from __future__ import annotations

import importlib
import os
import runpy
import shlex
import sys
from pathlib import Path

_DAEMON = "pyspark.daemon"
_IMPORTED = (
    "pandas",
    "pyarrow.parquet",
    "pyspark.worker",
    "pyspark.sql.pandas.types",
    "tamis.engine",
    "tamis.spark.backtest.count_task",
    "tamis.spark.frames.json_frame",
    "tamis.spark.frames.match_frame",
    "tamis.spark.frames.validate_frame",
    "tamis.spark.jobs.compile_shard",
    "tamis.spark.jobs.match_task",
    "tamis.spark.stats.value_task",
    "tamis.spark.stream.log_source",
    "tamis.spark.stream.log_task",
    "tamis.spark.stream.notification_sink",
)


def warm_python(folder: Path) -> Path:
    """Write a program that can stand in for Python in `PYSPARK_PYTHON`."""
    program = folder / "python"
    command = shlex.join([sys.executable, str(Path(__file__).resolve())])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def _import_all(worker: str) -> None:
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # as a worker does; a fork has no threads but its own
    for name in (*_IMPORTED, worker):
        importlib.import_module(name)


def main(arguments: list[str]) -> None:
    """Run Python with some arguments."""
    if arguments[:2] != ["-m", _DAEMON]:
        os.execv(sys.executable, [sys.executable, *arguments])
    sys.path[0] = str(Path.cwd())  # as after -m
    sys.argv = arguments[1:]
    _import_all(arguments[-1])
    runpy.run_module(_DAEMON, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
