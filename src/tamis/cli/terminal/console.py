"""One console for all commands."""

from __future__ import annotations

import os

from rich.console import Console

_PLAIN_WIDTH = 120  # columns where standard output is not a terminal


def stdout_console() -> Console:
    """A console on standard output: colours in a terminal, plain text in a pipe or a file.

    Numbers are not highlighted, and a user's text is never read as markup.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PLAIN_WIDTH
    return console
