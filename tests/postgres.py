"""A PostgreSQL server of the tests' own, gone when they end, and its crashes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.lab.instruments.postgres_server import running_server as server
from tamis.lab.instruments.postgres_server import server_programs as programs
from tamis.lab.instruments.postgres_server import start, stop

__all__ = ["programs", "server", "stopped"]


@contextmanager
def stopped(dsn: str) -> Iterator[None]:
    """Stop the server of a test as a crash would, during the block."""
    bin = programs()
    assert bin is not None
    folder = Path(dict(each.split("=") for each in dsn.split())["host"])
    stop(bin, folder)
    yield
    start(bin, folder)
