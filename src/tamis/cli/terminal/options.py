"""Options that several commands have, and the types of their values."""

from __future__ import annotations

from typing import Any

import click

_MOST = 10**10  # more than any machine holds

seed_option = click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the random numbers.",
)


class WholeNumber(click.ParamType[int]):
    """A whole number from `least` up, written as 1000000 or as 1e6."""

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


def split_names(text: str) -> tuple[str, ...]:
    """The names in a text, which has commas between them.

    >>> split_names("title, price,")
    ('title', 'price')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())
