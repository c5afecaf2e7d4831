"""Groups of commands that are imported when they are called.

Neither help nor completion imports any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

CommandTable = Mapping[str, tuple[str, str]]
"""By name: `module:function` of a command, imported when used, and its line in the help."""


class LazyGroup(click.Group):
    """A group with tables of commands, each under a title in the help."""

    def __init__(self, *arguments: Any, tables: Mapping[str, CommandTable], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tables = tables
        self._table = {name: line for table in tables.values() for name, line in table.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._table))
        for title, table in self._tables.items():
            with formatter.section(title):
                # One column for all sections.
                lines = [(f"{name:<{width}}", help) for name, (_, help) in table.items()]
                formatter.write_dl(lines)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, and the options of the group itself."""
        found = [
            CompletionItem(name, help=help)
            for name, (_, help) in self._table.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)
