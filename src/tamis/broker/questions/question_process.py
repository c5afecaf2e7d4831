"""A question that is answered by another process, in lines of JSON, and can be given up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import msgspec

_LOOK = 0.5  # seconds between two looks whether to go on
_GRACE = 10.0  # seconds for the process to end what it has started


@contextmanager
def question_process(module: str) -> Iterator[QuestionProcess]:
    """`python -m MODULE`, which ends with the block."""
    with TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield QuestionProcess(child.stdin, child.stdout, errors)
        finally:
            child.terminate()
            try:
                child.wait(_GRACE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            for pipe in (child.stdin, child.stdout):
                with suppress(BrokenPipeError):  # of what was not taken
                    pipe.close()


class QuestionProcess(NamedTuple):
    """Takes a question on its input, and says objects of JSON, one on a line."""

    input: IO[bytes]
    output: IO[bytes]
    errors: IO[bytes]

    def ask(self, part: bytes) -> None:
        """Write a part of the question. The process may have ended: then its errors say why."""
        with suppress(BrokenPipeError):
            self.input.write(part)

    def answers(self, look: Callable[[], object]) -> Iterator[dict[str, Any]]:
        """End the question, and yield what the process says. `look` is called now and then."""
        with suppress(BrokenPipeError):
            self.input.close()
        rest = b""
        while True:
            look()
            if not select([self.output], [], [], _LOOK)[0]:
                continue
            part = os.read(self.output.fileno(), 1 << 16)
            if not part:
                return
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                said: dict[str, Any] = msgspec.json.decode(line)
                yield said

    def last_words(self) -> str:
        """The last line of its errors."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "without a word"
