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
    """Draw the matchers in FILE, a result file of `tamis bench`. Measures nothing.

    Of `match`, one panel a workload, time an event on a logarithmic axis: light bars are events one
    at a time, dark bars events in batches, and the dashed line is the brute force in NumPy. Of
    `peers`, how many times faster than that line; of `scale`, time by subscriptions; of `churn`,
    how long single changes and matches took. What FILE has of these becomes one picture.
    """
    click.echo(f"plotted in {plots.plot(file, out)}")
