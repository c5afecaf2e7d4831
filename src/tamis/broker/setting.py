"""Declaring a setting: one line that drives the option, the variable, the key and the docs."""

from __future__ import annotations

from dataclasses import field
from typing import Any, NamedTuple, NewType

Bytes = NewType("Bytes", int)
"""A number of bytes, which people may write as `64 KiB`."""


class Declared(NamedTuple):
    """What a setting says about itself. Its name and its type are those of the field."""

    help: str
    least: float | None = None
    secret: bool = False  # never shown


def setting(default: Any, help: str, *, least: float | None = None, secret: bool = False) -> Any:
    """A field of a dataclass of settings.

    Types: `bool`, `int`, `float`, `str`, `Bytes`, `Path`, `timedelta`, `tuple[str, ...]` and
    `Literal[…]`, each also with `| None`. The field `keep_events` is the option `--keep-events`,
    the variable `TAMIS_KEEP_EVENTS` and the key `keep-events` of the file.
    """
    return field(default=default, metadata={"setting": Declared(help, least, secret)})


def group(kind: type, prefix: str) -> Any:
    """A field that is a dataclass of settings itself; their names get a prefix."""
    return field(default_factory=kind, metadata={"group": prefix})
