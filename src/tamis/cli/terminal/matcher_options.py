"""`--option NAME=VALUE`, for commands that make a matcher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

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
