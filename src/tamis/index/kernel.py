"""How our compiled loops are compiled: one place, so that all are compiled alike.

Compiled code is kept on disk between processes (see `codestore`). A kernel has the code of the
functions that it calls inside it, so it is out of date when one of them changes. Kernels call
across files only into this package; so the code of each state of it has a folder of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import config, njit

from tamis.index.codestore import CodeStore, Sources

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
_SHARED = Sources(lambda: (_PACKAGE / "index").glob("*.py"))


def _compiled(function: Callable[_P, _R], **options: Any) -> Dispatcher[_P, _R]:
    """Numba's `njit`, with a place on disk for the code.

    Where the source cannot be read, as in an archive, each process compiles for itself.
    """
    compiled = njit(nogil=True, **options)(function)
    if not config.DISABLE_JIT:
        with suppress(OSError):
            compiled._cache = CodeStore(function, _SHARED, _FOLDERS)
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
