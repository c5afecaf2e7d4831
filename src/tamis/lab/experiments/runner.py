"""Running experiments: what is missing in a result file is measured, and stored as it comes.

A run continues the file of an interrupted one. It refuses a file that was measured with another
seed, other parameters or another commit, or on another machine: figures of both would stand in one
plot.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean
from time import perf_counter

from tamis.errors import TamisError
from tamis.files.atomic import remove_leftovers
from tamis.lab.experiments.experiment import (
    OVER_LIMIT,
    Curve,
    Experiment,
    LabScale,
    LabStep,
    Mode,
    Observation,
)
from tamis.lab.experiments.result_files import (
    LabResult,
    key_of,
    read_result,
    result_path,
    write_result,
)
from tamis.lab.results.files import prepare


class LabRun:
    """One experiment and its result file."""

    def __init__(
        self,
        experiment: Experiment,
        scale: LabScale,
        seed: int,
        path: Path,
        *,
        fresh: bool = False,
        mix_commits: bool = False,
        limit: float = inf,
    ) -> None:
        """Read the file, if there is one. `fresh` replaces it.

        `mix_commits` continues a file that another commit has begun; the file names both. A curve
        that took more than `limit` seconds is left out at larger steps.
        """
        self.limit = limit
        self.experiment, self.seed, self.path, self._fresh = experiment, seed, path, fresh
        self.steps = experiment.steps(scale)
        self.result = LabResult.begin(experiment, scale, seed)
        self._earlier: LabResult | None = None  # a whole file of another commit
        if self.path.exists() and not fresh:
            self._continue(read_result(self.path), mix_commits)

    def _continue(self, found: LabResult, mix_commits: bool) -> None:
        mine = self.result
        differs = [
            what
            for what, one, other in (
                ("another experiment", found.experiment, mine.experiment),
                (f"the seed {found.seed}", found.seed, mine.seed),
                ("other parameters", found.steps, mine.steps),
            )
            if one != other
        ]
        if differs:
            raise TamisError(f"{self.path} was measured with {' and '.join(differs)}")
        if not found.whole and found.machine != mine.machine:
            raise TamisError(f"{self.path} was begun on another machine")
        if found.commit == mine.commit:
            self.result = replace(found, dirty=found.dirty or mine.dirty)
        elif found.whole:
            self.result = self._earlier = found
            return
        elif mix_commits:
            others = {*found.other_commits, str(mine.commit)} - {str(found.commit)}
            self.result = replace(found, other_commits=tuple(sorted(others)))
        else:
            raise TamisError(f"{self.path} was begun at commit {_short(found.commit)}")
        # What another limit has left out may be within this one.
        self.result = self.result.only(lambda each: not each.left_out)

    @property
    def note(self) -> str:
        """What a user should know about a file that needs no run."""
        if self._earlier is None:
            return ""
        return f"measured at commit {_short(self._earlier.commit)}; --fresh measures it again"

    def missing(self) -> list[LabStep]:
        """The steps to measure, each with the curves to measure."""
        done = self.result.done()
        left = []
        for step in self.steps:
            curves = tuple(
                curve
                for curve in step.curves
                if (step.x, step.panel, curve.name, curve.mode) not in done
            )
            if curves:
                left.append(replace(step, curves=curves))
        return left

    def discard(self) -> None:
        """Empty the file that a fresh run replaces.

        All runs do so before the first one measures. Otherwise the command that continues an
        interrupted run would take the files of the run before for its own.
        """
        if self._fresh and self.path.exists():
            write_result(self.path, self.result)

    def observe(self) -> Iterator[Observation]:
        """Measure what is missing. Each observation is on disk when it is yielded."""
        prepare(self.path.parent)
        remove_leftovers(self.path)
        write_result(self.path, self.result)
        for step in self.missing():
            yield from self._step(step)
            gc.collect()  # matchers may hold themselves in cycles, and the next ones need the room

    def _step(self, step: LabStep) -> Iterator[Observation]:
        reasons = [self.over_limit(step, curve) for curve in step.curves]
        for curve, reason in zip(step.curves, reasons, strict=True):
            if reason:
                found = step.observation(curve, refusal=reason)
                self.result = self.result.including(found, 0.0)
                write_result(self.path, self.result)
                yield found
        asked = _CurvesAsked(
            curve for curve, reason in zip(step.curves, reasons, strict=True) if not reason
        )
        if asked:
            yield from self._measured(replace(step, curves=asked), asked)

    def over_limit(self, step: LabStep, curve: Curve) -> str:
        """Why a curve is left out at a step: a smaller one took it too long. Or nothing."""
        smaller = {each.x for each in self.steps if step.is_larger(each)}
        result = self.result
        for seen, seconds, prepared in zip(
            result.observations, result.seconds, result.prepared, strict=True
        ):
            same = (seen.curve, seen.mode, seen.panel) == (curve.name, curve.mode, step.panel)
            if same and seen.x in smaller and seconds - prepared > self.limit:
                took = f"{seconds - prepared:,.3g} s at {seen.x}"
                return f"{OVER_LIMIT}{self.limit:g} s: it took {took}"
        return ""

    def _measured(self, step: LabStep, asked: _CurvesAsked) -> Iterator[Observation]:
        wanted = {(step.x, step.panel, curve.name, curve.mode) for curve in step.curves}
        begun = perf_counter()
        for found in self.experiment.measure(step, self.seed):
            if key_of(found) not in wanted:
                raise TamisError(
                    f"{self.experiment.id} measured {_named(key_of(found))}, which is not missing"
                )
            wanted.remove(key_of(found))
            now = perf_counter()
            self.result = self.result.including(found, now - begun, max(0.0, asked.last - begun))
            write_result(self.path, self.result)
            begun = now
            yield found
        if wanted:
            raise TamisError(f"{self.experiment.id} did not measure {_named(min(wanted, key=str))}")


class _CurvesAsked(tuple[Curve, ...]):
    """The curves of a step, and when the experiment asked for the last one of them.

    An experiment draws its workload before it asks for the first curve. That time is not counted
    against a limit: it would always meet the first curve.
    """

    last = 0.0

    def __iter__(self) -> Iterator[Curve]:
        for curve in super().__iter__():
            self.last = perf_counter()
            yield curve


def _named(key: tuple[float | str, str, str, Mode]) -> str:
    x, panel, curve, mode = key
    return f"{curve} ({mode}) at {x}" + (f" of {panel}" if panel else "")


def _short(commit: str | None) -> str:
    return commit[:10] if commit else "(none)"


def prepare_runs(
    experiments: Sequence[Experiment],
    scale: LabScale,
    seed: int,
    folder: Path,
    *,
    fresh: bool = False,
    mix_commits: bool = False,
    limit: float = inf,
) -> list[LabRun]:
    """The runs of some experiments; those that have nothing at this scale are left out.

    Files that cannot be continued are all named before anything is measured.
    """
    runs, refusals = [], []
    for each in experiments:
        if not each.steps(scale):
            continue
        path = result_path(folder, scale, each.id)
        try:
            runs.append(
                LabRun(each, scale, seed, path, fresh=fresh, mix_commits=mix_commits, limit=limit)
            )
        except TamisError as why:
            refusals.append(str(why))
    if refusals:
        way = "--fresh measures again, --folder keeps both"
        if any("was begun at" in each for each in refusals):
            way += ", --mix-commits continues a file of another commit"
        raise TamisError("\n".join([*refusals, way]))
    if not runs:
        raise TamisError(f"none of these experiments has anything to measure at scale {scale}")
    return runs


class TimeLeft:
    """An estimate from what this run has measured so far.

    A curve takes as long as it took at its step before. A curve without one takes the mean of its
    experiment, and an experiment that has not begun the mean of all.
    """

    def __init__(self, runs: Sequence[LabRun]) -> None:
        self._runs = runs

    def seconds(self) -> float | None:
        """The estimate; None as long as nothing has been measured."""
        every = [taken for run in self._runs for taken in run.result.seconds]
        if not every:
            return None
        total = 0.0
        for run in self._runs:
            known = run.result.seconds
            mean = fmean(known) if known else fmean(every)
            latest = {
                (each.curve, each.mode): taken
                for each, taken in zip(run.result.observations, known, strict=True)
            }
            total += sum(
                latest.get((curve.name, curve.mode), mean)
                for step in run.missing()
                for curve in step.curves
                if not run.over_limit(step, curve)
            )
        return total
