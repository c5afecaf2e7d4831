"""SQLite: versions that may lose data, and its errors as those of tamis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from tamis.errors import BrokerError, BusyError, FullError, StoreError

_SAFE = (3, 51, 3)  # earlier versions may lose data when the write-ahead log is reset


def refuse_unsafe() -> None:
    """Refuse an SQLite that may lose data."""
    version = tuple(map(int, apsw.sqlite_lib_version().split(".")))
    if version < _SAFE:
        raise BrokerError(
            f"SQLite {apsw.sqlite_lib_version()} may lose data; apsw from PyPI brings a safe one"
        )


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Within the block, errors of SQLite become those of tamis."""
    try:
        yield
    except apsw.FullError as why:
        raise FullError(f"{path}: the disk is full; make room") from why
    except apsw.BusyError as why:
        raise BusyError(f"{path}: another process holds it; try again") from why
    except apsw.Error as why:
        raise StoreError(f"{path}: {why}") from why
