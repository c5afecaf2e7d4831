"""A program in Java with the reference of a dialect, as a process that answers questions."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from tests.maven import fetched, run, unfetchable


class JavaProcess:
    """A running program. It reads lines, and answers with a word for each question.

    A word has a y for each event that passes, or is "refused".
    """

    kind: ClassVar[str]
    version: ClassVar[str]
    artifacts: ClassVar[Sequence[str]]
    source: ClassVar[Path]

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot be asked here; None if it can."""
        if shutil.which("javac") is None:
            return f"there is no compiler of Java, which would compile {cls.source.name}"
        return unfetchable(cls.kind, cls.version)

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix=f"tamis-{self.kind}-")
        jars = ":".join(map(str, fetched(self.kind, self.version, self.artifacts)))
        run(["javac", "-cp", jars, "-d", self._folder, str(self.source)], Path(self._folder))
        self._process = subprocess.Popen(
            ["java", "-Xmx256m", "-cp", f"{jars}:{self._folder}", self.source.stem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, lines: Iterable[str], questions: int) -> list[list[bool] | None]:
        """For each question, whether each event passes; None for one that is refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for line in lines:
            self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        words = self._process.stdout.readline().split()
        assert len(words) == questions, "the process has ended"
        return [None if word == "refused" else [each == "y" for each in word] for word in words]

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)
