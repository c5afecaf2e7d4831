"""`tamis soak`: compare matchers over random adds, removes and matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click
from rich.console import Console

from tamis.cli.terminal.console import bar, report_console
from tamis.cli.terminal.options import (
    WholeNumber,
    matcher_option,
    option,
    parse_options,
    seed_option,
)
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import MatcherError, TamisError, counted
from tamis.match import registry
from tamis.match.base import Matcher
from tamis.schedule import registry as schedulers
from tamis.testing.matcher_checks import add, answers
from tamis.testing.operator_checks import compare_schedulers
from tamis.testing.pairs import PairComparison, compare_pairs
from tamis.testing.soak import SoakResult
from tamis.testing.soak import soak as run_soak
from tamis.workload import VARIANTS, Workload, make_variant, variant

_OTHER_REFERENCE = {"naive": "scan"}  # of a reference; the others have `naive`
_OPERATIONS = 20_000
_PAIRS = "1e7"


class Disagreement(click.ClickException):
    """A mistake of a matcher, not of the user: exit code 1."""


@click.command(
    help=f"""Compare matchers with a reference over random operations on every domain.

    NAMES are matchers. Without names, all but the reference are compared. Each runs with every set
    of options it is tested with; a single one may get its options by --option. A reference that is
    named is compared with `naive`, and `naive` with `scan`.

    With --pairs or --workload, matchers are compared on large workloads: {", ".join(VARIANTS)}.

    With --instances, NAMES are schedulers of operators. They are compared with the definition of
    truth, which evaluates everything, on random conditions with variables, shared calls and faults.

    Each trial counts its disagreements and reports them at its end; the exit code is then 1. Random
    operations stop after the first trial with disagreements; large workloads all run. An
    approximate matcher may find too much, but must not miss a match. Trials that cannot run on this
    machine, for lack of a database, of a GPU or of memory, are named and skipped.
    """
)
@click.argument("names", nargs=-1)
@matcher_option
@option("--operations", f"Operations of each trial.  [default: {_OPERATIONS}]", click.IntRange(1))
@option(
    "--pairs",
    f"Pairs of an event and a subscription, on each workload.  [default: {_PAIRS}]",
    WholeNumber(),
)
@option(
    "--instances",
    "Instances of a few subscriptions with operators and a few events.",
    WholeNumber(),
)
@click.option("--workload", "workloads", multiple=True, help="Only this workload; may be repeated.")
@option("--subscriptions", "Subscriptions of each workload.", click.IntRange(100), 50_000)
@option("--reference", "The matcher to agree with.", default="scan")
@seed_option(0)
@json_option
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
    as_json: bool,
) -> None:
    console = report_console(as_json)
    if instances is not None:
        if operations is not None or pairs is not None or workloads or options:
            raise TamisError(
                "--instances compares schedulers, the other options compare matchers: choose one"
            )
        _compare_schedulers(console, names, instances, seed, as_json)
        return
    if not registry.entry(reference).exact:
        raise TamisError(f"{reference} is approximate: a reference must be exact, as scan is")
    large = pairs is not None or bool(workloads)
    if large and operations is not None:
        raise TamisError("--operations are random; --pairs and --workload are not: choose one")
    for workload in workloads:
        variant(workload)
    if options and len(names) != 1:
        raise TamisError("--option belongs to one matcher; name only that one")
    trials = _trials(names, reference, parse_options(names[0], options) if options else None)
    done: list[dict[str, Any]] = []
    try:
        if large:
            many = pairs or int(float(_PAIRS))
            for name in workloads or VARIANTS:
                made = make_variant(name, subscriptions, seed=seed)
                done += [_compare(console, trial, name, made, many) for trial in trials]
        else:
            for trial in trials:
                done.append(_soak(console, trial, operations or _OPERATIONS, seed))
                if done[-1].get("wrong"):
                    break
    finally:
        print_answer(done, as_json, "")
    soaked = [each for each in done if "wrong" in each]
    wrong = [each for each in soaked if each["wrong"]]
    if wrong and large:
        of = counted(len(soaked), "comparison")
        raise Disagreement(f"{len(wrong)} of {of} found disagreements (seed {seed})")
    for each in wrong:
        raise Disagreement(
            f"{each['trial']} disagrees with {each['against']}: "
            f"{counted(each['missing'], 'match')} missing, {each['extra']} too many (seed {seed})"
        )
    if not soaked:
        raise TamisError("nothing was soaked")


def _compare_schedulers(
    console: Console, names: Sequence[str], instances: int, seed: int, as_json: bool
) -> None:
    """Compare schedulers with the definition of truth."""
    for name in names:
        schedulers.entry(name)
    with bar(console, "schedulers", instances) as progress:
        found = compare_schedulers(instances, seed, names, progress.update)
    console.print(
        f"{', '.join(found.calls)}: {counted(found.instances, 'instance')}, "
        f"{counted(found.subscriptions, 'subscription')}, {counted(found.pairs, 'pair')}, "
        f"{counted(found.matches, 'match')}, "
        f"{counted(found.disagreements, 'disagreement')} with the definition"
    )
    for name, calls in found.calls.items():
        console.print(f"  {name}: operators were called {counted(calls, 'time')}")
    print_answer(found, as_json, "")
    if found.disagreements:
        raise Disagreement(f"a scheduler disagrees with the definition of truth (seed {seed})")


class SoakTrial(NamedTuple):
    """A matcher with its options, and the matcher it must agree with."""

    name: str
    options: Mapping[str, Any]
    against: str

    def __str__(self) -> str:
        return self.name + "".join(f" {key}={value}" for key, value in self.options.items())

    def make(self) -> Matcher:
        return registry.create(self.name, **self.options)

    def make_reference(self) -> Matcher:
        return registry.create(self.against)

    def wrong(self, found: SoakResult | PairComparison) -> int:
        exact = registry.entry(self.name).exact or self.options.get("exact")
        return found.disagreements if exact else found.missing


def _trials(
    names: Sequence[str], reference: str, options: Mapping[str, Any] | None = None
) -> list[SoakTrial]:
    """The trials, with these options or the registry's. No matcher is compared with itself."""
    chosen = names or [name for name in registry.matchers() if name != reference]
    return [
        SoakTrial(
            name, trial, reference if name != reference else _OTHER_REFERENCE.get(name, "naive")
        )
        for name in chosen
        for trial in (registry.entry(name).trials if options is None else (options,))
    ]


