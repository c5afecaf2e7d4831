"""`tamis spark compile`: conditions, or the changes of a log, to a version of an index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.screen import screen
from tamis.cli.spark_jobs import (
    bar,
    cancellable,
    master_option,
    operators_option,
    rate,
    size,
    started,
)
from tamis.errors import TamisError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.model.schema import Schema
    from tamis.spark.jobs.compile_index import CompiledIndex
    from tamis.spark.runtime.job_runner import Progress
    from tamis.store.versions import Versions

_TOLD = 5  # refusals that are shown
_JSON = (".json", ".jsonl", ".ndjson")
_ENDINGS = (".parquet", ".csv", *_JSON)
_WHOLE = "^-?[0-9]{1,18}$"


@click.command(name="compile")
@click.option(
    "--conditions",
    type=click.Path(path_type=Path),
    help=f"Subscriptions, as id and condition: {' '.join(_ENDINGS)}, or a folder of such files.",
)
@click.option("--schema", type=click.Path(path_type=Path), help="Of the events: YAML or JSON.")
@click.option("--log", type=click.Path(path_type=Path), help="Folder of a log, instead of these.")
@click.option(
    "--index",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that gets a version.",
)
@click.option(
    "--stats",
    type=click.Path(path_type=Path),
    help="Folder of statistics of past events, for which subscriptions are laid out.",
)
@click.option(
    "--shards", type=click.IntRange(1), help="Parts of the version.  [default: by its size]"
)
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

    Either --conditions with their --schema, or all that is live at the end of a --log. Conditions
    that are wrong are left out, and told. A version never changes; the next one is another folder.
    With the --stats of `tamis spark stats`, it is laid out for events like those.
    """
    if (conditions is None) == (log is None) or (conditions is None) != (schema is None):
        raise click.UsageError("Give either --conditions and --schema, or --log.")
    from tamis.model.schema import Schema
    from tamis.store.log import Log
    from tamis.store.stats import Stats
    from tamis.store.versions import Versions

    versions = Versions(index)
    console = screen()
    # What can be refused is refused before Spark starts, which takes a while.
    if stats is not None:
        Stats.open(stats)
    if conditions is not None and schema is not None:
        _ending(conditions)
        _check_new(versions)
        declared = Schema.load(schema)
        with started(console, master) as spark, bar(console, "Compiling, by tasks") as progress:
            begun = perf_counter()
            frame = partial(_frame, spark, conditions)
            how = {"shards": shards, "stats": stats, "modules": modules}
            work = partial(_from_conditions, spark, frame, declared, versions, how, progress)
            made = cancellable(spark, work)
    else:
        assert log is not None
        source = Log.open(log)
        from tamis.spark.jobs.compile_index import compile_log

        with started(console, master) as spark, bar(console, "Compiling, by shards") as progress:
            begun = perf_counter()
            work = partial(
                compile_log,
                spark,
                source,
                versions,
                shards=shards,
                stats=stats,
                modules=modules,
                progress=progress,
            )
            made = cancellable(spark, work)
    seconds = perf_counter() - begun
    written = sum(shard.bytes for shard in made.version.shards)
    console.print(
        f"{made.subscriptions:,} subscriptions in {len(made.version.shards):,} shards, "
        f"{size(written)}, in {seconds:.1f} s, {rate(made.subscriptions, seconds)}"
    )
    if made.refused:
        console.print(f"{made.refused:,} were refused:")
        for reason in made.reasons[:_TOLD]:
            console.print(f"  {reason}", soft_wrap=True)
    console.print(f"The version is {made.version.folder}.", soft_wrap=True)


def _check_new(versions: Versions) -> None:
    if versions.latest() is not None:
        raise TamisError(
            f"{versions.folder}: holds a version already, and conditions have no sequence number "
            "that would tell which is newer; name another folder"
        )


def _ending(conditions: Path) -> str:
    """What files there are: the ending says it, in a folder that of the first one."""
    if not conditions.exists():
        raise TamisError(f"{conditions}: there is no such file or folder")
    ending = conditions.suffix.lower()
    if conditions.is_dir():
        endings = {each.suffix.lower() for each in conditions.iterdir() if each.is_file()}
        known = sorted(endings.intersection(_ENDINGS))
        if len(known) != 1:
            found = f"there are {' and '.join(known)}" if known else "there are none"
            raise TamisError(
                f"{conditions}: expected files of one ending of {' '.join(_ENDINGS)}; {found}"
            )
        ending = known[0]
    if ending not in _ENDINGS:
        raise TamisError(
            f"{conditions}: the ending says the format, and is one of {' '.join(_ENDINGS)}"
        )
    return ending


def _from_conditions(
    spark: SparkSession,
    frame: Callable[[], DataFrame],
    schema: Schema,
    versions: Versions,
    how: dict[str, Any],
    progress: Progress,
) -> CompiledIndex:
    from tamis.spark.jobs.compile_index import compile_conditions
    from tamis.spark.runtime.job_runner import run_job

    def made() -> CompiledIndex:
        return compile_conditions(frame(), versions, schema, **how)

    return run_job(spark, made, progress=progress)


def _frame(spark: SparkSession, conditions: Path) -> DataFrame:
    """The conditions as a DataFrame."""
    ending, path = _ending(conditions), str(conditions.absolute())
    if ending == ".parquet":
        return spark.read.parquet(path)
    if ending == ".csv":
        found = spark.read.csv(path, header=True, escape='"', multiLine=True)
        return _numbered(found) if "id" in found.columns else found
    return spark.read.json(path)


def _numbered(found: DataFrame) -> DataFrame:
    """CSV does not say what is a number: where all ids are written as whole numbers, they are."""
    if found.where(f"id is null or not id rlike '{_WHOLE}'").isEmpty():
        return found.withColumn("id", found["id"].cast("bigint"))
    return found
