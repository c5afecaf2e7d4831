"""The speed of jobs on Spark, compared with the engine alone and with SQL.

The engine and the job take turns on the same files and processors, and the median of their ratios
counts. In SQL there are two methods: predicates as rows that are counted (TOPSS), and a join on the
equalities with a filter for the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pyarrow import parquet

from tamis import workload
from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.lab.bench.setting import BenchSetting, chosen_rows
from tamis.lab.bench.spark import answers, memory
from tamis.lab.bench.spark.data import SEEN, SPARK, planned_engine, write_workload
from tamis.lab.bench.spark.sql import methods
from tamis.lab.instruments.timing import TimingSample, timed
from tamis.lab.results.records import Figure, Goal
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = ("matching", "reading", "sql", "memory", "answers")
_SHARE = Goal(0.7, at_most=False)  # of the engine's speed, and of the reading speed
_AT_ONCE = 8192  # events in a batch of the engine


def rows(names: tuple[str, ...]) -> tuple[str, ...]:
    """The named rows in the order of the table; all rows without names."""
    return chosen_rows(names, ROWS, SPARK)


def measure(setting: BenchSetting) -> Iterator[Figure | str]:
    """Each row of the table, in one session."""
    from tamis.spark.runtime import sessions

    chosen = rows(setting.rows)
    with TemporaryDirectory(prefix="tamis-bench-") as made:
        folder = Path(made)
        if {"matching", "reading", "sql", "answers"}.intersection(chosen):
            yield "starting Spark"
            before = sessions.active()
            spark = sessions.session()
            for name in chosen:
                if name != "memory":
                    yield from _ROWS[name](setting, spark, folder)
            if before is None:
                spark.stop()
        if "memory" in chosen:
            yield from memory.figures(setting, folder)


def steps(setting: BenchSetting) -> int:
    """The number of figures and steps."""
    size = {
        "matching": 2 + setting.spark_rounds + 5,
        "reading": 2 + setting.spark_rounds + 5,
        "sql": 1 + 2,
        "memory": memory.STEPS,
        "answers": answers.STEPS,
    }
    chosen = rows(setting.rows)
    return sum(size[name] for name in chosen) + (chosen != ("memory",))


def _matching(setting: BenchSetting, spark: SparkSession, folder: Path) -> Iterator[Figure | str]:
    """Many subscriptions: the engine alone counts; the job counts, and writes the pairs."""
    from tamis.spark.jobs.match_files import match_files

    yield "many subscriptions: data"
    there = folder / "matching"
    made = write_workload(there, setting.spark_subscriptions, setting.spark_events, setting.seed)
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

    yield "many subscriptions: workers start"
    match_files(spark, there / "some", there / "engine", there / "warm")
    _count(engine, there / "some")
    taken = yield from _turns(setting, "many subscriptions", (alone, counted, written))
    if len(set(pairs)) != 1:
        raise TamisError(f"the engine and the job disagree on the number of pairs: {set(pairs)}")
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


def _reading(setting: BenchSetting, spark: SparkSession, folder: Path) -> Iterator[Figure | str]:
    """Few subscriptions: the job, and the same job without matching.

    The reading speed is that of new workers that only read. Workers that have matched read faster:
    they collect garbage less often.
    """
    from tamis.spark.jobs.match_files import match_files, read_files

    yield "few subscriptions: data"
    there = folder / "reading"
    made = write_workload(there, setting.spark_few, setting.spark_events, setting.seed)
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
    yield "few subscriptions: workers start"
    for job in jobs:
        job()
    taken = yield from _turns(setting, "few subscriptions", jobs)
    facts = {**made.parameters, "events": setting.spark_events}
    few = f"{setting.spark_few:,} DEXIN subscriptions, events"
    full = setting.spark_events >= 2_000_000
    yield _rate(f"{few}: read, and not matched", taken, 0, facts)
    yield _rate("  the same by workers that have matched", taken, 3, facts)
    yield _rate("  tamis spark match --count-only", taken, 1, facts)
    yield _rate("  tamis spark match --out", taken, 2, facts)
    yield _ratio("  writing, of what can be read", taken, 2, _SHARE if full else None, facts)
    shutil.rmtree(there)


def _sql(setting: BenchSetting, spark: SparkSession, folder: Path) -> Iterator[Figure | str]:
    """The same subscriptions in SQL, at sizes that finish."""
    yield "in SQL: data"
    made = workload.make("dexin", setting.sql_subscriptions, seed=setting.seed)
    engine = planned_engine(made, made.events(SEEN))
    for method in methods(made.subscriptions, folder / "sql"):
        events = made.events(getattr(setting, f"sql_{method.name}_events"))
        wanted = engine.match_batch(events).total
        found: list[int] = []
        seconds = timed(lambda: found.append(method.pairs(spark, events)))  # noqa: B023
        if found != [wanted]:
            raise TamisError(f"{method.title}: found {found} pairs instead of {wanted}")
        facts = {**made.parameters, "events": events.num_rows, "pairs": wanted}
        what = f"{setting.sql_subscriptions:,} DEXIN subscriptions in SQL, {method.title}: events"
        sample = TimingSample.of([seconds])
        yield Figure.rate(SPARK, what, sample, events.num_rows, None, **facts)


_ROWS: dict[str, Callable[[BenchSetting, SparkSession, Path], Iterator[Figure | str]]] = {
    "matching": _matching,
    "reading": _reading,
    "sql": _sql,
    "answers": answers.figures,
}


@contextmanager
def _other_workers(spark: SparkSession) -> Iterator[None]:
    """Jobs in this block run in Python workers of their own, which stay for the next time."""
    environment: Any = spark.sparkContext.environment
    environment["TAMIS_BENCH"] = "reading"  # Spark has separate workers for each environment
    try:
        yield
    finally:
        del environment["TAMIS_BENCH"]


def _turns(
    setting: BenchSetting, what: str, jobs: Sequence[Callable[[], object]]
) -> Generator[str, None, list[list[float]]]:
    """The seconds of each job in each round, in which they take turns."""
    taken = []
    for turn in range(setting.spark_rounds):
        yield f"{what}: round {turn + 1} of {setting.spark_rounds}"
        taken.append([timed(job) for job in jobs])
    return taken


def _count(engine: Engine, folder: Path) -> int:
    """The pairs of the engine on the same files, in this process."""
    pairs = 0
    for file in sorted(folder.iterdir()):
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(_AT_ONCE):
                pairs += engine.match_batch(batch).total
    return pairs


def _rate(what: str, taken: list[list[float]], at: int, facts: dict[str, Any]) -> Figure:
    seconds = [turn[at] for turn in taken]
    sample = TimingSample.of(seconds)
    return Figure.rate(SPARK, what, sample, facts["events"], None, **facts)


def _ratio(
    what: str, taken: list[list[float]], at: int, goal: Goal | None, facts: dict[str, Any]
) -> Figure:
    """The speed of one as a share of the first one's, turn by turn."""
    shares = [turn[0] / turn[at] for turn in taken]
    low, high = min(shares), max(shares)
    return Figure(SPARK, what, median(shares), "×", low, high, len(shares), goal, facts)
