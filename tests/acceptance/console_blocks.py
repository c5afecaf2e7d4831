"""Runs the `console` blocks of a page as a reader would: commands after `$`, then what they print.

A service that a block starts runs until the page ends, on a free port. In what is printed, `…` and
times stand for anything. A word that ends in `…` stands for one value: `hf4KEAwz…` is the ticket
that was printed in its place, also in later commands.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.pages import ROOT
from tests.serving import running

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ADDRESS = re.compile(r"\b(?:localhost|127\.0\.0\.1):8080\b")
_ANY = re.compile(r"\w*…|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?")


class Shown(NamedTuple):
    """A command, and what it prints."""

    command: str
    printed: str


def shown_commands(page: Path) -> list[Shown]:
    """The commands of a page in order. A command goes on while a quote or a line is open."""
    found: list[Shown] = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        command = ""
        printed: list[str] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    found.append(Shown(command, "\n".join(printed)))
                command, printed = line.removeprefix("$ "), []
            elif _is_open(command):
                command += f"\n{line}"
            else:
                printed.append(line)
        found.append(Shown(command, "\n".join(printed)))
    return found


def _is_open(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return command.endswith("\\")


class Terminal:
    """Where the commands of a page run: a folder with the examples, and perhaps a service."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}  # words such as hf4KEAwz…, and what stood in their place
        self._server = ""
        (folder / "examples").symlink_to(ROOT / "examples")
        command = folder / "bin" / "tamis"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tamis.cli.main "$@"\n')
        command.chmod(0o755)

    def run(self, shown: Shown) -> None:
        """Run a command, and compare what it prints. A file that is only shown is written."""
        command = shown.command
        name = command.removeprefix("cat ")
        if name != command and not (self._folder / name).exists():
            (self._folder / name).write_text(shown.printed)
        for word, value in self._known.items():
            command = command.replace(word, value)
        environment = os.environ | {"PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"}
        if self._server:
            environment["TAMIS_SERVER"] = f"http://{self._server}"
            command = _ADDRESS.sub(self._server, command)
        command = command.replace("curl -sN", "curl -sN --max-time 5")  # a stream does not end
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        if shown.printed:
            self._compare(shown, done.stdout)

    def _compare(self, shown: Shown, printed: str) -> None:
        pattern, words = _pattern(shown.printed)
        found = re.fullmatch(pattern, printed.strip("\n"), re.DOTALL)
        assert found, f"$ {shown.command}\nshould print\n{shown.printed}\nand prints\n{printed}"
        self._known |= dict(zip(words, found.groups(), strict=True))

    @contextmanager
    def serve(self, command: str) -> Iterator[None]:
        """The service of `tamis serve DATA …`, on a port of its own."""
        _, _, _, *options = shlex.split(command, comments=True)
        files = {each: self._folder / each for each in options}
        given = [str(files[each]) if files[each].exists() else each for each in options]
        with running(self._folder / "data", *given) as server:
            self._server = server.address.removeprefix("http://")
            yield


def _pattern(printed: str) -> tuple[str, list[str]]:
    """A regular expression for what is printed, and the words that it has groups for."""
    pattern, words, at = "", [], 0
    for found in _ANY.finditer(printed):
        pattern += re.escape(printed[at : found.start()])
        if found[0].endswith("…") and len(found[0]) > 1:
            pattern += r"([^\"\s]+)"
            words.append(found[0])
        else:
            pattern += ".*?"
        at = found.end()
    return pattern + re.escape(printed[at:]), words
