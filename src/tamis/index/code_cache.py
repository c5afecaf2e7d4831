"""A cache of compiled code on disk: one file per specialisation of a kernel, written atomically.

Numba's own cache keeps an index and numbered code files. Suppose two processes start together and
compile one function for different types, or for different processors on a shared disk. Both may
write file number 1, and the index of one then points to the code of the other: wrong answers, or a
crash. A truncated file breaks every later process.

Here the file name is a digest of everything that the code depends on, so two processes that write
the same name write equivalent code. A file becomes visible only when it is complete. A file with a
wrong checksum is ignored and written again. Code that no process has used for 30 days is deleted.

Numba compiles the functions that a kernel calls into the kernel, and treats globals as constants.
So compiled code becomes stale when a callee or a constant changes, in any file. The fingerprint of
a kernel follows these references in memory: two processes have the same fingerprint exactly if they
would compile the same code. It reads no files and ignores comments, docstrings and line numbers.
"""

from __future__ import annotations

import os
import pickle
import re
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from tempfile import gettempdir
from time import time
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tamis.files.atomic import atomic_file
from tamis.files.checksum import DIGEST, digest
from tamis.index.symbol_names import SCHEME

_COMPLETE = ("complete",)  # in place of the types of arguments
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

    def mark_complete(self, codegen: Any) -> None:
        """Note that code for all types that this function is called with has been saved."""
        name = self._name(_COMPLETE, codegen)
        any(write(each / name, b"") for each in self._folders)

    def is_complete(self, codegen: Any) -> bool:
        """Whether that was noted, by any process."""
        name = self._name(_COMPLETE, codegen)
        found = next((each / name for each in self._folders if (each / name).exists()), None)
        if found is not None:
            _mark_used(found)
        return found is not None

    def _name(self, types: Any, codegen: Any) -> str:
        """A file name that is unique to this code."""
        parts = (
            SCHEME,
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


def private_folders(folders: Iterable[Path]) -> list[Path]:
    """The folders to which nobody else can write: whoever writes to them chooses what runs here.

    If none is left, the code goes to a folder of this user among the temporary files.
    """
    private = []
    for folder in folders:
        if _is_private(folder):
            private.append(folder)
        else:
            _warn_once(
                folder,
                f"others can write to {folder}, so compiled code from there is not used; "
                f"`chmod go-w {folder}` if you trust what is in it",
            )
    if not private:
        mine = Path(gettempdir()) / f"tamis-kernels-{os.geteuid()}"
        # Somebody else may have made a folder of this name first.
        taken = not _is_private(mine)
        private = [mine.with_name(f"{mine.name}-{secrets.token_hex(8)}") if taken else mine]
    return private


def _is_private(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return True  # there is nothing to run; `write` creates it for this user alone
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


def is_writable(folder: Path) -> bool:
    """Whether files can be written to a folder, which is made if it does not exist."""
    there = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    return os.access(there, os.W_OK)


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
        if not path.parent.is_dir():
            path.parent.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
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
    """Warn that every process has to compile, which is slow."""
    _warn_once(
        folder,
        f"cannot write compiled code to {folder}, so every process has to compile; set "
        "NUMBA_CACHE_DIR to a writable folder",
    )


def _warn_once(folder: Path, what: str) -> None:
    if folder not in _warned:
        _warned.add(folder)
        warnings.warn(what, RuntimeWarning, stacklevel=3)


_SIZE = 16  # bytes
_LIBRARIES = frozenset({"numba", "numpy", "llvmlite", *sys.stdlib_module_names})
"""Packages whose code is determined by their version. Only names are included for them."""


def fingerprint(function: Callable[..., Any]) -> str:
    """The hexadecimal digest of a function, its constants and everything that it calls."""
    digest = blake2b(digest_size=_SIZE)
    for part in _parts(function, {}):
        digest.update(part.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _parts(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Texts that describe a value. `seen` numbers the visited functions, which may be recursive."""
    function = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
    if isinstance(function, FunctionType) and not _in_library(function):
        if id(function) in seen:
            yield f"function {seen[id(function)]}"
            return
        seen[id(function)] = len(seen)
        yield f"function {function.__module__} {function.__qualname__}"
        yield repr(sorted(map(repr, getattr(value, "targetoptions", {}).items())))
        yield from _parts(function.__defaults__, seen)
        yield from _code(function.__code__, function.__globals__, seen, function.__doc__)
        for cell in function.__closure__ or ():
            yield from _parts(cell.cell_contents, seen)
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {value.shape}"
        yield blake2b(np.ascontiguousarray(value).tobytes(), digest_size=_SIZE).hexdigest()
    elif isinstance(value, type):
        yield f"type {_name(value)} {getattr(value, '_fields', '')}"
        yield from _parts(tuple(getattr(value, "_field_defaults", {}).items()), seen)
    elif isinstance(value, tuple):
        yield f"tuple {len(value)}"
        for each in value:
            yield from _parts(each, seen)
    elif isinstance(value, frozenset):
        yield f"set {sorted(map(repr, value))}"  # the order of a set differs between processes
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__}"
    elif " at 0x" in (written := repr(value)):  # a library object, for example numba's `carray`
        yield f"object {_name(type(value))} {_name(value)}"
    else:
        yield f"{_name(type(value))} {written}"


def _code(
    code: CodeType, names: dict[str, Any], seen: dict[int, int], docstring: str | None = None
) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    yield repr((code.co_argcount, code.co_kwonlyargcount, code.co_flags))
    first = 1 if docstring is not None and code.co_consts[:1] == (docstring,) else 0
    for constant in code.co_consts[first:]:
        if isinstance(constant, CodeType):
            yield from _code(constant, names, seen)
        else:
            yield from _parts(constant, seen)
    for name in code.co_names:
        if name not in names:
            continue
        value = names[name]
        yield from _parts(value, seen)
        if isinstance(value, ModuleType) and not _in_library(value):
            for other in code.co_names:  # the bytecode does not say which are its attributes
                if hasattr(value, other):
                    yield from _parts(getattr(value, other), seen)


def _in_library(value: Any) -> bool:
    module = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return module.partition(".")[0] in _LIBRARIES


def _name(value: Any) -> str:
    named = getattr(value, "__qualname__", None)
    return f"{getattr(value, '__module__', '')}.{named}"
