"""Numbers of things on the command line, which may be written as 1e6."""

from __future__ import annotations

from typing import Any

import click

_MOST = 10**10  # more than any machine holds


class Count(click.ParamType[int]):
    """A whole number from `least` up, as 1000000 or as 1e6."""

    name = "number"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not self._least <= number <= _MOST or number != int(number):
            self.fail(f"{value!r} is not a whole number from {self._least:,} to 1e10.", param, ctx)
        return int(number)
