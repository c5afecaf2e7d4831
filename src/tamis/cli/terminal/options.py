"""Options that several commands have, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

_MOST = 10**10  # more than any machine holds
_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)
PATH = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
log_argument = click.argument("folder", metavar="LOG", type=PATH)


def option(
    name: str,
    help: str,
    type: Any = None,
    default: Any = None,
    *,
    required: bool = False,
    callback: Callable[..., Any] | None = None,
) -> Callable[[_Command], _Command]:
    """An option with a value. The help shows its default, if there is one."""
    # To click, a default of None is a value too.
    shown = {} if default is None else {"default": default, "show_default": True}
    return click.option(name, type=type, required=required, help=help, callback=callback, **shown)


now_option = option(
    "--now", "The moment of all events, for conditions that mention now.  [default: the present]"
)


def seed_option(default: int = 1, of: str = "the random numbers") -> Callable[[_Command], _Command]:
    """`--seed`, so that a command draws the same again."""
    return option("--seed", f"Seed of {of}.", click.IntRange(0), default)


matcher_option = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the matcher; may be repeated. `tamis matchers MATCHER` lists them.",
)


def parse_options(matcher: str, given: Sequence[str]) -> dict[str, Any]:
    """The options of a matcher from the command line."""
    if not given:
        return {}
    from tamis.match.options import chosen
    from tamis.match.registry import matcher_class

    kind, values = matcher_class(matcher), {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(
                f"{text!r} is not of the form NAME=VALUE", param_hint="--option"
            )
        values[name] = chosen(kind, name).parse(value)
    return values


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
