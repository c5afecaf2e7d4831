"""How our compiled loops are compiled: one place, so that all are compiled alike.

Compiled code is kept on disk between processes (see `code_cache`), by a fingerprint of all that it
depends on. So kernels may call each other across files and packages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import config, njit

from tamis.index.code_cache import CodeCache

if TYPE_CHECKING:
    from numba import Dispatcher

_PACKAGE = Path(__file__).resolve().parent.parent
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _folders() -> Iterable[Path]:
    """Where the user says (NUMBA_CACHE_DIR); else beside the package, or in the user's cache."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return [Path(given)]
    own = _PACKAGE / "__pycache__" / "kernels"
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        return [own, (Path(cache) if cache else Path.home() / ".cache") / "tamis" / "kernels"]
    except RuntimeError:  # nobody's home
        return [own]


_FOLDERS = tuple(_folders())


def _compiled(function: Callable[_P, _R], **options: Any) -> Dispatcher[_P, _R]:
    """Numba's `njit`, with a place on disk for the code."""
    compiled = njit(nogil=True, **options)(function)
    if not config.DISABLE_JIT:
        compiled._cache = CodeCache(function, _FOLDERS)
    return compiled


def kernel(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """A compiled loop: kept on disk between processes, run without holding the GIL."""
    return _compiled(function)


def inlined(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """A step that a kernel takes in its innermost loop, compiled into it.

    Handing a tuple of arrays to a function costs more than such a step (naive: 26 ns a clause with
    calls, 19 ns without).
    """
    return _compiled(function, inline="always")