def _soak(console: Console, trial: SoakTrial, operations: int, seed: int) -> dict[str, Any]:
    """Run a trial; gives what it found, or why it cannot run."""
    try:
        matcher = trial.make()
        add(matcher, {0: []})
        answers(matcher, [{}])  # the first match may need what this machine does not have
    except MatcherError as why:
        console.print(f"{trial}: not soaked, {why}", style="yellow")
        return {"trial": str(trial), "skipped": str(why)}
    with bar(console, str(trial), operations) as progress:
        found = run_soak(trial.make, trial.make_reference, operations, seed, progress.update)
    wrong = trial.wrong(found)
    console.print(
        f"{trial}: {counted(found.adds, 'add')}, {counted(found.removes, 'remove')}, "
        f"{counted(found.matches, 'match')}, {counted(found.pairs, 'pair')}, "
        f"{counted(wrong, 'disagreement')} with {trial.against}"
    )
    return {"trial": str(trial), "against": trial.against, **vars(found), "wrong": wrong}


def _compare(
    console: Console, trial: SoakTrial, workload: str, made: Workload, pairs: int
) -> dict[str, Any]:
    """Run a comparison; gives what it found, or why it cannot run."""
    about = {"trial": str(trial), "workload": workload}
    with bar(console, f"{trial} on {workload}", pairs) as progress:
        try:
            found = compare_pairs(trial.make, trial.make_reference, made, pairs, progress.update)
        except MatcherError as why:
            console.print(f"{trial} on {workload}: not compared, {why}", style="yellow")
            return {**about, "skipped": str(why)}
    wrong = trial.wrong(found)
    console.print(
        f"{trial} on {workload}: {counted(found.pairs, 'pair')}, "
        f"{counted(found.matches, 'match')}, {counted(wrong, 'disagreement')} with {trial.against}",
        style="red" if wrong else None,
    )
    return {**about, "against": trial.against, **vars(found), "wrong": wrong}
