"""The decorators that compile kernels. All kernels are compiled the same way.

Compiled code is cached on disk (see `code_cache`) under a fingerprint of everything that it depends
on. So kernels may call each other across files and packages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import config, njit
from numba.core import serialize

from tamis.index.code_cache import CodeCache, is_writable, private_folders

if TYPE_CHECKING:
    from numba import Dispatcher

# A kernel that returns an array calls this function for the class of the array, and does not look
# for exceptions. A Ctrl-C during the kernel was raised here, the first Python code after it, and
# crashed the process. With a cache in C no Python code runs, from the second call of a kernel on.
serialize._numba_unpickle = lru_cache(maxsize=None)(serialize._numba_unpickle)

_PACKAGE = Path(__file__).resolve().parent.parent
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _folders() -> Iterable[Path]:
    """The cache folders: NUMBA_CACHE_DIR if set, else inside the package, then the user's cache."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return [Path(given)]
    own = _PACKAGE / "__pycache__" / "kernels"
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        return [own, (Path(cache) if cache else Path.home() / ".cache") / "tamis" / "kernels"]
    except RuntimeError:  # the user has no home directory
        return [own]


_FOLDERS = tuple(private_folders(_folders()))


def _compiled(function: Callable[_P, _R], **options: Any) -> Dispatcher[_P, _R]:
    """Numba's `njit`, with our cache on disk."""
    compiled = njit(nogil=True, **options)(function)
    if not config.DISABLE_JIT:
        compiled._cache = CodeCache(function, _FOLDERS)
    return compiled


def kernel(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """Compile a loop. The code is cached on disk and runs without the GIL."""
    return _compiled(function)


def inlined(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """Compile a function that is inlined into the kernels that call it.

    Passing a tuple of arrays to a function costs more than a small step of an inner loop (naive:
    26 ns per clause with calls, 19 ns without).
    """
    return _compiled(function, inline="always")


def is_compiled(*kernels: Dispatcher[..., Any]) -> bool:
    """Whether the code of kernels, and of all that they call, is on disk: somebody noted that.

    True as well if no code can be saved, because then every process compiles for itself.
    """
    if config.DISABLE_JIT or not any(map(is_writable, _FOLDERS)):
        return True
    return all(each._cache.is_complete(each.targetctx.codegen()) for each in kernels)


def note_compiled(*kernels: Dispatcher[..., Any]) -> None:
    """Note that the code of kernels is on disk, for all types with which they are called."""
    if not config.DISABLE_JIT:
        for each in kernels:
            each._cache.mark_complete(each.targetctx.codegen())


def cache_folder() -> Path:
    """The folder that code is saved in."""
    return next(filter(is_writable, _FOLDERS), _FOLDERS[0])
