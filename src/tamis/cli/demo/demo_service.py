"""`tamis serve` as a child process: started, found, stopped."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.text import Text

from tamis.cli.demo.demo_files import DemoFiles
from tamis.cli.keys import folder_keys
from tamis.cli.terminal.interrupt import StartupSteps
from tamis.errors import SettingError, TamisError
from tamis.service.listen_address import ListenAddress

HOST = "127.0.0.1"
_NAME = "demo"  # the caller that owns the subscriptions
_ROLES = ("publisher", "subscriber")
_POLL = 0.05  # seconds
_GRACE = 15.0  # seconds that the service has to stop
_TAKEN = os.strerror(errno.EADDRINUSE)
_CONSOLE = re.compile(r"console: (http\S+)")
_SERVING = re.compile(r"serving on (http\S+)")


class DemoService:
    """A service of a data folder. It has a session of its own, so Ctrl-C does not reach it.

    Args:
        folder: the data folder.
        output: the file for what it logs.
        port: where to listen; None: 8080, or any free port if that is taken.
        options: of `tamis serve`.
    """

    def __init__(
        self, folder: Path, output: Path, port: int | None, options: Sequence[str]
    ) -> None:
        self._folder, self._output, self._options = folder, output, options
        self.url = self.console = ""
        output.parent.mkdir(parents=True, exist_ok=True)
        self._port = _free_port(port)
        self._may_move = port is None
        self._start()

    def _start(self) -> None:
        given = ("--listen", f"{HOST}:{self._port}", "--log-format", "text", *self._options)
        with self._output.open("ab") as file:
            self._from = file.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tamis.cli.main", "serve", os.fspath(self._folder), *given],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def wait(self) -> str:
        """Wait until it serves; the link to its console, which signs in."""
        while not self.url:
            running = self.is_running
            said = self._said()
            console, serving = _CONSOLE.search(said), _SERVING.search(said)
            if serving is not None:
                self.url = serving[1]
                self.console = f"{self.url}/console" if console is None else console[1]
            elif not running and self._may_move and self._port and _TAKEN in said:
                self._port = 0  # another program was quicker
                self._start()
            elif not running:
                raise TamisError(self.end_reason)
            else:
                time.sleep(_POLL)
        return self.console

    def new_key(self) -> str:
        """A key for the publisher and the subscribers. Those of earlier runs end."""
        with folder_keys(self._folder) as keys:
            for each in keys.list():
                if each.name == _NAME:
                    keys.revoke(each.id)
            return keys.create(_NAME, _ROLES)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def end_reason(self) -> str:
        """Why it has ended, in its last words."""
        lines = [line.removeprefix("tamis: ") for line in self._said().splitlines() if line]
        return f"the service has ended: {lines[-1] if lines else 'without a word'}; {self._output}"

    def stop(self) -> None:
        """Let it finish what it was asked, and end it."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()  # nothing that was acknowledged is lost
            self._process.wait()

    def _said(self) -> str:
        with self._output.open("rb") as file:
            file.seek(self._from)
            return file.read().decode(errors="replace")


def start_service(
    steps: StartupSteps, cleanup: ExitStack, files: DemoFiles, port: int | None, *options: str
) -> DemoService:
    """Start a service whose webhooks may come here, and print the link to its console."""
    given = ("--schema", os.fspath(files.schema), "--allow-sink", HOST, *options)
    service = DemoService(files.data, files.service, port, given)
    cleanup.callback(service.stop)
    steps.run(
        "Starting the service: a few seconds",
        service.wait,
        lambda _: "the service runs",
        service.stop,
    )
    steps.show(Text.assemble("  open ", (service.console, "bold underline")))
    return service


def _free_port(port: int | None) -> int:
    """The port to use: the one that is wanted, or 8080, or 0 for any."""
    try:
        ListenAddress(HOST, port or 8080).bind().close()
    except SettingError:
        if port:
            raise
        return 0
    return port or 8080
