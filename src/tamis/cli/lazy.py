"""Groups of commands that are imported when they are called. Help imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

CommandTable = Mapping[str, tuple[str, str]]
"""By name: `module:function` of a command, imported when used, and its line in the help."""


class LazyGroup(click.Group):
    """A group with a table of commands."""

    def __init__(self, *arguments: Any, table: CommandTable, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table = table

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
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in self._table.items()])
