"""`tamis spark compile`: compile conditions or a log into a version of an index."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tamis.cli.data.formats import PARQUET, input_files
from tamis.cli.data.subscription_rows import FORMATS
from tamis.cli.data.subscriptions import read_subscriptions, strict_option
from tamis.cli.spark.session import (
    SHOWN_REFUSALS,
    log_option,
    master_option,
    operators_option,
    run_on_spark,
    schema_option,
)
from tamis.cli.terminal.console import report_console
from tamis.cli.terminal.numbers import file_size, rate
from tamis.cli.terminal.options import FOLDER, PATH, option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError, counted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.jobs.compile_index import CompiledIndex
    from tamis.spark.runtime.job_runner import Progress


@click.command(name="compile")
@option(
    "--conditions",
    f"File or folder of conditions: {' '.join(FORMATS)}.",
    PATH,
)
@strict_option
@schema_option
@log_option
@option("--index", "Folder of the index; it gets a new version.", FOLDER, required=True)
@option("--stats", "Folder of statistics of past events, to plan for.", PATH)
@option("--shards", "Shards of the version.  [default: by its size]", click.IntRange(1))
@operators_option
@master_option
@json_option
def compile_(
    conditions: Path | None,
    strict: bool,
    schema: Path | None,
    log: Path | None,
    index: Path,
    stats: Path | None,
    shards: int | None,
    modules: tuple[str, ...],
    master: str | None,
    as_json: bool,
) -> None:
    """Compile subscriptions into a version of an index.

    Give --conditions with their --schema, or a --log, whose live subscriptions are compiled. Wrong
    conditions are left out and reported. With --strict, or if all are wrong, nothing is published.
    A version never changes; the next one is another folder. With --stats, from `tamis spark stats`,
    the version is planned for events like those.
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
    console = report_console(as_json)
    # Check everything before Spark starts, which takes a while.
    if stats is not None:
        Stats.open(stats)
    how: dict[str, Any] = {"shards": shards, "stats": stats, "modules": modules, "strict": strict}
    source: Log | tuple[_Conditions, Schema]
    if conditions is not None and schema is not None:
        if versions.latest() is not None:
            raise TamisError(
                f"{versions.folder}: holds a version already, and conditions have no sequence "
                "number to say which is newer; name another folder"
            )
        source = _Conditions.read(conditions, strict), Schema.load(schema)
        for line in source[0].report:
            console.print(line, soft_wrap=True)
    else:
        assert log is not None
        source = Log.open(log)

    def job(spark: SparkSession, progress: Progress) -> tuple[CompiledIndex, float]:
        begun = perf_counter()
        if isinstance(source, Log):
            made = compile_log(spark, source, versions, progress=progress, some=True, **how)
        else:
            given, known = source

            def compiled() -> CompiledIndex:
                return compile_conditions(given.frame(spark), versions, known, **how)

            made = run_job(spark, compiled, progress=progress)
        return made, perf_counter() - begun

    unit = "shards" if isinstance(source, Log) else "tasks"
    made, seconds = run_on_spark(console, master, f"Compiling, by {unit}", job)
    written = sum(shard.bytes for shard in made.version.shards)
    console.print(
        f"{counted(made.subscriptions, 'subscription')} in "
        f"{counted(len(made.version.shards), 'shard')}, "
        f"{file_size(written)}, in {seconds:.1f} s, {rate(made.subscriptions, seconds)}"
    )
    if made.refused:
        console.print(f"{counted(made.refused, 'was', 'were')} refused:")
        for reason in made.reasons[:SHOWN_REFUSALS]:
            console.print(f"  {reason}", soft_wrap=True)
    console.print(f"The version is {made.version.folder}.", soft_wrap=True)
    answer = {
        "version": made.version.folder,
        "subscriptions": made.subscriptions,
        "shards": len(made.version.shards),
        "bytes": written,
        "seconds": seconds,
        "refused": made.refused,
        "reasons": made.reasons,
    }
    print_answer(answer, as_json, "")


class _Conditions(NamedTuple):
    """Conditions of files: a table, or parquet files, which workers read."""

    table: pa.Table | None
    files: list[Path]
    report: list[str]

    @classmethod
    def read(cls, path: Path, strict: bool) -> _Conditions:
        files = input_files(path, FORMATS)
        if all(each.suffix.lower() == PARQUET for each in files):
            return cls(None, files, [])
        found = read_subscriptions(path)
        found.check(path, strict=strict)
        return cls(found.table, files, found.report())

    def frame(self, spark: SparkSession) -> DataFrame:
        if self.table is None:
            return spark.read.parquet(*[str(each.absolute()) for each in self.files])
        return spark.createDataFrame(self.table)
