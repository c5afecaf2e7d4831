"""A session for jobs and for those who have none. Whoever has one is never given another."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError
from tamis.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RETRIES = 4  # of a task: a worker that dies does not fail the job


def session(master: str | None = None, app: str = "tamis", **config: Any) -> SparkSession:
    """The active session; or, where there is none or a `master` is named, one that is started.

    Without a master, it runs on all processors of this machine. `sc://host:port` is a Spark
    Connect server. `config` are settings of Spark by their own names, given as
    `**{"spark.sql.shuffle.partitions": 8}`.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as why:
        raise SparkError(f"PySpark is missing ({why}): pip install 'tamis[spark]'") from None
    active = _active()
    if active is not None:
        if master is not None and _master(active) not in (None, master):
            raise SparkError(
                f"there is a session on {_master(active)} already, and a process has one; stop it "
                f"before starting one on {master}, or name no master to use it"
            )
        for name, value in config.items():
            active.conf.set(name, _setting(value))
        return active
    if master is not None and master.startswith("sc://"):
        return _connected(master, app, config)
    # Spark would take whatever python3 is on the PATH, which need not have tamis.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(java_home())
    cores = len(os.sched_getaffinity(0))
    builder = SparkSession.builder.appName(app).master(master or f"local[{cores},{_RETRIES}]")
    quiet = Path(__file__).with_name("log4j2.properties")
    settings: dict[str, Any] = {
        "spark.ui.showConsoleProgress": False,
        **config,
    }
    java = str(settings.get("spark.driver.extraJavaOptions", ""))
    if "log4j" not in java:
        java = f"{java} -Dlog4j2.configurationFile={quiet.as_uri()}"
        settings["spark.driver.extraJavaOptions"] = java.strip()
    for name, value in settings.items():
        builder = builder.config(name, _setting(value))
    return builder.getOrCreate()


def _active() -> SparkSession | None:
    """The session of this process, classic or Connect; asking must not start anything."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    connect = sys.modules.get("pyspark.sql.connect.session")  # there only if somebody uses it
    found = None if connect is None else connect.SparkSession.getActiveSession()
    return found if isinstance(found, SparkSession) else None


def _master(active: SparkSession) -> str | None:
    """Where a session runs; None for one of Connect, which does not say."""
    try:
        return str(active.sparkContext.master)
    except Exception:  # noqa: BLE001 - the class of the refusal is Spark's own, and has changed
        return None


def _connected(url: str, app: str, config: dict[str, Any]) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.appName(app).remote(url)
        for name, value in config.items():
            builder = builder.config(name, _setting(value))
        return builder.getOrCreate()
    except ImportError as why:
        raise SparkError(
            f"Spark Connect needs more than PySpark alone ({why}): pip install 'pyspark[connect]'"
        ) from None


def _setting(value: Any) -> str:
    """A setting as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
