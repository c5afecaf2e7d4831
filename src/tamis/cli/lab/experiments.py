"""`tamis lab list` and `tamis lab run`."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import NoReturn

import click
from rich.console import Console
from rich.text import Text

from tamis.cli.lab.options import chosen_experiments, folder_option, scale_option
from tamis.cli.spark.session import master_option, spark_session
from tamis.cli.terminal.console import bar, print_lines, report_console, stdout_console
from tamis.cli.terminal.numbers import clock
from tamis.cli.terminal.options import seed_option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.cli.terminal.tables import table
from tamis.errors import TamisError
from tamis.files.lock import locked
from tamis.lab.experiments.experiment import LabScale
from tamis.lab.experiments.registry import EXPERIMENTS, experiment, figure_ids
from tamis.lab.experiments.runner import LabRun, TimeLeft, prepare_runs
from tamis.lab.report.summary import PAPERS
from tamis.lab.results.files import prepare

_FAILED = 1
_ENDING = (signal.SIGTERM, signal.SIGHUP)  # the last: the terminal was closed
_LINES = 30.0  # seconds between two lines about progress, outside a terminal


@click.command("list")
@json_option
def list_experiments(as_json: bool) -> None:
    """List the experiments: id, title, place in the paper, and the number of claims.

    An experiment has several ids if figures show the same measurements.
    """
    console = stdout_console()
    every = [experiment(name) for name in EXPERIMENTS]
    if as_json:
        facts = [
            {"ids": figure_ids(each), "title": each.title, "paper": PAPERS[each.paper],
             "place": each.source, "claims": len(each.claims),
             "scales": [str(scale) for scale in LabScale if each.steps(scale)]}
            for each in every
        ]  # fmt: skip
        print_answer(facts, as_json, "")
        return
    for paper, title in PAPERS.items():
        rows = [
            (", ".join(figure_ids(each)), each.title, each.source, str(len(each.claims)))
            for each in every
            if each.paper == paper
        ]
        if rows:
            console.print(Text(title, "bold"))
            console.print(table("lwwr", ("id", "title", "place", "claims"), rows))
            console.print()
    for scale in LabScale:
        some = [each.id for each in every if each.steps(scale)]
        which = "all" if len(some) == len(every) else ", ".join(some) or "none"
        print_lines(console, [f"--scale {scale}: {which}"])


@click.command()
@click.argument("ids", nargs=-1)
@scale_option
@folder_option
@seed_option()
@click.option("--fresh", is_flag=True, help="Measure again what has result files.")
@click.option(
    "--mix-commits",
    is_flag=True,
    help="Continue files that another commit of tamis has begun; they name both.",
)
@click.option(
    "--limit",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    help="Leave an algorithm out at larger sizes after one took it longer.  [default: none]",
)
@master_option
@json_option
def run(
    ids: tuple[str, ...],
    scale: str,
    folder: Path,
    seed: int,
    fresh: bool,
    mix_commits: bool,
    limit: float | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Run the experiments IDS, or all of them.

    Each experiment has one result file, which is stored after every observation. After Ctrl-C, or
    if the process is killed, the same command continues. Files that are whole are left as they are.
    A file of another seed, other parameters or another commit is never continued silently.

    The exit code is 1 if an experiment failed; the others are measured all the same.
    """
    console = report_console(as_json)
    size = LabScale(scale)
    runs = prepare_runs(
        chosen_experiments(ids),
        size,
        seed,
        folder,
        fresh=fresh,
        mix_commits=mix_commits,
        limit=inf if limit is None else limit,
    )
    session = spark_session(console, master) if size is LabScale.CLUSTER else nullcontext()
    place = folder / scale
    prepare(place)  # the last check: measuring takes minutes
    try:
        with _signals_interrupt(), _alone(place), session:
            failed = _measure(console, runs)
    except KeyboardInterrupt:
        kept = sum(len(each.result.observations) for each in runs)
        every = sum(each.result.size for each in runs)
        again = " ".join(_command(ids, scale, folder, seed, mix_commits, limit, master))
        print_lines(console, [f"stopped: {kept:,} of {every:,} observations are stored"])
        print_lines(console, [f"to continue: {again}"])
        raise
    print_lines(console, [f"results in {place}; tamis lab report --scale {scale} judges them"])
    observed = {each.experiment.id: len(each.result.observations) for each in runs}
    print_answer({"folder": place, "observations": observed, "failed": failed}, as_json, "")
    if failed:
        raise click.exceptions.Exit(_FAILED)


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Let other requests to end do what Ctrl-C does: servers that a run has started are stopped.

    `nohup` has SIGHUP ignored, and so it stays.
    """

    def handle(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    ours = [each for each in _ENDING if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, handle) for each in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a second run in the same folder: each would replace the files of the other."""
    try:
        with locked(folder / ".lock", wait=False):
            yield
    except BlockingIOError:
        raise TamisError(f"another tamis lab run is writing to {folder}") from None


def _measure(console: Console, runs: Sequence[LabRun]) -> int:
    """Measure what is missing; gives the number of experiments that failed."""
    failed = 0
    for each in runs:
        each.discard()
    left = _Progress(console, runs)
    with bar(console, "", sum(each.result.size for each in runs)) as progress:
        for each in runs:
            id, begun = each.experiment.id, monotonic()
            if not each.missing():
                _say(console, id, "✓", f"whole{', ' + each.note if each.note else ''}", "dim")
                progress.update(left.done())
                continue
            progress.describe(left.text(id))
            progress.update(left.done())
            try:
                for found in each.observe():
                    progress.update(left.done())
                    progress.describe(left.text(f"{id}, {found.curve} at {found.x:}"))
                    left.line(id)
            except (TamisError, MemoryError) as why:
                failed += 1
                said = "there is not enough memory" if isinstance(why, MemoryError) else str(why)
                _say(console, id, "✗", f"failed: {said}", "red")
            else:
                _say(console, id, "✓", clock(monotonic() - begun), "dim")
    return failed


def _say(console: Console, id: str, mark: str, what: str, style: str) -> None:
    colour = "green" if mark == "✓" else "red"
    console.print(Text.assemble((f"{mark} ", colour), id, "  ", (what, style)), soft_wrap=True)


class _Progress:
    """What is done, and the time left; as lines where there is no terminal."""

    def __init__(self, console: Console, runs: Sequence[LabRun]) -> None:
        self._console, self._runs, self._left = console, runs, TimeLeft(runs)
        self._shown = monotonic()

    def done(self) -> int:
        return sum(len(each.result.observations) for each in self._runs)

    def text(self, what: str) -> str:
        seconds = self._left.seconds()
        return what if seconds is None else f"{what}, about {clock(seconds)} left"

    def line(self, id: str) -> None:
        if self._console.is_terminal or monotonic() - self._shown < _LINES:
            return
        self._shown = monotonic()
        every = sum(each.result.size for each in self._runs)
        print_lines(self._console, [f"  {self.text(f'{id}: {self.done():,} of {every:,}')}"])


def _command(
    ids: Sequence[str],
    scale: str,
    folder: Path,
    seed: int,
    mix_commits: bool,
    limit: float | None,
    master: str | None,
) -> Iterator[str]:
    """The command that continues: without --fresh, which would begin again."""
    yield from ("tamis lab run", *ids, "--scale", scale)
    if folder != Path("out/lab"):
        yield f"--folder {folder}"
    if seed != 1:
        yield f"--seed {seed}"
    if mix_commits:
        yield "--mix-commits"
    if limit is not None:
        yield f"--limit {limit:g}"
    if master is not None:
        yield f"--master '{master}'"
