"""`tamis spark compile`: compile conditions or a log into a version of an index."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.spark.session import (
    SHOWN_REFUSALS,
    log_option,
    master_option,
    operators_option,
    run_on_spark,
    schema_option,
)
from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.numbers import file_size, rate
from tamis.cli.terminal.options import FOLDER, PATH, option
from tamis.errors import TamisError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.jobs.compile_index import CompiledIndex
    from tamis.spark.runtime.job_runner import Progress

_JSON = (".json", ".jsonl", ".ndjson")
_FORMATS = (".parquet", ".csv", *_JSON)
_WHOLE_NUMBER = "^-?[0-9]{1,18}$"


@click.command(name="compile")
@option(
    "--conditions",
    f"Table of id and condition: {' '.join(_FORMATS)}, or a folder of such files.",
    PATH,
)
@schema_option
@log_option
@option("--index", "Folder of the index; it gets a new version.", FOLDER, required=True)
@option("--stats", "Folder of statistics of past events, to plan for.", PATH)
@option("--shards", "Shards of the version.  [default: by its size]", click.IntRange(1))
@operators_option
@master_option
def compile_(
    conditions: Path | None,
    schema: Path | None,
    log: Path | None,
    index: Path,
    stats: Path | None,
    shards: int | None,
    modules: tuple[str, ...],
    master: str | None,
) -> None:
    """Compile subscriptions into a version of an index.

    Give --conditions with their --schema, or a --log, whose live subscriptions are compiled. Wrong
    conditions are left out and reported. A version never changes; the next one is another folder.
    With --stats, from `tamis spark stats`, the version is planned for events like those.
    """
    if (conditions is None) == (log is None) or (conditions is None) != (schema is None):
        raise click.UsageError("Give either --conditions and --schema, or --log.")
    from tamis.model.schema import Schema
    from tamis.spark.jobs.compile_index import compile_conditions, compile_log
    from tamis.spark.runtime.job_runner import run_job
    from tamis.store.log import Log
    from tamis.store.stats import Stats
    from tamis.store.versions import Versions

    versions = Versions(index)
    console = stdout_console()
    # Check everything before Spark starts, which takes a while.
    if stats is not None:
        Stats.open(stats)
    how: dict[str, Any] = {"shards": shards, "stats": stats, "modules": modules}
    source: Log | tuple[Path, Schema]
    if conditions is not None and schema is not None:
        _format(conditions)
        if versions.latest() is not None:
            raise TamisError(
                f"{versions.folder}: holds a version already, and conditions have no sequence "
                "number to say which is newer; name another folder"
            )
        source = conditions, Schema.load(schema)
    else:
        assert log is not None
        source = Log.open(log)

    def job(spark: SparkSession, progress: Progress) -> tuple[CompiledIndex, float]:
        begun = perf_counter()
        if isinstance(source, Log):
            made = compile_log(spark, source, versions, progress=progress, **how)
        else:
            path, known = source

            def compiled() -> CompiledIndex:
                return compile_conditions(_frame(spark, path), versions, known, **how)

            made = run_job(spark, compiled, progress=progress)
        return made, perf_counter() - begun

    unit = "shards" if isinstance(source, Log) else "tasks"
    made, seconds = run_on_spark(console, master, f"Compiling, by {unit}", job)
    written = sum(shard.bytes for shard in made.version.shards)
    console.print(
        f"{made.subscriptions:,} subscriptions in {len(made.version.shards):,} shards, "
        f"{file_size(written)}, in {seconds:.1f} s, {rate(made.subscriptions, seconds)}"
    )
    if made.refused:
        console.print(f"{made.refused:,} were refused:")
        for reason in made.reasons[:SHOWN_REFUSALS]:
            console.print(f"  {reason}", soft_wrap=True)
    console.print(f"The version is {made.version.folder}.", soft_wrap=True)


def _format(conditions: Path) -> str:
    """The format of the files, which is their suffix."""
    if not conditions.exists():
        raise TamisError(f"{conditions}: there is no such file or folder")
    suffix = conditions.suffix.lower()
    if conditions.is_dir():
        suffixes = {each.suffix.lower() for each in conditions.iterdir() if each.is_file()}
        known = sorted(suffixes.intersection(_FORMATS))
        if len(known) != 1:
            found = f"found {' and '.join(known)}" if known else "found none"
            raise TamisError(
                f"{conditions}: expected files of one format out of {' '.join(_FORMATS)}; {found}"
            )
        suffix = known[0]
    if suffix not in _FORMATS:
        raise TamisError(
            f"{conditions}: the format is unknown; expected one of {' '.join(_FORMATS)}"
        )
    return suffix


def _frame(spark: SparkSession, conditions: Path) -> DataFrame:
    suffix, path = _format(conditions), str(conditions.absolute())
    if suffix == ".parquet":
        return spark.read.parquet(path)
    if suffix == ".csv":
        found = spark.read.csv(path, header=True, escape='"', multiLine=True)
        return _with_numeric_ids(found) if "id" in found.columns else found
    return spark.read.json(path)


def _with_numeric_ids(found: DataFrame) -> DataFrame:
    """CSV has no types: ids become numbers if all of them are written as whole numbers."""
    if found.where(f"id is null or not id rlike '{_WHOLE_NUMBER}'").isEmpty():
        return found.withColumn("id", found["id"].cast("bigint"))
    return found
