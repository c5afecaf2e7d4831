"""Tables of any size as parquet, drawn in tasks: each file has a seed of its own.

A worker holds one file at a time, the driver none. A file has the same name and rows however often
it is drawn, so a task may be tried again. Files are drawn in a scratch folder, and moved when all
are complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tamis.errors import SparkError, StoreError
from tamis.files.atomic import atomic_file
from tamis.files.os_errors import os_errors_as
from tamis.files.sync import sync_folder, synced_rename
from tamis.spark.runtime.job_runner import Progress, run_tasks
from tamis.spark.runtime.scratch_folder import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_GROUP = 1 << 17  # rows: a task's least share of a file
_DRAWN = pa.schema([("file", pa.int32()), ("rows", pa.int64()), ("bytes", pa.int64())])


class TableFile(NamedTuple):
    """One file of a table."""

    table: str  # and the folder that it is in
    number: int
    first: int  # row of the table that it begins with
    rows: int

    @property
    def name(self) -> str:
        return f"part-{self.number:05d}.parquet"


class GeneratedTables(NamedTuple):
    """The tables that were written."""

    rows: dict[str, int]  # by table
    bytes: dict[str, int]
    files: int


Draw = Callable[[TableFile], pa.Table]
"""Draws the rows of a file. Workers have to be able to import it."""


def table_files(table: str, rows: int, files: int) -> list[TableFile]:
    """A table in files of about one size; at least one file, which has the columns."""
    if rows < 0 or files < 1:
        raise SparkError(f"{table}: rows are 0 or more and files 1 or more, got {rows}, {files}")
    files = max(1, min(files, rows))
    cuts = [rows * at // files for at in range(files + 1)]
    return [TableFile(table, at, cuts[at], cuts[at + 1] - cuts[at]) for at in range(files)]


@contextmanager
def draft_folder(out: str | os.PathLike[str], names: Sequence[str]) -> Iterator[Path]:
    """A folder for files and folders of these names. At the end they are moved to `out`.

    If the block raises, or its process is killed, `out` stays as it was, and the next run begins
    anew. Names that exist already are refused.
    """
    folder = Path(out).absolute()
    _check_free(folder, names)
    with ExitStack() as held:
        with os_errors_as(StoreError, f"{folder}: cannot be written to"):
            above = held.enter_context(scratch_folder(folder))
        yield above
        _check_free(folder, names)
        with os_errors_as(StoreError, f"{folder}: cannot be written to"):
            for name in names:
                synced_rename(above / name, folder / name)


def _check_free(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        if (folder / name).exists():
            raise SparkError(f"{folder}: holds {name} already; name another folder")


def generate(
    spark: SparkSession,
    wanted: Sequence[TableFile],
    draw: Draw,
    out: str | os.PathLike[str],
    progress: Progress | None = None,
) -> GeneratedTables:
    """Draw all files, and write them below `out`; existing ones are replaced."""
    folder = Path(out).absolute()
    tables = list(dict.fromkeys(file.table for file in wanted))
    for table in tables:
        with os_errors_as(StoreError, f"{folder / table}: cannot be written to"):
            (folder / table).mkdir(parents=True, exist_ok=True)
    task = _DrawTask(tuple(wanted), draw, str(folder))
    made = run_tasks(spark, len(wanted), task.run, _DRAWN, progress)
    rows, sizes = dict.fromkeys(tables, 0), dict.fromkeys(tables, 0)
    for row in made:
        table = wanted[row["file"]].table
        rows[table] += row["rows"]
        sizes[table] += row["bytes"]
    for table in tables:
        sync_folder(folder / table)
    return GeneratedTables(rows, sizes, len(made))


class _DrawTask(NamedTuple):
    """What all tasks need. A task is a file."""

    files: tuple[TableFile, ...]
    draw: Draw
    out: str

    def run(self, number: int) -> Iterator[dict[str, int]]:
        """Draw a file, and say how large it is."""
        file = self.files[number]
        table = self.draw(file)
        path = Path(self.out) / file.table / file.name
        _write(table, path)
        yield {"file": number, "rows": table.num_rows, "bytes": path.stat().st_size}


def _write(table: pa.Table, path: Path) -> None:
    """In one step: two tasks may draw the same file at the same time."""
    with os_errors_as(StoreError, f"{path}: cannot be written"), atomic_file(path) as file:
        parquet.write_table(table, file, row_group_size=ROW_GROUP)
