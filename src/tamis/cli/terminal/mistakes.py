"""A mistake on the command line, in one sentence and a hint."""

from __future__ import annotations

import re

import click

from tamis.errors import suggestion

_PLAIN = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
}


def mistake_text(error: click.ClickException) -> str:
    """What to print for an error of click: the command, what was wrong, what would be right."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return f"tamis: {error.format_message()}"
    context = error.ctx
    command = context.command
    said, hint = error.format_message(), ""
    if isinstance(error, click.NoSuchCommand) and isinstance(command, click.Group):
        said = f"there is no command {error.command_name!r}"
        hint = suggestion(error.command_name, command.list_commands(context))
    elif isinstance(error, click.NoSuchOption):
        options = [
            name
            for each in command.get_params(context)
            for name in (*each.opts, *each.secondary_opts)
            if name.startswith("--")
        ]
        said = f"there is no option {error.option_name}"
        hint = suggestion(error.option_name, options)
    if hint:
        return f"{context.command_path}: {said}{hint}"
    said = re.sub(r"\s*\n\s*", " ", said[:1].lower() + said[1:].removesuffix("."))
    for technical, plain in _PLAIN.items():
        said = said.replace(technical, plain)
    return f"{context.command_path}: {said}\n{context.command_path} --help explains it"
