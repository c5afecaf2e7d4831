"""`tamis spark generate`: write a workload of any size as parquet."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click
import numpy as np

from tamis import workload
from tamis.cli.spark.session import master_option, run_on_spark
from tamis.cli.terminal.console import report_console
from tamis.cli.terminal.numbers import file_size, rate
from tamis.cli.terminal.options import FOLDER, WholeNumber, option, seed_option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError, counted, nearest
from tamis.workload.tables import conditions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tamis.spark.jobs.generate_tables import GeneratedTables, TableFile
    from tamis.spark.runtime.job_runner import Progress
    from tamis.workload import Workload

EVENTS, SUBSCRIPTIONS = "events", "subscriptions"
EVENT_ID = "event_id"
_SCHEMA, _FACTS = "schema.yaml", "workload.json"
_FILE_ROWS = {EVENTS: 1_000_000, SUBSCRIPTIONS: 250_000}  # without --files
_MOST_AT_ONCE = 2_000_000  # subscriptions of a workload that cannot be drawn file by file
_NAMES = list(dict.fromkeys([*workload.VARIANTS, *workload.names()]))


@click.command()
@click.argument("name", metavar="WORKLOAD")
@option("--events", "Number of events, for example 1e8.", WholeNumber(0), required=True)
@option("--subscriptions", "Number of subscriptions.", WholeNumber(0), required=True)
@option("--out", "New folder for events, subscriptions and schema.yaml.", FOLDER, required=True)
@option(
    "--files",
    "Files of each table.  [default: one for 1,000,000 events, or for 250,000 subscriptions]",
    click.IntRange(1),
)
@seed_option()
@master_option
@json_option
def generate(
    name: str,
    events: int,
    subscriptions: int,
    out: Path,
    files: int | None,
    seed: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Write a workload as parquet: events, subscriptions as conditions in text, and the schema.

    A task draws each file, with a seed of its own: the same command writes the same files, and
    another number of files gives other rows. A command that fails or is stopped leaves nothing
    behind.
    """
    from tamis.errors import StoreError
    from tamis.files.os_errors import os_errors_as
    from tamis.model.schema import Schema
    from tamis.model.schemas.document import to_yaml
    from tamis.spark.jobs.generate_tables import draft_folder, table_files
    from tamis.spark.jobs.generate_tables import generate as generated

    schema = Schema.from_dict(_base(name, seed, _size_if_tied(name, subscriptions)).schema)
    wanted: list[TableFile] = []
    for table, rows in ((EVENTS, events), (SUBSCRIPTIONS, subscriptions)):
        wanted += table_files(table, rows, files or max(1, -(-rows // _FILE_ROWS[table])))
    console = report_console(as_json)
    task = partial(draw, name, seed, _size_if_tied(name, subscriptions))
    with draft_folder(out, (EVENTS, SUBSCRIPTIONS, _SCHEMA, _FACTS)) as draft:

        def job(spark: SparkSession, progress: Progress) -> tuple[GeneratedTables, float]:
            begun = perf_counter()
            return generated(spark, wanted, task, draft, progress), perf_counter() - begun

        made, seconds = run_on_spark(console, master, "Drawing, by files", job)
        facts = {"workload": name, "seed": seed, "rows": made.rows, "files": made.files}
        with os_errors_as(StoreError, f"{out}: cannot be written to"):
            (draft / _SCHEMA).write_text(to_yaml(schema), encoding="utf-8")
            (draft / _FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for table, rows in made.rows.items():
        console.print(f"{rows:,} {table}, {file_size(made.bytes[table])}")
    total = sum(made.rows.values())
    console.print(f"{counted(made.files, 'file')} in {seconds:.1f} s, {rate(total, seconds)}")
    console.print(f"They are in {out}, with schema.yaml.", soft_wrap=True)
    answer = {**facts, "bytes": made.bytes, "seconds": seconds, "out": out}
    print_answer(answer, as_json, "")


def draw(name: str, seed: int, whole: int | None, file: TableFile) -> pa.Table:
    """The rows of a file, drawn in a worker. `whole`: size of a workload that is drawn at once."""
    import pyarrow as pa

    numbers = pa.array(np.arange(file.first, file.first + file.rows, dtype=np.int64))
    if file.table == EVENTS:
        drawn = _base(name, seed, whole).events(file.rows, seed=file.number)
        return drawn.add_column(0, EVENT_ID, numbers)
    if whole is not None:
        rows = _base(name, seed, whole).subscriptions.slice(file.first, file.rows)
    else:
        rows = _made(name, file.rows, _file_seed(seed, file.number)).subscriptions
    texts = rows["condition"] if "condition" in rows.column_names else conditions(rows)
    return pa.table({"id": numbers, "condition": texts})


def _file_seed(seed: int, number: int) -> int:
    """A seed for one file. Other files, and other seeds, almost surely have another."""
    state = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # not negative, and fits into a signed integer


def _size_if_tied(name: str, subscriptions: int) -> int | None:
    """The size of a workload whose events depend on its subscriptions, None for others."""
    _known(name)
    given = workload.VARIANTS[name].parameters if name in workload.VARIANTS else {}
    if given.get("matching") is None:
        return None
    if subscriptions > _MOST_AT_ONCE:
        raise TamisError(
            f"{name}: its events depend on its subscriptions, so all are drawn at once: at most "
            f"{_MOST_AT_ONCE:,} subscriptions, got {subscriptions:,}"
        )
    return subscriptions


def _known(name: str) -> None:
    if name not in _NAMES:
        hint = nearest(name, _NAMES) or f"known are {', '.join(_NAMES)}"
        raise TamisError(f"there is no workload {name!r}; {hint}")


@lru_cache(maxsize=1)
def _base(name: str, seed: int, whole: int | None) -> Workload:
    """The workload that draws the events. Most need no subscriptions for that."""
    return _made(name, whole or 0, seed)


def _made(name: str, rows: int, seed: int) -> Workload:
    _known(name)
    if name in workload.VARIANTS:
        return workload.make_variant(name, rows, seed=seed)
    return workload.make(name, rows, seed=seed)
