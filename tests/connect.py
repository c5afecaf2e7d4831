"""A Spark Connect server of the tests' own, and a client of it, each in a process of its own.

A process has sessions of one sort, and that of the other tests is classic. So the client is a
process as well: what it is to do is sent to it, and what it found comes back.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import tamis.spark
from tamis.spark.runtime.java import java_home

_Answer = TypeVar("_Answer")


class Server:
    """A server on two cores, and the log that it writes."""

    def __init__(self, folder: Path) -> None:
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        settings = {
            "spark.connect.grpc.binding.port": "0",  # one that is free; the log says which
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }
        self._log = folder / "server.log"
        self.process = subprocess.Popen(
            [
                str(Path(spec.origin).parent / "bin" / "spark-submit"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--master", "local[2,4]"),
                *(each for pair in settings.items() for each in ("--conf", "=".join(pair))),
                "spark-internal",
            ],
            cwd=folder,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java_home())},
            stdout=subprocess.DEVNULL,
            stderr=self._log.open("wb"),
        )
        self.url = f"sc://localhost:{self._port()}"

    def _port(self) -> int:
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            said = re.search(r"server started at: \S*:(\d+)", self._log.read_text("utf-8"))
            if said:
                return int(said[1])
            time.sleep(0.1)
        self.stop()
        raise AssertionError(f"no server: {self._log.read_text('utf-8')[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Client:
    """A process with a session on a server."""

    def __init__(self, url: str) -> None:
        fresh = multiprocessing.get_context("spawn")
        self._process = ProcessPoolExecutor(1, fresh, initializer=_connect, initargs=(url,))

    def asked(self, function: Callable[..., _Answer], *given: Any) -> _Answer:
        """What a function of a file of tests gives, there."""
        return self._process.submit(function, *given).result()

    def stop(self) -> None:
        self._process.shutdown()


def _connect(url: str) -> None:
    made = tamis.spark.session(url, **{"spark.sql.session.timeZone": "America/New_York"})
    assert tamis.spark.session() is tamis.spark.session(url) is made
