"""The kinds of values that settings have: how each is written and read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from tamis.broker.setting import Bytes

_SIZES = {"": 1, "b": 1, **{f"{letter}ib": 1024**at for at, letter in enumerate("kmgt", 1)}}
_SPANS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_WITH_UNIT = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Kind(NamedTuple):
    """How values of one type are written.

    `read` takes a text, and raises `ValueError` with what is wrong. `plain` are the types that a
    file may hold instead of a text. `show` writes a value as TOML.
    """

    name: str
    read: Callable[[str], Any]
    plain: tuple[type, ...] = ()
    show: Callable[[Any], str] = json.dumps
    many: bool = False

    def accept(self, value: Any) -> Any:
        """A value as a file holds it."""
        if self.many:
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise ValueError("is not an array of texts")
            return tuple(value)
        if isinstance(value, str):
            return self.read(value)
        if not isinstance(value, self.plain) or (
            isinstance(value, bool) and bool not in self.plain
        ):
            raise ValueError(f"is not a {self.name}")
        return self.read(str(value).lower() if isinstance(value, bool) else str(value))


def kind_of(hint: Any) -> Kind:
    """The kind of a type; `| None` makes no difference."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is Literal:
        return _choice(get_args(hint))
    return _KINDS[hint]


def _choice(values: tuple[str, ...]) -> Kind:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"is not one of {', '.join(values)}")
        return text

    return Kind("|".join(values), read)


def _flag(text: str) -> bool:
    if text.lower() not in _YES + _NO:
        raise ValueError("is not true or false")
    return text.lower() in _YES


def _whole(text: str) -> int:
    try:
        value = float(text) if "e" in text.lower() else int(text)
    except ValueError:
        raise ValueError("is not a whole number") from None
    if value != int(value):
        raise ValueError("is not a whole number")
    return int(value)


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


def _size(text: str) -> Bytes:
    found = _WITH_UNIT.fullmatch(text)
    if found is None or found[2].lower() not in _SIZES:
        raise ValueError("is not a size: write a number of bytes, or 64 KiB, 16 MiB, 10 GiB")
    return Bytes(int(float(found[1]) * _SIZES[found[2].lower()]))


def _span(text: str) -> timedelta:
    found = _WITH_UNIT.fullmatch(text)
    if found is None or found[2].lower() not in _SPANS:
        raise ValueError(
            "is not a time span: write a number of seconds, or 500ms, 30s, 10m, 12h, 7d"
        )
    try:
        return timedelta(seconds=float(found[1]) * _SPANS[found[2].lower()])
    except OverflowError:
        raise ValueError("is too long") from None


def _show_size(value: int) -> str:
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % _SIZES[unit.lower()] == 0:
            return json.dumps(f"{value // _SIZES[unit.lower()]} {unit}")
    return str(value)


def _show_span(value: timedelta) -> str:
    seconds = value.total_seconds()
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SPANS[unit] == 0:
            return json.dumps(f"{seconds / _SPANS[unit]:.0f}{unit}")
    return json.dumps(f"{seconds:g}s")


def _path(text: str) -> Path:
    if not text:
        raise ValueError("is an empty path")
    return Path(text)


_KINDS: dict[Any, Kind] = {
    bool: Kind("true or false", _flag, (bool,)),
    int: Kind("number", _whole, (int,), str),
    float: Kind("number", _real, (int, float), str),
    str: Kind("text", str),
    Path: Kind("path", _path, (), lambda path: json.dumps(str(path))),
    Bytes: Kind("size", _size, (int,), _show_size),
    timedelta: Kind("time span", _span, (int, float), _show_span),
    tuple[str, ...]: Kind("text", str, (), lambda values: json.dumps(list(values)), many=True),
}
