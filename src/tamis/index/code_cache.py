"""Compiled code on disk: a file for each specialisation of a kernel, which is whole or not there.

Numba's own cache keeps an index beside numbered files of code. Two processes that start together
and compile one function for different types, or for different processors on a shared disk, may both
write number 1, and the index then names the code of the other: wrong answers, or a crash. A file
that was cut short stops every process that comes after.

Here the name of a file says all that its code depends on, so that whoever writes the same name
writes code that does the same. A file appears at once, when it is complete. One whose checksum is
wrong is as good as none, and is written again.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tamis.files.atomic import atomic_file
from tamis.files.checksum import DIGEST, digest
from tamis.index.fingerprint import fingerprint

_told: set[Path] = set()  # folders of which it was said that they cannot be written to


class CodeCache:
    """The compiled code of one function. It has what numba's dispatcher asks of a cache.

    Code is looked for in all folders, and written to the first that can be written to: one that
    came with an installation may be complete and read-only.
    """

    def __init__(self, function: Callable[..., Any], folders: Sequence[Path]) -> None:
        self._function = function
        self._folders = folders
        self._title = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """Where code is kept, for numba's statistics."""
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
            except (ImportError, AttributeError):  # it names a class that has moved since
                continue
            if known == types:  # different types may be written alike
                return CompileResult._rebuild(context, *code)
        return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        """Keep code for the processes to come, where there is a place for it."""
        if compiled.library.has_dynamic_globals:  # addresses of this process
            return
        name = self._name(types, compiled.library.codegen)
        data = dumps((types, compiled._reduce()))
        if not any(write(folder / name, data) for folder in self._folders):
            _tell(self._folders[0])

    def _name(self, types: Any, codegen: Any) -> str:
        """A name that no other code has."""
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
        """Made late: a kernel may call others that its file defines further down."""
        return fingerprint(self._function)

    def enable(self) -> None:
        """Nothing to do: it is always on."""

    def disable(self) -> None:
        """Nothing to do: it is always on."""

    def flush(self) -> None:
        """Nothing to do: what is kept stays right."""


def _classes(types: Iterable[Any]) -> Iterator[str]:
    """Where the named tuples among some types are defined: numba writes their bare names."""
    for each in types:
        kind = getattr(each, "instance_class", None)
        if kind is not None:
            yield f"{kind.__module__}.{kind.__qualname__}"
        yield from _classes(getattr(each, "types", ()))


def read(path: Path) -> bytes | None:
    """What was written to a file; None where that is not there, or not whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, data = data[:DIGEST], data[DIGEST:]
    return data if checksum == digest(data) else None


def write(path: Path, data: bytes) -> bool:
    """Write a file such that others see all of it or nothing; whether that was possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, durable=False) as file:  # a lost one is compiled again
            file.write(digest(data) + data)
    except OSError:
        return False
    return True


def _tell(folder: Path) -> None:
    """Say once that every process will have to compile, which takes long."""
    if folder not in _told:
        _told.add(folder)
        warnings.warn(
            f"compiled code cannot be kept in {folder}, so that each process has to compile; "
            "let NUMBA_CACHE_DIR name a folder that can be written to",
            RuntimeWarning,
            stacklevel=2,
        )
