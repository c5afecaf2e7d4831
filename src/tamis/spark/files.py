"""`match_files`: events in parquet files against subscriptions in a folder, both read by workers.

What goes through Spark is who reads which rows, and how many pairs there were. The pairs are parts
in a folder, in the layout of `format("tamis_notifications")`, named by one manifest that the driver
writes when all of them are there. A task that is tried again writes parts of another name.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis.encode.sifting import sift
from tamis.engine import Engine
from tamis.errors import SparkError, nearest
from tamis.match.answers import Matches
from tamis.model.schema import Schema
from tamis.spark import sink
from tamis.spark.columns import Source, sources
from tamis.spark.file_tasks import DONE, Job, Layout
from tamis.spark.part_files import SEQUENCE, SUBSCRIPTION
from tamis.spark.row_groups import Found, found, shares
from tamis.spark.watching import Progress, cores, watched
from tamis.spark.worker import packed
from tamis.store.versions import DOCUMENT, Version, Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

    from tamis.operators.operator import Operator

_SAMPLE = 4096  # events that clauses are laid out for, where they are not yet


class Matched(NamedTuple):
    """What a job has done. All events are either dead or were matched, with pairs or without."""

    events: int
    matched: int  # events with a pair
    pairs: int
    dead: int
    files: int
    tasks: int
    seconds: float  # of matching, without what went before


def match_files(
    spark: SparkSession,
    events: str | os.PathLike[str],
    subscriptions: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    id: str | None = None,
    columns: Iterable[str] = (),
    operators: Operator | Iterable[Operator] = (),
    trusted: bool = False,
    append: bool = False,
    progress: Progress | None = None,
) -> Matched:
    """Match all events of parquet files, and write the pairs to a folder.

    Args:
        spark: the session, classic or of Connect.
        events: a folder of parquet files, a pattern that names them, or one file. A column with
            the name of an attribute is that attribute.
        subscriptions: the folder of an index (its latest version), of a version, or of a saved
            engine.
        out: where pairs go; without it they are counted only.
        id: the column that tells events apart. Without it an event's number does, from 0 on in
            the order of the files' names, as `sequence`.
        columns: of the events that pairs are to have besides.
        operators: those that conditions call, if they are not registered.
        trusted: only attributes that some subscription asks for are read, and events are taken to
            be consistent, as those that `tamis.spark.validate` let through.
        append: add to what an earlier job has left in `out`, instead of refusing it.
        progress: is called with how many tasks are done, and how many there are.

    Events that break a rule of the schema are written to `dead`, with the reason.
    """
    there = found(events)
    kept = [*([] if id is None else [id]), *columns]
    folder = None if out is None else _ready(Path(out).absolute(), append)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with _pinned(subscriptions, there, operators, folder) as pinned:
        attributes = None
        if trusted and not pinned.calls:
            attributes = pinned.mentioned
        layouts = _layouts(there, pinned.schema, kept, id, attributes)
        job = Job(
            tuple(there.files),
            layouts,
            tuple(there.schema_of),
            tuple(shares(there.groups, cores(spark))),
            tuple(pinned.folders),
            pinned.operators,
            pinned.texts,
            id,
            tuple(kept),
            attributes is not None,
            None if folder is None else str(folder),
            uuid.uuid4().hex,
        )
        begun = perf_counter()
        try:
            made = _run(spark, job, progress)
        except BaseException:
            _discard(job)
            raise
        counted = _counted(job, made, perf_counter() - begun)
    if folder is not None:
        facts = {"query": None, "batch": None, "events": counted.events, "matched": counted.matched}
        parts = [sink.Part(**part.asDict()) for row in made for part in row["parts"]]
        sink.commit(folder, job.name, facts, [sink.Parts(parts)])
    return counted


def check_given(
    events: str | os.PathLike[str],
    subscriptions: str | os.PathLike[str],
    out: str | os.PathLike[str] | None,
    append: bool = False,
) -> None:
    """Refuse what can be seen to be wrong before Spark is started, which takes a while."""
    found(events)
    engine_folders(subscriptions)
    if out is not None:
        _ready(Path(out).absolute(), append)


def read_files(
    spark: SparkSession,
    events: str | os.PathLike[str],
    schema: Schema,
    progress: Progress | None = None,
) -> Matched:
    """The same job without matching: what a machine can read, and so the most it could match."""
    there = found(events)
    layouts = _layouts(there, schema, [], None, None)
    files, of = tuple(there.files), tuple(there.schema_of)
    dealt = tuple(shares(there.groups, cores(spark)))
    job = Job(files, layouts, of, dealt, (), b"", False, None, (), True, None, "")
    begun = perf_counter()
    return _counted(job, _run(spark, job, progress), perf_counter() - begun)


def _run(spark: SparkSession, job: Job, progress: Progress | None) -> list[Any]:
    if not job.tasks:
        return []

    # Spark counts the parameters of what it is given, and would count `self` of a method.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return job.run(batches)

    numbers = spark.range(job.tasks, numPartitions=job.tasks)
    return watched(spark, lambda: numbers.mapInArrow(run, DONE).collect(), job.tasks, progress)


def _counted(job: Job, made: Sequence[Any], seconds: float) -> Matched:
    events, matched, pairs, dead = (
        sum(row[name] for row in made) for name in ("events", "matched", "pairs", "dead")
    )
    if len(job.shards) > 1:  # an event may have matched in several
        matched = 0
        share_of: dict[int, int] = {}
        for row in made:
            share, bits = row["task"] % len(job.shares), int.from_bytes(row["bits"], "big")
            share_of[share] = share_of.get(share, 0) | bits
        matched = sum(bits.bit_count() for bits in share_of.values())
    return Matched(events, matched, pairs, dead, len(job.files), job.tasks, seconds)


def _ready(out: Path, append: bool) -> Path:
    if out.exists() and not out.is_dir():
        raise SparkError(f"{out}: is a file, and not a folder that pairs could be written to")
    if not append and sink.manifests(out):
        raise SparkError(
            f"{out}: holds notifications already; name another folder, or ask for these to be added"
        )
    return out


def _discard(job: Job) -> None:
    """Remove what tasks have left of a job that failed: no manifest names it."""
    if job.out is not None:
        for part in Path(job.out).glob(f"*/part-{job.name}-*.parquet"):
            part.unlink(missing_ok=True)


# -- subscriptions ---------------------------------------------------------------------------------


class _Pinned(NamedTuple):
    """Subscriptions as they were when the job began."""

    folders: list[str]
    operators: bytes
    schema: Schema
    texts: bool
    calls: bool  # whether conditions call operators, which may read any attribute
    mentioned: set[str]  # attributes that some condition asks for


def engine_folders(subscriptions: str | os.PathLike[str]) -> list[Path]:
    """The folders of saved engines that an index, a version or a saved engine consists of."""
    path = Path(subscriptions).absolute()
    if not path.is_dir():
        raise SparkError(f"{path}: there is no folder of that name")
    version = Version.open(path) if (path / DOCUMENT).is_file() else Versions(path).latest()
    return [path] if version is None else version.shard_folders


@contextmanager
def _pinned(
    subscriptions: str | os.PathLike[str],
    events: Found,
    operators: Operator | Iterable[Operator],
    out: Path | None,
) -> Iterator[_Pinned]:
    given = packed(operators)
    engines: list[Engine] = []
    folders: list[str] = []
    above: Path | None = None
    try:
        for at, folder in enumerate(engine_folders(subscriptions)):
            # Checksums are compared here, once, and not by every worker.
            engine = Engine.open(folder, operators=pickle.loads(given) if given else ())
            engines.append(engine)
            if laid_out(engine):
                folders.append(str(folder))
                continue
            if above is None:
                # Workers have to see it too: where pairs go they all can write.
                above = Path(tempfile.mkdtemp(prefix=".laid-out-", dir=out))
            lay_out(engine, _sample(events, engine.schema))
            engine.save(above / str(at))
            folders.append(str(above / str(at)))
        yield _Pinned(
            folders,
            given,
            engines[0].schema,
            any(_texts(engine) for engine in engines),
            any(len(engine.calls) for engine in engines),
            {name for engine in engines for name in mentioned(engine)},
        )
    finally:
        for engine in engines:
            engine.close()
        if above is not None:
            shutil.rmtree(above, ignore_errors=True)


def laid_out(engine: Engine) -> bool:
    """Whether an engine has decided where its clauses lie.

    One that was saved before it saw an event has not: each worker would decide for itself, and
    keep what it makes of that to itself, instead of sharing one copy.
    """
    return not len(engine) or engine.matcher.facts().get("laid_out", True) is not None


def lay_out(engine: Engine, events: pa.Table) -> None:
    """Have an engine decide where its clauses lie, by what some events are like."""
    good = sift(engine.encoder, events).good
    if good.num_rows:
        for _ in range(2):  # a plan for the first few is made again when there are more
            engine.match_batch(good)
            engine.matcher.settle()


def mentioned(engine: Engine) -> set[str]:
    """The attributes that the conditions of an engine ask for, less what operators read."""
    clauses = engine.matcher.clauses
    _, (attribute, *_) = clauses.terms(clauses.live_slots())
    names = list(engine.schema.attributes)
    return {names[at] for at in np.unique(attribute).tolist()}


def _texts(engine: Engine) -> bool:
    nothing = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64))
    return bool(engine.roster.named(nothing).subscriptions.dtype == object)


def _sample(events: Found, schema: Schema) -> pa.Table:
    """Some events of the first, the middle and the last row group."""
    groups = events.groups
    picked = sorted({0, len(groups) // 2, len(groups) - 1} if groups else set())
    layouts = _layouts(events, schema, [], None, None)
    tables = []
    for at in picked:
        rows = groups[at]
        layout = layouts[events.schema_of[rows.file]]
        names = [".".join(path) for _, path in layout.attributes]
        with parquet.ParquetFile(events.files[rows.file]) as file:
            batches = file.iter_batches(_SAMPLE // 3, row_groups=[rows.group], columns=names)
            tables += [pa.Table.from_batches([next(batches)])]
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


# -- columns ---------------------------------------------------------------------------------------


def _layouts(
    events: Found,
    schema: Schema,
    kept: Sequence[str],
    id: str | None,
    attributes: set[str] | None,
) -> tuple[Layout, ...]:
    """Where the files have what is needed; refuses what could not be matched or handed on."""
    taken = [SEQUENCE, SUBSCRIPTION] if id is None else [SUBSCRIPTION]
    for at, name in enumerate(kept):
        if name in taken or name in kept[:at]:
            raise SparkError(
                f"pairs would have two columns {name!r}; name it once, and no other so"
            )
    layouts = []
    for number, columns in enumerate(events.schemas):
        file = events.files[events.schema_of.index(number)]
        for name in kept:
            if name not in columns.names:
                hint = nearest(name, columns.names)
                raise SparkError(
                    f"{file}: there is no column {name!r}; "
                    + (hint or f"these are {', '.join(columns.names[:12])}")
                )
        layouts.append(_layout(file, schema, columns, kept, attributes))
    return tuple(layouts)


def _layout(
    file: str, schema: Schema, columns: pa.Schema, kept: Sequence[str], attributes: set[str] | None
) -> Layout:
    from pyspark.sql.types import StructType

    struct = StructType()
    for field in columns:
        struct.add(field.name, _spark_type(field.type if _asked(field.name, schema) else pa.null()))
    try:
        found = sources(schema, struct, kept)
    except SparkError as why:
        raise SparkError(f"{file}: {why}") from None
    read = [each for each in found if attributes is None or each.attribute in attributes]
    # A table without columns has no rows either.
    return Layout(tuple(map(_way, read or found[:1])), tuple(kept))


def _way(source: Source) -> tuple[str, tuple[str, ...]]:
    return source.attribute, source.path


def _asked(name: str, schema: Schema) -> bool:
    """Whether a column is an attribute, or a struct that holds some."""
    return name in schema.attributes or any(
        each.startswith(f"{name}.") for each in schema.attributes
    )


def _spark_type(kind: pa.DataType) -> DataType:
    """What Spark would call a column, whatever way Arrow has of holding its values.

    Of what Spark has no name for, nothing is said here: values are looked at one by one later.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, LongType, NullType, StringType

    if isinstance(kind, pa.DictionaryType):
        return _spark_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    if pa.types.is_unsigned_integer(kind):
        return LongType()
    if pa.types.is_string_view(kind):
        return StringType()
    try:
        return from_arrow_type(kind)
    except PySparkException:
        return NullType()
