"""Copies a log while others append to it: everything up to one sequence number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tamis.errors import StoreError
from tamis.store.base import BASE
from tamis.store.head import CLEAN, Head, create_head
from tamis.store.log import DOCUMENT, SEGMENTS, Log, segment_files
from tamis.store.log_locks import COMPACTING, LogLocks
from tamis.store.segment import segment_name
from tamis.store.segment_files import HEAD


class LogPart(NamedTuple):
    """A file of a log, by its path in the log, and how much of it to copy."""

    name: str
    size: int
    complete: bool  # it never grows


class FrozenLog(NamedTuple):
    """A log up to one sequence number. Its files stay as they are while it is frozen."""

    head: Head
    parts: list[LogPart]

    def write_head(self, folder: Path) -> None:
        """Write the head of a copy."""
        create_head(folder / HEAD, self.head._replace(state=CLEAN))


@contextmanager
def frozen(log: Log) -> Iterator[FrozenLog]:
    """Let nobody merge or trim a log. Others may append; what they append is not part of this."""
    if log.format == 1:
        raise StoreError(f"{log.folder}: has format 1; run `tamis log upgrade` first")
    with LogLocks(log.folder).held(COMPACTING, "cannot be copied"):
        files = segment_files(log.folder, str(log.identity))
        head, begin = files.head(), files.begin
        parts = [
            LogPart(name, (log.folder / name).stat().st_size, False)
            for name in (DOCUMENT, BASE)
            if (log.folder / name).exists()
        ]
        for first in files.list_names():
            if begin <= first < head.end:
                name = f"{SEGMENTS}/{segment_name(first)}"
                last = first == head.segment
                size = head.size if last else (log.folder / name).stat().st_size
                parts.append(LogPart(name, size, not last))
        yield FrozenLog(head, parts)
