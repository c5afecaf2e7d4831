"""`tamis soak`: random adds, removes and matches for as long as wanted, compared all along."""

from __future__ import annotations

from functools import partial

import click
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from tamis.cli.screen import screen
from tamis.errors import TamisError
from tamis.match import registry
from tamis.testing.soak import soak as run_soak


@click.command()
@click.argument("names", nargs=-1)
@click.option("--operations", default=20_000, show_default=True, type=click.IntRange(1))
@click.option("--reference", default="scan", show_default=True, help="The matcher to agree with.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
def soak(names: tuple[str, ...], operations: int, reference: str, seed: int) -> None:
    """Compare matchers with a reference over random operations on every domain.

    NAMES are matchers; without one, all are soaked, each under every set of options that it is
    tested with. An approximate matcher may let through too much, but must not lose a match. Exits
    with an error at the first disagreement.
    """
    registry.entry(reference)
    trials = [
        (name, trial)
        for name in names or registry.matchers()
        for trial in registry.entry(name).trials
        if name != reference
    ]
    console = screen()
    for name, trial in trials:
        shown = name + "".join(f" {key}={value}" for key, value in trial.items())
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress:
            task = progress.add_task(shown, total=operations)
            found = run_soak(
                partial(registry.create, name, **trial),
                partial(registry.create, reference),
                operations,
                seed,
                partial(_advance, progress, task),
            )
        exact = registry.entry(name).exact or bool(trial.get("exact"))
        wrong = found.disagreements if exact else found.missing
        console.print(
            f"{shown}: {found.adds:,} adds, {found.removes:,} removes, {found.matches:,} matches, "
            f"{found.pairs:,} pairs, {wrong} disagreements"
        )
        if wrong:
            raise TamisError(
                f"{shown} disagrees with {reference}: {found.missing} matches missing, "
                f"{found.extra} too many (seed {seed})"
            )


def _advance(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)
