"""A fingerprint of everything that the compiled code of a kernel depends on.

Numba compiles the functions that a kernel calls into the kernel, and treats globals as constants.
So compiled code becomes stale when a callee or a constant changes, in any file. The fingerprint
follows these references in memory: two processes have the same fingerprint exactly if they would
compile the same code. It reads no files and ignores comments, docstrings and line numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

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
