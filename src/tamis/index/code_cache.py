"""A cache of compiled code on disk: one file per specialisation of a kernel, written atomically.

Numba's own cache keeps an index and numbered code files. Suppose two processes start together and
compile one function for different types, or for different processors on a shared disk. Both may
write file number 1, and the index of one then points to the code of the other: wrong answers, or a
crash. A truncated file breaks every later process.

Here the file name is a digest of everything that the code depends on, so two processes that write
the same name write equivalent code. A file becomes visible only when it is complete. A file with a
wrong checksum is ignored and written again. Code that no process has used for 30 days is deleted.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import time
from typing import Any

import numba
import numpy as np
from numba import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tamis.files.atomic import atomic_file
from tamis.files.checksum import DIGEST, digest
from tamis.index.fingerprint import fingerprint

_DAY = 86_400  # seconds
_UNUSED_DAYS = 30
# Code, or the temporary file of a process that was killed. Other files may lie in the same folder.
_OWN_FILE = re.compile(rf".+-[0-9a-f]{{{2 * DIGEST}}}(\.[0-9a-f]+\.tmp)?")
_warned: set[Path] = set()  # folders for which a warning was issued
_swept: set[Path] = set()  # folders without stale files


class CodeCache:
    """The compiled code of one function. Implements the cache interface of numba's dispatcher.

    Code is searched for in all folders and written to the first writable one. A folder that came
    with the installation may be complete and read-only.
    """

    def __init__(self, function: Callable[..., Any], folders: Sequence[Path]) -> None:
        self._function = function
        self._folders = folders
        self._title = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """The first folder, for numba's statistics."""
        return str(self._folders[0])

    def load_overload(self, types: Any, context: Any) -> Any:
        """The code for arguments of these types, ready to run, or None."""
        context.refresh()
        name = self._name(types, context.codegen())
        for folder in self._folders:
            data = read(folder / name)
            if data is None:
                continue
            try:
                known, code = pickle.loads(data)
            except (ImportError, AttributeError):  # it refers to a class that has moved since
                continue
            if known == types:  # different types may have the same text
                _mark_used(folder / name)
                return CompileResult._rebuild(context, *code)
        return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        """Save code for later processes, if a folder is writable."""
        if compiled.library.has_dynamic_globals:  # contains addresses of this process
            return
        name = self._name(types, compiled.library.codegen)
        data = dumps((types, compiled._reduce()))
        written = next((each for each in self._folders if write(each / name, data)), None)
        if written is None:
            _warn(self._folders[0])
        else:
            _sweep(written)

    def _name(self, types: Any, codegen: Any) -> str:
        """A file name that is unique to this code."""
        parts = (
            numba.__version__,
            sys.implementation.cache_tag,
            codegen.magic_tuple(),  # the processor and its features
            (config.OPT, config.BOUNDSCHECK),
            np.__version__,
            self._fingerprint,
            types,
            *_classes(types),
        )
        known = "\n".join(map(str, parts))
        return f"{self._title}-{digest(known.encode()).hex()}"

    @cached_property
    def _fingerprint(self) -> str:
        """Computed lazily: a kernel may call functions that are defined after it."""
        return fingerprint(self._function)

    def enable(self) -> None:
        """Nothing to do: it is always on."""

    def disable(self) -> None:
        """Nothing to do: it is always on."""

    def flush(self) -> None:
        """Nothing to do: cached code never becomes invalid."""


def _classes(types: Iterable[Any]) -> Iterator[str]:
    """The qualified names of the named tuples among some types: numba gives only bare names."""
    for each in types:
        kind = getattr(each, "instance_class", None)
        if kind is not None:
            yield f"{kind.__module__}.{kind.__qualname__}"
        yield from _classes(getattr(each, "types", ()))


def read(path: Path) -> bytes | None:
    """The contents of a file, or None if it is missing or incomplete."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, data = data[:DIGEST], data[DIGEST:]
    return data if checksum == digest(data) else None


def write(path: Path, data: bytes) -> bool:
    """Write a file atomically. Returns whether that succeeded."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, durable=False) as file:  # a lost file is compiled again
            file.write(digest(data) + data)
    except OSError:
        return False
    return True


def _mark_used(path: Path) -> None:
    """Renew the date of a file once a day: many file systems do not record when it is read."""
    with suppress(OSError):
        if path.stat().st_mtime < time() - _DAY:
            os.utime(path)


def _sweep(folder: Path) -> None:
    """Delete stale code, once per process. A process that still wants it compiles it again."""
    if folder in _swept:
        return
    _swept.add(folder)
    oldest = time() - _UNUSED_DAYS * _DAY
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):  # another process may sweep at the same time
                if _OWN_FILE.fullmatch(path.name) and path.lstat().st_mtime < oldest:
                    path.unlink()


def _warn(folder: Path) -> None:
    """Warn once per folder that every process has to compile, which is slow."""
    if folder not in _warned:
        _warned.add(folder)
        warnings.warn(
            f"cannot write compiled code to {folder}, so every process has to compile; "
            "set NUMBA_CACHE_DIR to a writable folder",
            RuntimeWarning,
            stacklevel=2,
        )
