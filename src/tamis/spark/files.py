"""`match_files`: events in parquet files against subscriptions in a folder, both read by workers.

What goes through Spark is who reads which rows, and how many pairs there were. The pairs are parts
in a folder, in the layout of `format("tamis_notifications")`, named by one manifest that the driver
writes when all of them are there. A task that is tried again writes parts of another name.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engine import Engine
from tamis.engine.expecting import lay_out
from tamis.errors import SparkError
from tamis.match.answers import Matches
from tamis.model.schema import Schema
from tamis.spark import reports, sink
from tamis.spark.event_pieces import Events, sampled
from tamis.spark.file_columns import check_once, dealt, every_group, layouts
from tamis.spark.file_tasks import DONE, Job
from tamis.spark.part_files import SEQUENCE, SUBSCRIPTION
from tamis.spark.row_groups import found, shares
from tamis.spark.watching import Progress, cores, watched
from tamis.spark.worker import packed
from tamis.store.durable import locked, make_folder
from tamis.store.versions import DOCUMENT, Version, Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.operators.faults import Report
    from tamis.operators.operator import Operator

_SCRATCH, _HELD = ".tamis-", "lock"  # a folder for a job, and what is locked in it while it runs


class Matched(NamedTuple):
    """What a job has done. All events are either dead or were matched, with pairs or without."""

    events: int
    matched: int  # events with a pair
    pairs: int
    dead: int
    files: int
    tasks: int
    seconds: float  # of matching, without what went before
    operators: Report = reports.NOTHING  # what they were asked, and did wrong


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
    check_once(kept, [SEQUENCE, SUBSCRIPTION] if id is None else [SUBSCRIPTION])
    folder = None if out is None else _ready(Path(out).absolute(), append)
    with (
        scratch(folder) as above,
        pinned(subscriptions, above, lambda schema: every_group(there, schema), operators) as now,
    ):
        attributes = now.mentioned if trusted and not now.calls else None
        job = Job(
            dealt(
                there,
                layouts(there, now.schema, kept, attributes),
                shares(there.groups, cores(spark)),
            ),
            now.folders,
            now.operators,
            now.texts,
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
        facts: dict[str, Any] = {
            "query": None,
            "batch": None,
            "events": counted.events,
            "matched": counted.matched,
        }
        if len(counted.operators):
            facts |= reports.document(counted.operators)
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
    rows = dealt(there, layouts(there, schema), shares(there.groups, cores(spark)))
    job = Job(rows, (), b"", False, None, (), True, None, "")
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
            share, bits = row["task"] % len(job.events.shares), int.from_bytes(row["bits"], "big")
            share_of[share] = share_of.get(share, 0) | bits
        matched = sum(bits.bit_count() for bits in share_of.values())
    asked = reports.total(reports.read(json.loads(row["operators"])) for row in made)
    return Matched(events, matched, pairs, dead, len(job.events.files), job.tasks, seconds, asked)


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


class Pinned(NamedTuple):
    """Subscriptions as they were when the job began."""

    folders: tuple[str, ...]
    operators: bytes
    engines: tuple[Engine, ...]  # of the folders, in this process

    @property
    def schema(self) -> Schema:
        """Of the events."""
        return self.engines[0].schema

    @property
    def texts(self) -> bool:
        """Whether ids are text."""
        return any(_texts(engine) for engine in self.engines)

    @property
    def calls(self) -> bool:
        """Whether conditions call operators, which may read any attribute."""
        return any(len(engine.calls) for engine in self.engines)

    @property
    def mentioned(self) -> set[str]:
        """Attributes that some condition asks for."""
        return {name for engine in self.engines for name in mentioned(engine)}


def engine_folders(subscriptions: str | os.PathLike[str]) -> list[Path]:
    """The folders of saved engines that an index, a version or a saved engine consists of."""
    path = Path(subscriptions).absolute()
    if not path.is_dir():
        raise SparkError(f"{path}: there is no folder of that name")
    version = Version.open(path) if (path / DOCUMENT).is_file() else Versions(path).latest()
    return [path] if version is None else version.shard_folders


@contextmanager
def used_folders(subscriptions: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """The same, and nobody sweeps the version before the block is over."""
    engine_folders(subscriptions)  # refuses what is none
    path = Path(subscriptions).absolute()
    named = Version.open(path) if (path / DOCUMENT).is_file() else None
    index = path if named is None else path.parent
    with Versions(index).used(None if named is None else named.sequence) as version:
        # One that was named is looked at again: it may have gone just before.
        yield engine_folders(subscriptions if version is None or named else version)


@contextmanager
def scratch(out: Path | None) -> Iterator[Path]:
    """A folder for the time of a job. Workers have to see it: where results go, they all can.

    A lock in it says that the job lives. Folders of jobs that were killed are removed.
    """
    if out is not None:
        make_folder(out)
    _sweep_scratch(Path(tempfile.gettempdir()) if out is None else out)
    with ExitStack() as held:
        while True:
            above = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=out))
            held.callback(shutil.rmtree, above, ignore_errors=True)
            held.enter_context(locked(above / _HELD))
            if (above / _HELD).exists():  # or somebody took it for left over before it was locked
                break
        yield above


def _sweep_scratch(folder: Path) -> None:
    for left in folder.glob(f"{_SCRATCH}*"):
        # Where there is no lock yet somebody may be about to make one; others' are not to be read.
        with suppress(OSError):
            if (left / _HELD).is_file():
                with locked(left / _HELD, wait=False):
                    shutil.rmtree(left, ignore_errors=True)


@contextmanager
def pinned(
    subscriptions: str | os.PathLike[str] | Engine,
    above: Path,
    events: Callable[[Schema], Events],
    operators: Operator | Iterable[Operator] = (),
) -> Iterator[Pinned]:
    """Subscriptions in folders that workers can open: as they are, or else copies in `above`.

    An engine is copied as it is now, and so is one that has not decided where its clauses lie,
    after some of the events have told it. Nobody sweeps a version meanwhile.
    """
    held = ExitStack()
    mine = isinstance(subscriptions, Engine)  # the caller's own, which is not closed here
    if isinstance(subscriptions, Engine):
        given = packed(subscriptions.calls.operators if operators == () else operators)
        known: Iterable[tuple[Path | None, Engine]] = [(None, subscriptions)]
    else:
        given = packed(operators)
        known = _opened(held.enter_context(used_folders(subscriptions)), given)
    folders: list[str] = []
    engines: list[Engine] = []
    with held:
        for folder, engine in known:
            engines.append(engine)
            if not mine:
                held.callback(engine.close)
            if folder is None or not laid_out(engine):
                folder = above / f"engine-{len(folders)}"  # noqa: PLW2901 - a copy is taken for it
                if not laid_out(engine):
                    schema = engine.schema
                    lay_out(engine, sampled(events(schema), schema.attributes))
                engine.save(folder)
            folders.append(str(folder))
        yield Pinned(tuple(folders), given, tuple(engines))


def _opened(folders: Iterable[Path], operators: bytes) -> Iterator[tuple[Path | None, Engine]]:
    for folder in folders:
        # Checksums are compared here, once, and not by every worker.
        yield folder, Engine.open(folder, operators=pickle.loads(operators) if operators else ())


def laid_out(engine: Engine) -> bool:
    """Whether an engine has decided where its clauses lie.

    One that was saved before it saw an event has not: each worker would decide for itself, and
    keep what it makes of that to itself, instead of sharing one copy.
    """
    return not len(engine) or engine.matcher.facts().get("laid_out", True) is not None


def mentioned(engine: Engine) -> set[str]:
    """The attributes that the conditions of an engine ask for, less what operators read."""
    clauses = engine.matcher.clauses
    _, (attribute, *_) = clauses.terms(clauses.live_slots())
    names = list(engine.schema.attributes)
    return {names[at] for at in np.unique(attribute).tolist()}


def _texts(engine: Engine) -> bool:
    nothing = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64))
    return bool(engine.roster.named(nothing).subscriptions.dtype == object)
