"""A data folder with many live subscriptions, and a server on it in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis import workload
from tamis.broker.data_folder import DataFolder
from tamis.broker.matching.compile_version import compile_version
from tamis.errors import TamisError
from tamis.model.schema import Schema
from tamis.store.changes import SUBSCRIBE
from tamis.workload import Workload
from tamis.workload.tables import conditions

_AT_ONCE = 100_000  # subscriptions in an append
_SERVING = re.compile(r"serving on http://([\d.]+):(\d+)")
_CONSOLE = re.compile(r"console: (http://[\w.:/#=-]+)")
_GRPC = re.compile(r"serving gRPC on ([\d.]+:\d+)")


def fill(folder: Path, subscriptions: int, seed: int) -> Workload:
    """Make a data folder whose log has DEXIN subscriptions, with a compiled version."""
    made = workload.make("dexin", subscriptions, seed=seed)
    place = DataFolder(folder)
    folder.mkdir(parents=True)
    log = place.open_log(Schema.from_dict(made.schema))
    for start in range(0, subscriptions, _AT_ONCE):
        some = made.subscriptions.slice(start, _AT_ONCE)
        columns = {
            "kind": pa.array([SUBSCRIBE] * some.num_rows),
            "id": pa.nulls(some.num_rows, pa.int64()),  # the log numbers them
            "condition": conditions(some),
        }
        log.change(pa.table(columns))
    compile_version(log, place.index, log.end)
    return made


def cores() -> tuple[set[int], set[int]]:
    """The cores of the server and of the load: one and one, if there are two."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others[:1]) or {first}


class ServerProcess:
    """A server that runs."""

    def __init__(self, process: subprocess.Popen[str], began: float) -> None:
        self._process = process
        self.grpc = self.console = ""  # the link that opens the console
        self.host, self.port = self._wait_ready()
        self.ready_s = time.monotonic() - began

    def _wait_ready(self) -> tuple[str, int]:
        assert self._process.stderr is not None
        lines: list[str] = []
        for line in self._process.stderr:
            lines.append(line)
            if found := _GRPC.search(line):
                self.grpc = found[1]
            elif found := _CONSOLE.search(line):
                self.console = found[1]
            elif found := _SERVING.search(line):
                return found[1], int(found[2])
        raise TamisError(f"the server did not start: {''.join(lines[-5:]).strip()}")

    @property
    def rss(self) -> int:
        """Bytes in memory that belong to the server, shared pages included."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """End it as a power cut would, without notice."""
        self._process.kill()
        self._process.wait()

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """One request, for what is not measured."""
        connection = HTTPConnection(self.host, self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise TamisError(f"{method} {path}: {answer.status} {text[:500]!r}")
        found: dict[str, Any] = json.loads(text)
        return found


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Serve a data folder on one core, until the block ends."""
    command = [
        sys.executable,
        "-m",
        "tamis.cli.main",
        "serve",
        str(folder),
        "--listen",
        "127.0.0.1:0",
    ]
    own, _ = cores()
    began = time.monotonic()
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        os.sched_setaffinity(process.pid, own)  # before it has other threads
        yield ServerProcess(process, began)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


def run_load(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Run the load generator on a core of its own, and return what it measured."""
    _, other = cores()
    command = [sys.executable, "-m", "tamis.lab.bench.service.load", json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        os.sched_setaffinity(process.pid, other)
        output, _ = process.communicate()
    if process.returncode:
        raise TamisError("the load generator has failed; see above")
    found: dict[str, Any] = json.loads(output)
    return found
