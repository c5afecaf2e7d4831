"""`tamis lab`: run the experiments of the papers, draw and judge them, compare on your data."""

from __future__ import annotations

import click

from tamis.cli.lazy import LazyGroup

COMMANDS = {
    "list": ("tamis.cli.lab.experiments:list_experiments", "List the experiments of the papers."),
    "run": ("tamis.cli.lab.experiments:run", "Run experiments, or continue them."),
    "plot": ("tamis.cli.lab.results:plot", "Draw result files."),
    "report": ("tamis.cli.lab.results:report", "Write the page of figures and verdicts."),
    "compare": ("tamis.cli.lab.compare:compare", "Compare matchers on your own data."),
}


@click.group(cls=LazyGroup, tables={"Commands": COMMANDS})
def lab() -> None:
    """Run the experiments of the papers, and judge their claims."""
