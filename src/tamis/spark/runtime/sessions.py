"""A session for jobs, and for users without one. A user's own session is always used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError, SparkGoneError
from tamis.spark.runtime import connect_server as connecting
from tamis.spark.runtime.java import java_home
from tamis.store.versions import KEPT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's own; a plug-in may bring others, under other names.
_MASTER = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\])?|local-cluster\[.+\]|spark://.+:\d+|yarn|k8s://.+"
    r"|(?!local|spark|k8s|sc:)\w[\w+.-]*://.+"
)
_REAPED = 0.3  # seconds
_RETRIES = 4  # of a task, so that a worker that dies does not fail the job


def session(master: str | None = None, app: str = "tamis", **config: Any) -> SparkSession:
    """The active session, or a new one if no session is active or `master` names another.

    Without a master, it runs on all processors of this machine, or where `SPARK_REMOTE` says.
    `sc://host:port` is a Spark Connect server. `config` are settings of Spark by their own names,
    given as `**{"spark.sql.shuffle.partitions": 8}`; a Connect server ignores those that only it
    can set.
    """
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as why:
        raise SparkError(f"PySpark is missing ({why}): pip install 'tamis[spark]'") from None
    before = active()
    if before is not None:
        there = _master(before)
        if master is not None and there not in (None, _named(master)):
            raise SparkError(
                f"this process has a session on {there} already; stop it before you start one on "
                f"{master}, or name no master to use it"
            )
        for name, value in config.items():
            before.conf.set(name, _setting(value))
        return before
    remote = os.environ.get("SPARK_REMOTE")
    wanted = remote if master is None else master
    if wanted is not None and wanted.startswith(connecting.SCHEME):
        settings = {name: _setting(value) for name, value in config.items()}
        return connecting.connected(wanted, app, settings)
    if remote is not None:
        raise SparkError(
            f"SPARK_REMOTE is {remote!r}, with which PySpark starts no session of its own; unset "
            "it, or let it name a Connect server: sc://host:port"
        )
    if master is not None and not _MASTER.fullmatch(master):  # Java's own refusal is pages long
        raise SparkError(
            f"{master!r} is not a master that Spark knows; expected local[4] or local[*] for this "
            "machine, spark://host:port, yarn or k8s://…, or sc://host:port, a Connect server"
        )
    return _started(master, app, config)


def _started(master: str | None, app: str, config: dict[str, Any]) -> SparkSession:
    """A session whose driver is this process."""
    from pyspark.sql import SparkSession

    # Spark would take whatever python3 is on the PATH, which need not have tamis.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(java_home())
    # PySpark leaves it behind when a Connect session stops.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
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
    made = builder.getOrCreate()
    # A server that Java sends counts to. Without this it shows a traceback when Java is gone.
    counting = getattr(getattr(made, "sparkContext", None), "_accumulatorServer", None)
    if counting is not None:
        counting.handle_error = lambda *_: None
    return made


def end(spark: SparkSession) -> None:
    """Stop a session. Its Java may be gone: SIGTERM is often sent to all processes of a group."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark.stop()


def java_ended() -> bool:
    """Whether the Java process that this process started for Spark has ended."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAPED)  # its sockets close a little earlier
    return process.returncode is not None


def gone() -> SparkGoneError:
    """The error for a Java process that has ended."""
    return SparkGoneError(
        "Spark's Java process has ended: it was killed, or had too little memory; run the command "
        "again"
    )


def retained_batches(spark: SparkSession) -> int:
    """How many of the last batches of a stream Spark may run again."""
    return int(spark.conf.get("spark.sql.streaming.minBatchesToRetain", None) or KEPT)


def active() -> SparkSession | None:
    """The session of this process, classic or Connect; nothing is started."""
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None and "pyspark.sql.connect.session" in sys.modules:  # in use
        return connecting.active()
    return found


def _master(active: SparkSession) -> str | None:
    """Where a session runs; None where it does not say."""
    try:
        return str(active.sparkContext.master)
    except Exception:  # noqa: BLE001 - the class of the refusal is Spark's own, and has changed
        return connecting.place_of(active)


def _named(master: str) -> str:
    """A master as `_master` writes it."""
    return connecting.place(master) if master.startswith(connecting.SCHEME) else master


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
