"""A real server in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

SCHEMA = "attributes:\n  price: decimal\n  title: text\n"
_CONSOLE = re.compile(r"console: ([\w:./#=&-]+)")
_ADDRESS = re.compile(r"serving (?P<grpc>gRPC )?on (?P<address>\S+)")


class RunningServer:
    """A server and where it listens. It can be killed, and started again on the same ports."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self._options = folder, options
        self.address = self.grpc = ""
        self.console = ""  # with the code that opens it
        self.process = self._start("0", "127.0.0.1:0")

    def _start(self, port: str, grpc: str) -> subprocess.Popen[str]:
        schema = self.folder.parent / "schema.yaml"
        schema.write_text(SCHEMA)
        options = ["--schema", str(schema), "--listen", f"127.0.0.1:{port}", *self._options]
        options = [grpc if each == "GRPC" else each for each in options]
        process = subprocess.Popen(
            [sys.executable, "-m", "tamis.cli.main", "serve", str(self.folder), *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            found = _ADDRESS.search(line)
            if page := _CONSOLE.search(line):
                self.console = page[1]
            if found and found["grpc"]:
                self.grpc = found["address"]
            elif found:  # what it says last
                self.address = found["address"]
                break
        else:
            raise AssertionError(f"the server did not start: {said}")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        return process

    def start_again(self) -> None:
        """Start a server that has ended on the ports that it had."""
        self.process.wait(60)
        self.process = self._start(self.address.rpartition(":")[2], self.grpc)

    def stop(self) -> None:
        """Stop it as a shell would, unless it was killed."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) in (0, -signal.SIGKILL)


@contextmanager
def running(folder: Path, *options: str) -> Iterator[RunningServer]:
    """A server on free ports. For gRPC, pass `--grpc GRPC`."""
    server = RunningServer(folder, *options)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[httpx2.Client, subprocess.Popen[str]]]:
    """A server on a free port, and a plain client of HTTP."""
    with (
        running(folder, *options) as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        yield client, server.process
