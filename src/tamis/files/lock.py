"""Locks on files. The kernel releases a lock when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold an exclusive lock on a file, which is created if needed; yields its descriptor.

    Each call opens the file anew, so threads of one process exclude each other too. Without
    `wait`, a lock that somebody else holds raises `BlockingIOError`.
    """
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield opened
    finally:
        os.close(opened)
