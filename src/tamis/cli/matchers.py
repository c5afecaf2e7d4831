"""`tamis matchers`: the registry as a table."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from tamis.cli.screen import screen
from tamis.match import registry


@click.command()
def matchers() -> None:
    """List the matching algorithms: where they come from, and the idea of each.

    Any of the names goes into `Engine(schema, matcher=NAME)` and `tamis demo --matcher NAME`.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in ("name", "answer", "paper", "idea", "options"):
        table.add_column(title, no_wrap=title in ("name", "answer", "paper"))
    for name in registry.matchers():
        entry = registry.entry(name)
        answer = "exact" if entry.exact else "approximate"
        options = ", ".join(entry.options) or "none"
        cells = (answer, entry.paper, entry.idea, options)
        table.add_row(Text(entry.name, style="cyan"), *map(Text, cells))
    screen().print(table)
