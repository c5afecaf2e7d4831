"""Output without control characters: data must not steer the terminal.

Events, ids, conditions, file names and messages of operators are other people's text. An escape
sequence in them could rewrite the screen, and a bidirectional override could show a condition that
was never written. All output passes here: what commands print passes a `PrintableStream`, and what
`rich` renders passes a `console.PrintableConsole`, whose own escape sequences steer the terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# Control characters but the newline, bidirectional controls, other line ends, lone surrogates.
_STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""The text with its control characters escaped; newlines stay.

    >>> print(printable("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    r"""The same, with newlines escaped too, for a cell of a table or a part of a line.

    >>> print(one_line("a\nb"))
    a\nb
    """
    return printable(text).replace("\n", "\\n")


class PrintableStream:
    """A text stream that escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text; bytes are refused, by which click knows a stream of text."""
        if not isinstance(text, str):
            raise TypeError("expected text")
        return self.stream.write(printable(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def printable_output() -> Iterator[None]:
    """Within the block, standard output and standard error escape control characters."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, PrintableStream(each)) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
