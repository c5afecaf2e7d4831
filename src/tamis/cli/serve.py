"""`tamis serve`: one process, one data folder. Its options are the settings of the service."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import SettingError
from tamis.service.configuration.configuration import FILE, Setting, all_settings, configure


class _SettingType(click.ParamType[Any]):
    """The value of a setting, read as everywhere else."""

    def __init__(self, setting: Setting) -> None:
        self.name = setting.kind.name
        self._setting = setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._setting.read(value, f"--{self._setting.name}")
        except SettingError as why:
            return self.fail(str(why), param, ctx)


def _option(setting: Setting) -> Callable[[Any], Any]:
    name, shown = setting.name, setting.show(setting.default)
    field, help = name.replace("-", "_"), setting.declared.help
    if shown not in (None, "false", "[]"):
        help += f"  [default: {shown}]"
    if setting.kind.plain == (bool,):
        return click.option(f"--{name}/--no-{name}", field, default=None, help=help)
    return click.option(
        f"--{name}",
        field,
        type=_SettingType(setting),
        multiple=setting.kind.many,
        help=help,
        default=None,
    )


def _with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    for each in reversed(all_settings()):
        if each.name != "folder":  # the argument
            command = _option(each)(command)
    return command


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File of settings (TOML); the variable {FILE} does the same.",
)
@click.option("--show-config", is_flag=True, help="Print the settings and their sources, and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --show-config: print JSON.")
@_with_settings
def serve(
    folder: Path | None, config: Path | None, show_config: bool, as_json: bool, **given: Any
) -> None:
    """Serve the data in FOLDER, until Ctrl-C.

    A new folder without a schema takes any JSON. After a crash, the service logs what it recovered.
    `tamis keys create` makes the first API key. Each option can also be set by an environment
    variable (TAMIS_BODY_BYTES for `--body-bytes`) or in the file of --config (body-bytes).
    """
    options = {
        name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())
    }
    if folder is not None:
        options["folder"] = folder
    found = configure(options, os.environ, config)
    for warning in found.warnings:
        click.echo(f"tamis: {warning}", err=True)
    found.settings.check()
    if show_config:
        lines = "\n".join(found.lines())
        answer = {"settings": tomllib.loads(lines), "sources": found.sources}
        print_answer(answer, as_json, lines)
        return
    if found.sources["folder"] == "default":
        raise SettingError("folder: say which folder to serve: tamis serve FOLDER")
    from tamis.service.serve import serve as run

    run(found.settings)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("matching", type=click.Choice(["inline", "spark"]))
@json_option
def switch_matching(folder: Path, matching: str, as_json: bool) -> None:
    """Let the service of the data folder FOLDER match events itself (inline), or let Spark match.

    The new matcher starts at exactly the sequence number at which the notifications end. The
    service may be running: it follows within a second. To match on Spark, run
    `tamis spark run --data FOLDER`.
    """
    from tamis.replay.matching_shifts import MatchingShifts
    from tamis.store.log import Log

    shifts = MatchingShifts(folder)
    log = Log.open(shifts.log)
    shifts.check_log(log)
    before = shifts.current()
    same = before is not None and before.matching == matching
    shift = before if before is not None and same else shifts.begin(log, matching)
    already = " already," if same else ""
    text = f"{matching} matches{already} from {shift.start:,} on"
    print_answer({"matching": matching, "start": shift.start, "switched": not same}, as_json, text)
