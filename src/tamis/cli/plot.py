"""`tamis plot`: a picture of results that `tamis bench` kept."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.lab import plots


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The picture; its ending says the format.  [default: FILE with the ending .png]",
)
def plot(file: Path, out: Path | None) -> None:
    """Draw the matchers' times in FILE, a result file of `tamis bench`. Measures nothing.

    One panel a workload, time an event on a logarithmic axis: light bars are events one at a time,
    dark bars events in batches, and the dashed line is the brute force in NumPy.
    """
    click.echo(f"plotted in {plots.plot(file, out)}")
