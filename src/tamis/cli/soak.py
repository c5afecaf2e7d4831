"""`tamis soak`: random adds, removes and matches for as long as wanted, compared all along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from tamis.cli.counts import Count
from tamis.cli.matcher_options import matcher_options, parse_options
from tamis.cli.screen import screen
from tamis.errors import MatcherError, TamisError
from tamis.match import registry
from tamis.schedule import registry as schedulers
from tamis.testing.operator_checks import agree
from tamis.testing.pairs import compare_pairs
from tamis.testing.soak import soak as run_soak
from tamis.workload import VARIANTS, make_variant, variant

_OTHER = {"naive": "scan"}  # what a reference is compared with, where that is not `naive`
_OPERATIONS = 20_000
_PAIRS = "1e7"


class Disagreement(click.ClickException):
    """Not a mistake of the user's, but one of a matcher's: exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"tamis: {self.message}", err=True)


@click.command(
    help=f"""Compare matchers with a reference over random operations on every domain.

    NAMES are matchers; without one, all but the reference are soaked. Each is soaked under every
    set of options that it is tested with; a single one, under those given by --option. The
    reference itself, when it is named, is compared with `naive` (and `naive` with `scan`).

    With --pairs or --workload they are compared on large workloads instead: {", ".join(VARIANTS)}.

    With --instances it is the schedulers of operators that are compared (NAMES are theirs), with
    the definition of truth, which evaluates everything: random conditions with variables, shared
    calls and faults.

    Disagreements are counted, and reported when a trial has done all its work; the exit code is
    then 1. The first trial of random operations that has any is the last; large workloads are all
    gone through. An approximate matcher may let through too much, but must not lose a match. Trials
    that cannot run on this machine, for want of a database or of memory, are named and passed over.
    """
)
@click.argument("names", nargs=-1)
@matcher_options
@click.option(
    "--operations", type=click.IntRange(1), help=f"Of each trial.  [default: {_OPERATIONS}]"
)
@click.option(
    "--pairs",
    type=Count(),
    help=f"Of an event and a subscription, on each workload.  [default: {_PAIRS}]",
)
@click.option(
    "--instances", type=Count(), help="Of a few subscriptions with operators, and events."
)
@click.option("--workload", "workloads", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--subscriptions",
    default=50_000,
    show_default=True,
    type=click.IntRange(100),
    help="Of each workload.",
)
@click.option("--reference", default="scan", show_default=True, help="The matcher to agree with.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
def soak(
    names: tuple[str, ...],
    options: tuple[str, ...],
    operations: int | None,
    pairs: int | None,
    instances: int | None,
    workloads: tuple[str, ...],
    subscriptions: int,
    reference: str,
    seed: int,
) -> None:
    if instances is not None:
        if operations is not None or pairs is not None or workloads or options:
            raise TamisError("--instances are of schedulers, the other options of matchers")
        _agree(screen(), names, instances, seed)
        return
    if not registry.entry(reference).exact:
        raise TamisError(f"{reference} is approximate: a reference has to be exact, as scan is")
    large = pairs is not None or bool(workloads)
    if large and operations is not None:
        raise TamisError("--operations are random; --pairs and --workload are not: choose one")
    for workload in workloads:
        variant(workload)
    console = screen()
    if options and len(names) != 1:
        raise TamisError("--option belongs to one matcher; name only that one")
    trials = _trials(names, reference, parse_options(names[0], options) if options else None)
    if large:
        size = _Size(pairs or int(float(_PAIRS)), subscriptions, seed)
        soaked = _compare_all(console, trials, workloads or tuple(VARIANTS), size)
    else:
        soaked = sum(_soak(console, trial, operations or _OPERATIONS, seed) for trial in trials)
    if not soaked:
        raise TamisError("nothing was soaked")


def _agree(console: Console, names: Sequence[str], instances: int, seed: int) -> None:
    """Schedulers against the definition of truth."""
    for name in names:
        schedulers.entry(name)
    with _bar(console, "schedulers", instances) as advance:
        found = agree(instances, seed, names, advance)
    console.print(
        f"{', '.join(found.calls)}: {found.instances:,} instances, "
        f"{found.subscriptions:,} subscriptions, {found.pairs:,} pairs, {found.matches:,} matches, "
        f"{found.disagreements} disagreements with the definition"
    )
    for name, calls in found.calls.items():
        console.print(f"  {name}: operators were asked about an event {calls:,} times")
    if found.disagreements:
        raise Disagreement(f"a scheduler disagrees with the definition of truth (seed {seed})")


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


def _trials(
    names: Sequence[str], reference: str, options: Mapping[str, Any] | None = None
) -> list[Trial]:
    """What to soak, under these options or those of the registry; nothing with itself."""
    chosen = names or [name for name in registry.matchers() if name != reference]
    return [
        Trial(name, trial, reference if name != reference else _OTHER.get(name, "naive"))
        for name in chosen
        for trial in (registry.entry(name).trials if options is None else (options,))
    ]


def _soak(console: Console, trial: Trial, operations: int, seed: int) -> bool:
    """Whether it could run. Raises where the two disagree."""
    make = partial(registry.create, trial.name, **trial.options)
    try:
        make()
    except MatcherError as why:
        console.print(f"{trial}: not soaked, {why}", style="yellow")
        return False
    with _bar(console, str(trial), operations) as advance:
        found = run_soak(make, partial(registry.create, trial.against), operations, seed, advance)
    wrong = found.disagreements if trial.exact else found.missing
    console.print(
        f"{trial}: {found.adds:,} adds, {found.removes:,} removes, {found.matches:,} matches, "
        f"{found.pairs:,} pairs, {wrong} disagreements with {trial.against}"
    )
    if wrong:
        raise Disagreement(
            f"{trial} disagrees with {trial.against}: {found.missing} matches missing, "
            f"{found.extra} too many (seed {seed})"
        )
    return True


class _Size(NamedTuple):
    """How much is compared on each workload."""

    pairs: int
    subscriptions: int
    seed: int


def _compare_all(
    console: Console, trials: Sequence[Trial], workloads: Sequence[str], size: _Size
) -> int:
    """How many comparisons could be made. Raises at the end if any came out wrong."""
    made = wrong = 0
    for workload in workloads:
        for trial in trials:
            found = _compare(console, trial, workload, size)
            made += found is not None
            wrong += bool(found)
    if wrong:
        raise Disagreement(f"{wrong} of {made} comparisons found disagreements (seed {size.seed})")
    return made


def _compare(console: Console, trial: Trial, workload: str, size: _Size) -> int | None:
    """How many disagreements there are; None where the trial cannot run."""
    made = make_variant(workload, size.subscriptions, seed=size.seed)
    with _bar(console, f"{trial} on {workload}", size.pairs) as advance:
        try:
            found = compare_pairs(
                partial(registry.create, trial.name, **trial.options),
                partial(registry.create, trial.against),
                made,
                size.pairs,
                advance,
            )
        except MatcherError as why:
            console.print(f"{trial} on {workload}: not compared, {why}", style="yellow")
            return None
    wrong = found.disagreements if trial.exact else found.missing
    console.print(
        f"{trial} on {workload}: {found.pairs:,} pairs, {found.matches:,} matches, "
        f"{wrong} disagreements with {trial.against}",
        style="red" if wrong else None,
    )
    return wrong


@contextmanager
def _bar(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar in a terminal; gives what moves it to a number of things done."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
