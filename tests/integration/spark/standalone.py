"""A standalone cluster of Spark on this machine: a master and two workers, each a daemon."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark

from tamis.spark.runtime.java import java_home

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_HOST = "127.0.0.1"
_READY = {
    "master.Master": re.compile("Starting Spark master at"),
    "worker.Worker": re.compile("Successfully registered with master"),
}
_PATIENCE = 60.0  # seconds


class Daemon:
    """A master or a worker, in a process group of its own."""

    def __init__(self, folder: Path, kind: str, *arguments: str) -> None:
        folder.mkdir(parents=True)
        self._said = folder / "said.txt"
        places = {"SPARK_WORKER_DIR": folder, "SPARK_LOG_DIR": folder, "SPARK_LOCAL_DIRS": folder}
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [_CLASS, f"org.apache.spark.deploy.{kind}", "--host", _HOST, *arguments],
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **os.environ,
                    **{name: str(place) for name, place in places.items()},
                    "JAVA_HOME": str(java_home()),
                    "SPARK_LOCAL_IP": _HOST,
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
                },
            )
        end = time.monotonic() + _PATIENCE
        while not _READY[kind].search(self._said.read_text(errors="replace")):
            if time.monotonic() > end or self.process.poll() is not None:
                self.kill()
                raise AssertionError(self._said.read_text(errors="replace"))
            time.sleep(0.1)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class StandaloneCluster:
    """A master and two workers with one core each."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._started = folder, 0
        port, page = _free_port(), _free_port()
        self.url = f"spark://{_HOST}:{port}"
        self._master = Daemon(
            folder / "master", "master.Master", "--port", str(port), "--webui-port", str(page)
        )
        self.workers: list[Daemon] = []
        try:
            self.refill()
        except BaseException:
            self.stop()
            raise

    def refill(self) -> None:
        """Start workers, until there are two."""
        self.workers = [each for each in self.workers if each.alive]
        while len(self.workers) < 2:
            self._started += 1
            given = ("--cores", "1", "--memory", "1g", "--webui-port", str(_free_port()), self.url)
            folder = self._folder / f"worker-{self._started}"
            self.workers.append(Daemon(folder, "worker.Worker", *given))

    def stop(self) -> None:
        for each in (*self.workers, self._master):
            each.kill()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HOST, 0))
        return int(free.getsockname()[1])
