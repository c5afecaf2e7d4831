"""Real servers that start at once: forked from a process that has imported everything.

A fault test starts a server dozens of times. Importing takes seconds of processor time, forking
takes milliseconds; the forked process is as real, and is killed as such.
"""

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
from pathlib import Path

_PARENT = """
import json, os, signal, sys, traceback
import tamis.service.serve, tamis.broker.broker
from tamis import Engine, Schema
from tamis.cli.main import main

schema = Schema.from_dict({"attributes": {"price": "decimal"}})
with Engine(schema) as warm:  # compiled code is loaded before a fork
    warm.subscribe("price < 5")
    warm.match_batch([{"price": 4}])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(asked["environment"])
        code = 70
        try:
            code = main(asked["arguments"])
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code if isinstance(code, int) else 0)
    print(pid, flush=True)
"""
_SERVING = re.compile(r"serving on (http://\S+)")
_PATIENCE = 60.0  # seconds


class WarmServer:
    """A server in a process of its own."""

    def __init__(self, pid: int, output: Path) -> None:
        self.pid, self._output = pid, output
        self.url = ""

    @property
    def output(self) -> str:
        """What it has said."""
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def wait_ready(self) -> WarmServer:
        """Wait until it listens."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            found = _SERVING.search(self.output)
            if found:
                self.url = found[1]
                return self
            if not self.alive:
                raise AssertionError(f"the server has ended: {self.output}")
            time.sleep(0.01)
        raise AssertionError(f"the server does not start: {self.output}")

    @property
    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def end(self, how: int = signal.SIGTERM) -> None:
        """Send a signal, and wait until it is gone."""
        if self.alive:
            os.kill(self.pid, how)
        until = time.monotonic() + _PATIENCE
        while self.alive:
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"the server does not end: {self.output}")
            time.sleep(0.01)

    def kill(self) -> None:
        self.end(signal.SIGKILL)


class WarmServers:
    """Starts servers."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._folder, self._count = folder, 0
        self._running: list[WarmServer] = []
        self._parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def start(self, data: Path, *options: str, **environment: str) -> WarmServer:
        """Start a server on a data folder, on a free port. It may not be ready yet."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        output = self._folder / f"server-{self._count}.txt"
        self._count += 1
        arguments = ["serve", str(data), "--listen", "127.0.0.1:0", *options]
        asked = {"arguments": arguments, "output": str(output), "environment": environment}
        self._parent.stdin.write(json.dumps(asked) + "\n")
        self._parent.stdin.flush()
        started = WarmServer(int(self._parent.stdout.readline()), output)
        self._running.append(started)
        return started

    def close(self) -> None:
        for each in self._running:
            if each.alive:
                each.kill()
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(_PATIENCE)


@contextmanager
def warm_servers(folder: Path, **environment: str) -> Iterator[WarmServers]:
    """A starter of servers, whose output goes to a folder."""
    made = WarmServers(folder, environment)
    try:
        yield made
    finally:
        made.close()
