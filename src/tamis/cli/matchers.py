"""`tamis matchers`: what the registry knows."""

from __future__ import annotations

import click
from rich.text import Text

from tamis.cli.screen import screen
from tamis.match import registry


@click.command()
def matchers() -> None:
    """List the matching algorithms: where they come from, and the idea of each.

    Any of the names goes into `Engine(schema, matcher=NAME)` and `tamis tour --matcher NAME`.
    """
    console = screen()
    widest = max(len(name) for name in registry.matchers())
    for name in registry.matchers():
        entry = registry.entry(name)
        answer = "exact" if entry.exact else "approximate"
        # Lines rather than a table: papers and ideas are too long for columns side by side.
        head = Text.assemble((f"{name:<{widest}}", "bold cyan"), f"  {answer}  ", entry.paper)
        console.print(head, soft_wrap=True)
        console.print(Text(f"    {entry.idea}"), soft_wrap=True)
        if entry.options:
            console.print(Text(f"    options: {', '.join(entry.options)}", "dim"), soft_wrap=True)
