"""Signatures of operators: parameters, attributes read, and rows returned, without the function.

An operator is an expensive, pluggable function. To parse, check or explain a condition, one must
know how a call is written and what it returns, but not how it is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

KINDS = ("number", "text", "boolean", "any")
"""Kinds of parameters. A value of kind `any` is known only when an event comes."""

Rows = tuple[tuple[Any, ...], ...]
"""What an operator returns: a relation over its free parameters, in order.

No rows means false. An operator without free parameters is true with one empty row, `((),)`.
"""


class Parameter(NamedTuple):
    """A parameter. An argument is a constant or, if the parameter is `free`, a variable."""

    name: str
    kind: str
    free: bool


@dataclass(frozen=True)
class Signature:
    """The name of an operator, its parameters, and the attributes that it reads."""

    name: str
    parameters: tuple[Parameter, ...]
    reads: tuple[str, ...]

    @property
    def free(self) -> tuple[int, ...]:
        """The positions of the free parameters, which are the columns of a row."""
        return tuple(at for at, parameter in enumerate(self.parameters) if parameter.free)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(parameter.name for parameter in self.parameters)})"


@dataclass(frozen=True)
class Fault:
    """A failed call: the reason, and the kind of failure.

    `kind` is `raised`, `refused` (the operator cannot handle such an event), `timeout`, `nonsense`
    (an invalid answer), or `set aside` (not called, since it failed too often recently).
    """

    reason: str
    kind: str = "raised"
