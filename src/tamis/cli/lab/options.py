"""Options that several commands of the lab have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tamis.cli.terminal.options import FOLDER, option
from tamis.errors import TamisError
from tamis.lab.experiments.experiment import Experiment, LabScale
from tamis.lab.experiments.registry import EXPERIMENTS, experiment

ALL = "all"
scale_option = option(
    "--scale",
    "small takes up to half an hour in all; paper has the sizes of the papers; cluster has sizes "
    "that one process does not hold, on Spark.",
    click.Choice([str(each) for each in LabScale]),
    str(LabScale.SMALL),
)
folder_option = option(
    "--folder", "Folder of the result files, which are in FOLDER/SCALE.", FOLDER, Path("out/lab")
)


def chosen_experiments(ids: Sequence[str]) -> list[Experiment]:
    """The experiments with these ids, in the order of the papers."""
    if not ids:
        raise TamisError(f"name experiments, or {ALL}; tamis lab list shows them")
    if ALL in ids:
        return [experiment(name) for name in EXPERIMENTS]
    found = {each.id: each for each in map(experiment, ids)}
    return [found[name] for name in EXPERIMENTS if name in found]
