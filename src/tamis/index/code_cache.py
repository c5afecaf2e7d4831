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
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
import numpy as np
from numba import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tamis.index.fingerprint import fingerprint

_CHECKSUM = 16  # bytes
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
            if data is not None:
                known, code = pickle.loads(data)
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
        digest = _digest(
            numba.__version__,
            sys.implementation.cache_tag,
            codegen.magic_tuple(),  # the processor and its features
            (config.OPT, config.BOUNDSCHECK),
            np.__version__,
            self._fingerprint,
            types,
            *_classes(types),
        )
        return f"{self._title}-{digest}"

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
    checksum, data = data[:_CHECKSUM], data[_CHECKSUM:]
    return data if checksum == _checksum(data) else None


def write(path: Path, data: bytes) -> bool:
    """Write a file such that others see all of it or nothing; whether that was possible."""
    part = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(_checksum(data) + data)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            return False
    except OSError:
        return False
    return True


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM).digest()


def _digest(*parts: object) -> str:
    return blake2b("\n".join(map(str, parts)).encode(), digest_size=_CHECKSUM).hexdigest()


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
