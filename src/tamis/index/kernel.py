"""How our compiled loops are compiled: one place, so that all are compiled alike.

Compiled code is cached on disk between processes. Numba renews a cached function when its own file
changes, but not when a function that it calls changes in another file. Kernels call across files
only into this package, so the cache of each state of this package has a folder of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import config, njit

if TYPE_CHECKING:
    from numba import Dispatcher

_PACKAGE = Path(__file__).resolve().parent.parent


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted((_PACKAGE / "index").glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """Where the user says (NUMBA_CACHE_DIR), else beside the package, else in the user's cache."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    if os.access(_PACKAGE, os.W_OK):
        return _PACKAGE / "__pycache__" / "kernels"
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "tamis" / "kernels"


_FOLDER = str(_cache_folder() / _digest())
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _compiled(function: Callable[_P, _R], **options: Any) -> Dispatcher[_P, _R]:
    """Numba's `njit`, with our cache folder for just this function.

    Where no folder can be written to, the function is compiled in each process.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = _FOLDER
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)
    finally:
        config.CACHE_DIR = before


def kernel(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """A compiled loop: cached on disk between processes, run without holding the GIL."""
    return _compiled(function)


def inlined(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """A step that a kernel takes in its innermost loop, compiled into it.

    Handing a tuple of arrays to a function costs more than such a step (naive: 26 ns a clause with
    calls, 19 ns without).
    """
    return _compiled(function, inline="always")
