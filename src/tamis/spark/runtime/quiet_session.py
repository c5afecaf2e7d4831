"""A session whose messages go to files: the terminal is for people."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError, StoreError
from tamis.files.os_errors import os_errors_as
from tamis.spark.runtime.error_text import error_text
from tamis.spark.runtime.sessions import gone, java_ended, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def quiet_session(logs: Path, master: str | None = None, **config: Any) -> SparkSession:
    """A session whose messages go to files in a folder, and not to the terminal."""
    with os_errors_as(StoreError, f"{logs}: cannot be written to"):
        logs.mkdir(parents=True, exist_ok=True)
        settings = logs / "log4j2.properties"
        text = _LOG4J.format(file=_escaped(str((logs / "spark.log").absolute())))
        settings.write_text(text, encoding="ascii")
    handler = _DriverLog(logs / "driver.log", delay=True)
    for name in ("py4j", "pyspark"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).propagate = False
    java = f"-Dlog4j2.configurationFile={settings.absolute().as_uri()}"
    with errors_to(logs / "stderr.log"):
        try:
            return session(master, **{"spark.driver.extraJavaOptions": java, **config})
        except SparkError:
            raise
        except Exception as why:  # noqa: BLE001 - as above
            if java_ended():
                raise gone() from None
            raise SparkError(f"Spark does not start: {error_text(why)}; {logs} has more") from None


class _DriverLog(logging.FileHandler):
    """A log file that stays silent if it cannot be written, as on a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        """Instead of a traceback on the terminal."""


@contextmanager
def errors_to(path: Path) -> Iterator[None]:
    """Processes that are started in the block have this file as their standard error."""
    sys.stderr.flush()
    kept, opened = os.dup(2), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(opened, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(opened)


def _escaped(text: str) -> str:
    """As a file of Java properties has it, which escapes characters as JSON does.

    >>> _escaped("/tmp/é")
    '/tmp/\\\\u00e9'
    """
    return json.dumps(text)[1:-1]
