"""Folders that appear whole or not at all.

Files are written into a folder beside the place, synced, and renamed into it: a process that dies,
a full disk and a power cut leave what was there before.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tamis.errors import SavedIndexError

_PIECE = 4 << 20  # bytes summed and written at a time: they are still in cache when written
_HERE = -100  # AT_FDCWD: paths are not relative to an open folder
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # what this file system has not


@contextmanager
def placed(target: Path, replace: bool) -> Iterator[Path]:
    """A folder to write into, which becomes `target` at the end; or vanishes, if that fails.

    With `replace`, what was there is exchanged for the new in one step and then thrown away:
    whoever looks sees the one or the other.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    with _as_refusal(target):
        if os.path.lexists(target) and not replace:
            raise _exists(target)
        if not target.parent.is_dir():
            raise SavedIndexError(f"{target}: cannot be written: there is no {target.parent}")
        temporary.mkdir()
        try:
            yield temporary
            sync(temporary)
            if replace and target.exists():
                _exchange(temporary, target)
            else:
                _rename_new(temporary, target)
            sync(target.parent)
        finally:  # what is there by now is a part of the new one, or the old one
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _as_refusal(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as why:
        full = why.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "; nothing was changed, make room and save again" if full else ""
        raise SavedIndexError(f"{target}: cannot be written: {why.strerror or why}{hint}") from why


def _exists(target: Path) -> SavedIndexError:
    return SavedIndexError(
        f"{target}: exists already; choose another name, or replace a saved index with replace=True"
    )


def _rename_new(temporary: Path, target: Path) -> None:
    try:
        temporary.rename(target)
    except OSError as why:
        if why.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _exists(target) from None  # somebody was faster
        raise


def _exchange(temporary: Path, target: Path) -> None:
    """Swap two folders; afterwards `temporary` is the old one."""
    # Python has no name for this. Without it there is an instant at which the name is free.
    exchange: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is not None:
        done = exchange(_HERE, os.fsencode(temporary), _HERE, os.fsencode(target), _EXCHANGE)
        if done == 0:
            return
        if (why := ctypes.get_errno()) not in _CANNOT:
            raise OSError(why, os.strerror(why))
    aside = temporary.with_suffix(".old")
    target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.rename(temporary)


def sync(folder: Path) -> None:
    """Have the names in a folder on disk."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(place)
    except OSError as why:
        if why.errno not in _CANNOT:
            raise
    finally:
        os.close(place)


class Summed:
    """A new file that counts and sums what is written to it, and is on disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._sum = 0
        self._begin = 0
        self.size = 0

    def begin(self) -> None:
        """Begin a section: what follows is counted and summed by itself."""
        self._begin, self._sum = self.size, 0

    @property
    def checksum(self) -> str:
        """CRC-32 of the section so far, as eight hexadecimal digits."""
        return f"{self._sum:08x}"

    @property
    def closed(self) -> bool:
        """As every file has it; so have `flush` and `tell`."""
        return self._file.closed

    def write(self, data: Any) -> int:
        """Write bytes, or anything that lies in memory like them."""
        given = memoryview(data).cast("B")
        for start in range(0, len(given), _PIECE):
            piece = given[start : start + _PIECE]
            self._sum = zlib.crc32(piece, self._sum)
            while len(piece):  # a nearly full disk takes a part
                piece = piece[self._file.write(piece) :]
        self.size += len(given)
        return len(given)

    def flush(self) -> None:
        """Nothing is held back."""

    def tell(self) -> int:
        """How much of the section was written."""
        return self.size - self._begin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()
