"""A service in a process of its own, of which everything that it says is kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

SCHEMA = "attributes:\n  price: decimal\n  title: text\n"
_COMMAND = (sys.executable, "-m", "tamis.cli.main", "serve")


class ServiceProcess:
    """`tamis serve` on a free port, or wherever its options say."""

    def __init__(self, folder: Path, *options: str, form: str = "text") -> None:
        schema = folder.parent / "schema.yaml"
        schema.write_text(SCHEMA)
        listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
        self.process = subprocess.Popen(
            [*_COMMAND, str(folder), *listen, "--schema", str(schema), *options],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TAMIS_LOG_FORMAT": form},
        )
        self.said: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        found = self.wait_for(r"serving on (https?://[\w.:\[\]]+|unix:[^\s\"]+)")
        self.address = found[1]

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until it says something like this."""
        for _ in range(3000):
            for line in list(self.said):
                if found := re.search(pattern, line):
                    return found
            if self.process.poll() is not None:
                self._reader.join()
                if not any(re.search(pattern, line) for line in self.said):
                    break
            time.sleep(0.02)
        raise AssertionError(f"it never said {pattern!r}:\n{''.join(self.said)}")

    def stop(self, kind: int = signal.SIGTERM) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(kind)
        code = self.process.wait(60)
        self._reader.join()
        return code


@contextmanager
def service(folder: Path, *options: str, form: str = "text") -> Iterator[ServiceProcess]:
    """A service that is killed in the end, if it still runs."""
    started = ServiceProcess(folder, *options, form=form)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
