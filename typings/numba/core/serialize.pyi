"""Numba's way to pickle, which takes its types and compiled code too."""

from collections.abc import Callable

_numba_unpickle: Callable[[int, bytes, bytes], object]

def dumps(what: object) -> bytes: ...
