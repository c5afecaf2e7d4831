"""The part of cloudpickle that tamis uses; it ships no types."""

from typing import Any

def dumps(obj: Any, protocol: int | None = ...) -> bytes: ...
