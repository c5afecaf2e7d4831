"""Operators as conditions know them: what a call takes and what it gives, and no function.

An operator is an expensive, pluggable function. Whoever reads, checks or explains a condition needs
to know how a call of it is written and what it answers with, but never how it is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

KINDS = ("number", "text", "boolean", "any")
"""Kinds of parameters. Of `any` nothing is known until an event comes."""

Rows = tuple[tuple[Any, ...], ...]
"""What an operator gives: a relation over its free parameters, in their order.

No row at all is false. An operator without free parameters is true by the one empty row, `((),)`.
"""


class Parameter(NamedTuple):
    """One place of a call. A variable may stand where it is `free`, a constant anywhere."""

    name: str
    kind: str
    free: bool


@dataclass(frozen=True)
class Signature:
    """An operator's name, the places of its calls, and the attributes that it reads of an event."""

    name: str
    parameters: tuple[Parameter, ...]
    reads: tuple[str, ...]

    @property
    def free(self) -> tuple[int, ...]:
        """The positions of the free parameters: what each row of an answer has a value for."""
        return tuple(at for at, parameter in enumerate(self.parameters) if parameter.free)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(parameter.name for parameter in self.parameters)})"


@dataclass(frozen=True)
class Fault:
    """An operator could not answer: why, in words, and what sort of failure it was.

    `kind` is `raised`, `refused` (it says that it can do nothing with such an event), `timeout`,
    `nonsense` (it answered what it may not), or `set aside` (it was not asked, since it failed too
    often of late).
    """

    reason: str
    kind: str = "raised"
