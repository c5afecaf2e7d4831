"""Java is killed while a command works: one sentence, exit code 1, no traceback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.spark.runtime.java import java_home
from tamis.store import Log, subscribe

_LIMIT = 300.0  # seconds
_GONE = "tamis: Spark's Java process has ended: it was killed, or had too little memory; run"


class Command:
    """A command of tamis in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tamis.cli.main", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "JAVA_HOME": str(java_home()), "TAMIS_COSTS": "usual"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def java(self) -> int | None:
        """Its Java process."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        for child in " ".join(path.read_text() for path in children).split():
            line = Path("/proc", child, "cmdline").read_bytes().decode(errors="replace")
            if "SparkSubmit" in line and "launcher.Main" not in line:
                return int(child)
        return None

    def kill_java_when(self, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + _LIMIT
        while not (self.java() and ready()):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until, self.said
            time.sleep(0.1)
        java = self.java()
        assert java is not None
        os.kill(java, signal.SIGKILL)
        try:
            self.process.wait(_LIMIT)
        finally:
            self.process.kill()
        self._reader.join(_LIMIT)

    def told(self) -> None:
        """It said one sentence about it, and nothing of its own making."""
        assert self.process.returncode == 1, self.said
        assert self.said.count(_GONE) == 1, self.said
        assert not re.search(r"Traceback|py4j|ERROR|Exception|Errno", self.said), self.said


def test_a_job(tmp_path: Path) -> None:
    sizes = ("--events", "1e8", "--subscriptions", "1e3")
    command = Command("spark", "generate", "auctions", *sizes, "--out", tmp_path / "out")
    command.kill_java_when(lambda: any(tmp_path.rglob("*.parquet*")))
    command.told()


@pytest.mark.slow
def test_a_stream(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", {"attributes": {"n": "integer"}}, ids="int64")
    log.change(subscribe([1], ["n = 1"]))
    log.publish(pa.table({"n": [1, 2]}))
    folders = ("--log", tmp_path / "log", "--index", tmp_path / "index", "--out", tmp_path / "out")
    command = Command("spark", "run", *folders)
    command.kill_java_when(lambda: "the stream has started" in command.said)
    command.told()
