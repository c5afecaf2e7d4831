"""Who appends when: services that share a log take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Turns(Protocol):
    """The order of those who append to one log."""

    def turn(self) -> AbstractContextManager[None]:
        """Append alone. What others have appended is in the log when the block begins."""

    def follow(self) -> int:
        """Take what others have appended into the log; returns its end."""


class SoleTurns:
    """The turns of a service that has its log for itself."""

    @contextmanager
    def turn(self) -> Iterator[None]:
        yield

    def follow(self) -> int:
        return 0
