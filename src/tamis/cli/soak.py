"""`tamis soak`: random adds, removes and matches for as long as wanted, compared all along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from tamis.cli.screen import screen
from tamis.errors import MatcherError, TamisError
from tamis.match import registry
from tamis.testing.soak import soak as run_soak

_OTHER = {"naive": "scan"}  # what a reference is compared with, where that is not `naive`


@click.command()
@click.argument("names", nargs=-1)
@click.option("--operations", default=20_000, show_default=True, type=click.IntRange(1))
@click.option("--reference", default="scan", show_default=True, help="The matcher to agree with.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
def soak(names: tuple[str, ...], operations: int, reference: str, seed: int) -> None:
    """Compare matchers with a reference over random operations on every domain.

    NAMES are matchers; without one, all but the reference are soaked, each under every set of
    options that it is tested with. The reference itself, when it is named, is compared with `naive`
    (and `naive` with `scan`).

    Disagreements are counted, and reported when a trial has done all its operations. The first
    trial that has any is the last: the exit code is then 2. An approximate matcher may let through
    too much, but must not lose a match. Trials that cannot run on this machine, for want of a
    database, are named and passed over.
    """
    if not registry.entry(reference).exact:
        raise TamisError(f"{reference} is approximate: a reference has to be exact, as scan is")
    console = screen()
    trials = _trials(names, reference)
    soaked = sum(_soak(console, trial, operations, seed) for trial in trials)
    if not soaked:
        raise TamisError("nothing was soaked")


class Trial(NamedTuple):
    """A matcher with its options, and what it has to agree with."""

    name: str
    options: Mapping[str, Any]
    against: str

    def __str__(self) -> str:
        return self.name + "".join(f" {key}={value}" for key, value in self.options.items())

    @property
    def exact(self) -> bool:
        return registry.entry(self.name).exact or bool(self.options.get("exact"))


def _trials(names: Sequence[str], reference: str) -> list[Trial]:
    """What to soak; nothing is compared with itself."""
    chosen = names or [name for name in registry.matchers() if name != reference]
    return [
        Trial(name, options, reference if name != reference else _OTHER.get(name, "naive"))
        for name in chosen
        for options in registry.entry(name).trials
    ]


def _soak(console: Console, trial: Trial, operations: int, seed: int) -> bool:
    """Whether it could run. Raises where the two disagree."""
    make = partial(registry.create, trial.name, **trial.options)
    try:
        make()
    except MatcherError as why:
        console.print(f"{trial}: not soaked, {why}", style="yellow")
        return False
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(str(trial), total=operations)
        found = run_soak(
            make,
            partial(registry.create, trial.against),
            operations,
            seed,
            partial(_advance, progress, task),
        )
    wrong = found.disagreements if trial.exact else found.missing
    console.print(
        f"{trial}: {found.adds:,} adds, {found.removes:,} removes, {found.matches:,} matches, "
        f"{found.pairs:,} pairs, {wrong} disagreements with {trial.against}"
    )
    if wrong:
        raise TamisError(
            f"{trial} disagrees with {trial.against}: {found.missing} matches missing, "
            f"{found.extra} too many (seed {seed})"
        )
    return True


def _advance(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)
