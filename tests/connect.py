"""A Spark Connect server of the tests' own, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from tamis.spark.java import java_home


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
