"""Compiled loops of this package, which call each other across its files.

`tamis.index.kernel` keeps compiled code by the contents of its own file and of `tamis.index`. A
kernel here has code of other files of this package inside it as well, so their contents count too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tamis.index import kernel as shared
from tamis.index.codestore import CodeStore, Sources

if TYPE_CHECKING:
    from numba import Dispatcher

_HERE = Path(__file__).resolve().parent
_SOURCES = Sources(lambda: [*_HERE.glob("*.py"), *(_HERE.parent / "index").glob("*.py")])
_P = ParamSpec("_P")
_R = TypeVar("_R")


def kernel(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """A compiled loop: kept on disk between processes, run without holding the GIL."""
    return _stored(shared.kernel(function), function)


def inlined(function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    """A step that a kernel takes in its innermost loop, compiled into it."""
    return _stored(shared.inlined(function), function)


def _stored(compiled: Dispatcher[_P, _R], function: Callable[_P, _R]) -> Dispatcher[_P, _R]:
    if isinstance(getattr(compiled, "_cache", None), CodeStore):
        compiled._cache = CodeStore(function, _SOURCES, shared._FOLDERS)
    return compiled
