"""The whole tree of commands."""

from __future__ import annotations

import click

from tamis.cli.main import tamis


def commands(group: click.Group = tamis) -> dict[str, click.Command]:
    """Every command below a group, by its words: `log tail`. Mere groups are left out."""
    found: dict[str, click.Command] = {}
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                found |= {f"{name} {each}": below for each, below in commands(command).items()}
            if not isinstance(command, click.Group) or command.invoke_without_command:
                found[name] = command
    return found


def options(command: click.Command) -> set[str]:
    return {name for each in command.params for name in each.opts}
