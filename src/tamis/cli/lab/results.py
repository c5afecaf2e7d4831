"""`tamis lab plot` and `tamis lab report`. Both read result files and measure nothing."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.lab.options import chosen_experiments, folder_option, scale_option
from tamis.cli.terminal.console import (
    bar,
    print_lines,
    report_console,
    spinner,
    stderr_console,
    stdout_console,
)
from tamis.cli.terminal.options import FOLDER, option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError
from tamis.lab.experiments.experiment import LabScale
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tamis.lab.experiments.result_files import read_result, read_results, result_path
from tamis.lab.plots.experiments import ExperimentPicture, has_figures
from tamis.lab.report.page import write_page
from tamis.lab.report.summary import LabSummary


@click.command()
@click.argument("ids", nargs=-1)
@scale_option
@folder_option
@json_option
def plot(ids: tuple[str, ...], scale: str, folder: Path, as_json: bool) -> None:
    """Draw the result files of the experiments IDS, or all that are there. Measures nothing.

    Each result file gets a PNG and an SVG beside it. An algorithm has the same colour and marker in
    all pictures. Solid lines are algorithms as in the paper, dashed lines are tuned, thick lines
    are algorithms that the paper does not have. Crosses at the top are refusals.
    """
    size = LabScale(scale)
    if ids:
        results = {
            each.id: read_result(result_path(folder, size, each.id))
            for each in chosen_experiments(ids)
        }
    else:
        results = read_results(folder, size)
    console, pictures = report_console(as_json), list[Path]()
    with bar(console, "Drawing", len(results)) as progress:
        for id, result in results.items():
            if id not in EXPERIMENTS:
                print_lines(console, [f"{id} is not an experiment of this version; not drawn"])
            elif not has_figures(experiment(id), result):
                print_lines(console, [f"{id} has no results to plot yet; not drawn"])
            else:
                path = result_path(folder, size, id)
                pictures += ExperimentPicture(experiment(id), result).save(path)
            progress.advance()
    print_answer(pictures, as_json, "\n".join(map(str, pictures)))


@click.command()
@scale_option
@folder_option
@option("--against", "Another FOLDER of results: changes of verdicts are shown.", FOLDER)
@option(
    "--out",
    "The page.  [default: FOLDER/SCALE/report.html]",
    click.Path(dir_okay=False, path_type=Path),
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON; write no page.")
def report(scale: str, folder: Path, against: Path | None, out: Path | None, as_json: bool) -> None:
    """Write one page of HTML with all figures, and a verdict on each claim. Measures nothing.

    A claim is confirmed, not confirmed, contrary, or cannot be tested here. The page has our
    figures beside those of the paper, the reason, and the command that measures them. Pictures are
    inside the page; it loads nothing.
    """
    size = LabScale(scale)
    summary = LabSummary.read(folder, size, against)
    if as_json:
        print_answer(summary.as_json(), as_json, "")
        return
    if not summary.verdicts:
        raise TamisError(f"no experiment has claims at scale {scale}")
    path = out or folder / scale / "report.html"
    with spinner(stderr_console(), "Drawing"):
        write_page(path, summary)
    console = stdout_console()
    print_lines(console, [f"{count:>4} {name}" for name, count in summary.counts.items()])
    for each in summary.changes:
        change = f"{each.before.standing} → {each.after.standing}"
        print_lines(console, [f"changed: {each.claim.id}, {change}"])
    print_lines(console, [f"written to {path}"])
