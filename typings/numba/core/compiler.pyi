"""What numba makes of a function."""

from typing import Any, Self

class CompileResult:
    @classmethod
    def _rebuild(cls, context: Any, /, *parts: Any) -> Self: ...
