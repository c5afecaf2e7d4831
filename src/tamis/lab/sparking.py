"""The jobs on Spark: how much of the engine's speed is left, and what else one could have done.

The engine alone and the job take turns on the same files and the same processors, and what counts
is the median of their ratios. Beside them the two ways in which one would do it in SQL: predicates
as rows that are counted (TOPSS), and a join on the equalities with a filter for the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pyarrow import parquet

from tamis import workload
from tamis.engine import Engine
from tamis.errors import TamisError, nearest
from tamis.lab import spark_answers, spark_memory
from tamis.lab.progress import Step
from tamis.lab.records import Figure, Goal
from tamis.lab.setting import Setting
from tamis.lab.spark_data import SEEN, SPARK, laid_out_engine, prepared
from tamis.lab.spark_sql import ways
from tamis.lab.timing import Sample, timed
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = ("matching", "reading", "sql", "memory", "answers")
_SHARE = Goal(0.7, at_most=False)  # of what the engine does alone, and of what can be read
_AT_ONCE = 8192  # events that the engine takes at once


def rows(names: tuple[str, ...]) -> tuple[str, ...]:
    """The named rows, in the order of the table; all of them where none is named."""
    for name in names:
        if name not in ROWS:
            raise TamisError(f"there is no row {name!r} of spark; {nearest(name, ROWS)}")
    return tuple(name for name in ROWS if not names or name in names)


def runs(setting: Setting) -> Iterator[Figure | Step]:
    """Each row of the table, in one session."""
    from tamis.spark.runtime import sessions

    chosen = rows(setting.rows)
    with TemporaryDirectory(prefix="tamis-bench-") as made:
        folder = Path(made)
        if {"matching", "reading", "sql", "answers"}.intersection(chosen):
            yield Step(SPARK, "starting Spark")
            before = sessions.active()
            spark = sessions.session()
            for name in chosen:
                if name != "memory":
                    yield from _ROWS[name](setting, spark, folder)
            if before is None:
                spark.stop()
        if "memory" in chosen:
            yield from spark_memory.figures(setting, folder)


def steps(setting: Setting) -> int:
    """How many figures and steps there will be."""
    size = {
        "matching": 2 + setting.spark_rounds + 5,
        "reading": 2 + setting.spark_rounds + 5,
        "sql": 1 + 2,
        "memory": spark_memory.STEPS,
        "answers": spark_answers.STEPS,
    }
    chosen = rows(setting.rows)
    return sum(size[name] for name in chosen) + (chosen != ("memory",))


def _matching(setting: Setting, spark: SparkSession, folder: Path) -> Iterator[Figure | Step]:
    """Many subscriptions: the engine alone, counting; the job, counting, and writing the pairs."""
    from tamis.spark.jobs.match_files import match_files

    yield Step(SPARK, "many subscriptions: data")
    there = folder / "matching"
    made = prepared(there, setting.spark_subscriptions, setting.spark_events, setting.seed)
    threads = len(os.sched_getaffinity(0))
    engine = Engine.open(there / "engine", threads=threads)
    pairs: list[int] = []

    def alone() -> None:
        pairs.append(_count(engine, there / "events"))

    def counted() -> None:
        pairs.append(match_files(spark, there / "events", there / "engine").pairs)

    def written() -> None:
        shutil.rmtree(there / "out", ignore_errors=True)
        done = match_files(spark, there / "events", there / "engine", there / "out")
        pairs.append(done.pairs)

    yield Step(SPARK, "many subscriptions: workers start")
    match_files(spark, there / "some", there / "engine", there / "warm")
    _count(engine, there / "some")
    taken: list[list[float]] = []
    for turn in range(setting.spark_rounds):
        yield Step(SPARK, f"many subscriptions: round {turn + 1} of {setting.spark_rounds}")
        taken.append([timed(each) for each in (alone, counted, written)])
    if len(set(pairs)) != 1:
        raise TamisError(f"the engine and the job found different numbers of pairs: {set(pairs)}")
    facts = {**made.parameters, "events": setting.spark_events, "pairs": pairs[0]}
    facts["threads"] = threads
    many = f"{setting.spark_subscriptions:,} DEXIN subscriptions, events"
    full = setting.spark_subscriptions >= 1_000_000 and setting.spark_events >= 2_000_000
    yield _rate(f"{many}: the engine alone, counting", taken, 0, facts)
    yield _rate("  tamis spark match --count-only", taken, 1, facts)
    yield _rate("  tamis spark match --out", taken, 2, facts)
    yield _ratio("  counting, of the engine alone", taken, 1, _SHARE if full else None, facts)
    yield _ratio("  writing, of the engine alone", taken, 2, _SHARE if full else None, facts)
    shutil.rmtree(there)


def _reading(setting: Setting, spark: SparkSession, folder: Path) -> Iterator[Figure | Step]:
    """Few subscriptions: the job, and the same job without matching.

    What can be read is what workers read that do nothing else, as Spark has made them. In those
    that have matched before reading is faster too: they do not look everywhere for garbage.
    """
    from tamis.spark.jobs.match_files import match_files, read_files

    yield Step(SPARK, "few subscriptions: data")
    there = folder / "reading"
    made = prepared(there, setting.spark_few, setting.spark_events, setting.seed)
    schema = Schema.from_dict(made.schema)

    def written() -> None:
        shutil.rmtree(there / "out", ignore_errors=True)
        match_files(spark, there / "events", there / "engine", there / "out")

    def bare() -> None:
        with _other_workers(spark):
            read_files(spark, there / "events", schema)

    jobs: list[Callable[[], object]] = [
        bare,
        lambda: match_files(spark, there / "events", there / "engine"),
        written,
        lambda: read_files(spark, there / "events", schema),
    ]
    yield Step(SPARK, "few subscriptions: workers start")
    for job in jobs:
        job()
    taken: list[list[float]] = []
    for turn in range(setting.spark_rounds):
        yield Step(SPARK, f"few subscriptions: round {turn + 1} of {setting.spark_rounds}")
        taken.append([timed(job) for job in jobs])
    facts = {**made.parameters, "events": setting.spark_events}
    few = f"{setting.spark_few:,} DEXIN subscriptions, events"
    full = setting.spark_events >= 2_000_000
    yield _rate(f"{few}: read, and not matched", taken, 0, facts)
    yield _rate("  the same by workers that have matched", taken, 3, facts)
    yield _rate("  tamis spark match --count-only", taken, 1, facts)
    yield _rate("  tamis spark match --out", taken, 2, facts)
    yield _ratio("  writing, of what can be read", taken, 2, _SHARE if full else None, facts)
    shutil.rmtree(there)


def _sql(setting: Setting, spark: SparkSession, folder: Path) -> Iterator[Figure | Step]:
    """The same subscriptions in SQL, at sizes that end."""
    yield Step(SPARK, "in SQL: data")
    made = workload.make("dexin", setting.sql_subscriptions, seed=setting.seed)
    engine = laid_out_engine(made, made.events(SEEN))
    for way in ways(made.subscriptions, folder / "sql"):
        events = made.events(getattr(setting, f"sql_{way.name}_events"))
        wanted = engine.match_batch(events).total
        found: list[int] = []
        seconds = timed(lambda: found.append(way.pairs(spark, events)))  # noqa: B023
        if found != [wanted]:
            raise TamisError(f"{way.title}: found {found} pairs instead of {wanted}")
        facts = {**made.parameters, "events": events.num_rows, "pairs": wanted}
        what = f"{setting.sql_subscriptions:,} DEXIN subscriptions in SQL, {way.title}: events"
        sample = Sample(seconds, seconds, seconds, 1)
        yield Figure.rate(SPARK, what, sample, events.num_rows, None, **facts)


def _answers(setting: Setting, spark: SparkSession, folder: Path) -> Iterator[Figure | Step]:
    yield from spark_answers.figures(setting, spark, folder)


_ROWS: dict[str, Callable[[Setting, SparkSession, Path], Iterator[Figure | Step]]] = {
    "matching": _matching,
    "reading": _reading,
    "sql": _sql,
    "answers": _answers,
}


@contextmanager
def _other_workers(spark: SparkSession) -> Iterator[None]:
    """Jobs run in Python processes of their own, which stay for the next time."""
    environment: Any = spark.sparkContext.environment
    environment["TAMIS_BENCH"] = "reading"  # Spark keeps workers apart by what is in it
    try:
        yield
    finally:
        del environment["TAMIS_BENCH"]


def _count(engine: Engine, folder: Path) -> int:
    """What the engine makes of the same files, in this process."""
    pairs = 0
    for file in sorted(folder.iterdir()):
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(_AT_ONCE):
                pairs += engine.match_batch(batch).total
    return pairs


def _rate(what: str, taken: list[list[float]], at: int, facts: dict[str, Any]) -> Figure:
    seconds = [turn[at] for turn in taken]
    sample = Sample(median(seconds), min(seconds), max(seconds), len(seconds))
    return Figure.rate(SPARK, what, sample, facts["events"], None, **facts)


def _ratio(
    what: str, taken: list[list[float]], at: int, goal: Goal | None, facts: dict[str, Any]
) -> Figure:
    """The speed of one as a share of that of the first, turn by turn."""
    shares = [turn[0] / turn[at] for turn in taken]
    low, high = min(shares), max(shares)
    return Figure(SPARK, what, median(shares), "×", low, high, len(shares), goal, facts)
