"""`tamis matchers`: what the registry knows, and the options of each."""

from __future__ import annotations

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.screen import screen
from tamis.match import registry


@click.command()
@click.argument("names", nargs=-1)
def matchers(names: tuple[str, ...]) -> None:
    """List the matching algorithms: where they come from, and the idea of each.

    With NAMES, only these, and their options. A name goes into `Engine(schema, matcher=NAME)` and
    `tamis bench match --matcher NAME`, an option beside it: `Engine(schema, NAME, slots=1500)` and
    `--option slots=1500`.
    """
    console = screen()
    shown = [registry.entry(name) for name in names or registry.matchers()]
    widest = max(len(entry.name) for entry in shown)
    for entry in shown:
        answer = "exact" if entry.exact else "approximate"
        # Lines rather than a table: papers and ideas are too long for columns side by side.
        head = Text.assemble((f"{entry.name:<{widest}}", "bold cyan"), f"  {answer}  ", entry.paper)
        console.print(head, soft_wrap=True)
        console.print(Text(f"    {entry.idea}"), soft_wrap=True)
        if names:
            _show_options(console, entry.name)


def _show_options(console: Console, name: str) -> None:
    options = registry.matcher_class(name).options()
    if not options:
        console.print(Text("    no options", "dim"))
    for option in options.values():
        line = f"={option.default}  {option.meaning}; {option.values}"
        console.print(Text.assemble("    ", (option.name, "cyan"), line), soft_wrap=True)
