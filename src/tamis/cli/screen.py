"""How commands write to the terminal: one console, made alike everywhere."""

from __future__ import annotations

import os
import sys

from rich.console import Console

_PLAIN_WIDTH = 120  # columns where there is no terminal to ask: a file has no right edge


def screen() -> Console:
    """A console on standard output: colours in a terminal, plain text in a pipe or a file.

    Nothing is highlighted by guesswork, and no text of a user's is read as markup.
    """
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(
            highlight=False, markup=False, emoji=False, width=_PLAIN_WIDTH, file=sys.stdout
        )
    return console
