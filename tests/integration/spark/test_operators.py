"""Conditions that call operators, on Spark: what works is answered, what does not harms itself.

The operators are in a module of their own, as users have them, which workers import. Answers are
compared with the definition of truth, given what each operator says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

import tamis.spark
from tamis import Engine, Schema
from tamis.cli.reports.stream import StreamFacts, line, rows
from tamis.language import parse
from tamis.model.event import Event
from tamis.model.operator import Fault
from tamis.model.operator_semantics import OperatorTable
from tamis.model.semantics import satisfies
from tamis.operators import Operator, Report
from tamis.replay.manifests import manifests
from tamis.spark.jobs.compile_index import compile_conditions, compile_log
from tamis.spark.jobs.match_files import match_files
from tamis.spark.stream.stream import Stream, StreamJob
from tamis.store import Log, Versions, changes
from tests.integration.spark.streams import run_stream
from tests.schemas import one_type
from tests.unit.cli.calls import Capture, refused, run

Pairs = list[tuple[int, str]]

MODULE = "operators_for_spark"
SOURCE = """
import os, time
from tamis import operator

@operator(reads=("title",), gives={"word": "text", "times": "number"}, run="here")
def sparkWords(title):
    words = title.split()
    return [(each, words.count(each)) for each in sorted(set(words))]

@operator(reads=("title",), arguments={"least": "number"}, batch=True, timeout=60)
def sparkLong(title, least):
    return [len(each) >= least for each in title]

@operator(reads=("price",), gives={"half": "number"}, run="process", timeout=60)
def sparkHalf(price):
    return price / 2

@operator(reads=("price",), run="here")
def sparkShy(price):
    if price == 7:
        raise ValueError("I do not like seven")
    return True

@operator(reads=("price",), run="here")
def sparkBroken(price):
    raise RuntimeError("always")

@operator(reads=("price",), run="process", timeout=0.2)
def sparkHangs(price):
    time.sleep(60)
    return True

@operator(reads=("price",), run="process")
def sparkDies(price):
    os._exit(3)

@operator(reads=("price",), gives={"x": "number"}, run="here")
def sparkNonsense(price):
    return "not a number"
"""

DOCUMENT: dict[str, Any] = one_type("lot", {"price": "integer!", "title": "text"})
SCHEMA = Schema.from_dict(DOCUMENT)
CONDITIONS = {
    "plain": "price < 3",
    "twice": "price >= 2 and sparkWords(?w, ?n) and ?n >= 2",
    "joined": "sparkWords(?w, ?n) and sparkHalf(?h) and ?n > ?h and ?h >= 1",
    "never once": "sparkWords(?w, ?n) and not sparkWords(?w, 1) and ?n * 2 > 5",
    "long": "price > 4 and sparkLong(15)",
    "short": "not sparkLong(15) and price != 3",
    "shy": "price > 5 and sparkShy()",
    "broken": "sparkBroken() or price = 0",
    "contrary": "price > 7 and not sparkBroken()",
    "hangs": "price < 6 and sparkHangs() or price = 3",
    "dies": "price > 4 and sparkDies()",
    "outlives": "price > 4 or sparkDies()",
    "nonsense": "sparkNonsense(?x) and ?x > 1 or price = 5",
}
BROKEN = ("sparkBroken", "sparkHangs", "sparkDies", "sparkNonsense")
WELL = ("sparkWords", "sparkLong", "sparkHalf")
EVENTS = [
    {
        "price": at % 10,
        "title": " ".join(["oak", "chair", "old"][(at * by) % 3] for by in (1, 2, 4)),
    }
    for at in range(60)
]


@pytest.fixture(scope="module")
def operators(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Operator]]:
    """The module is found here and in the workers."""
    folder = tmp_path_factory.mktemp("modules")
    path = folder / f"{MODULE}.py"
    path.write_text(SOURCE, encoding="utf-8")
    spark.sparkContext.addPyFile(str(path))
    sys.path.insert(0, str(folder))
    found = vars(import_module(MODULE)).values()
    yield [each for each in found if isinstance(each, Operator)]
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def wanted(operators: list[Operator]) -> Pairs:
    """What the definition of truth says, given what each operator says."""
    declared = {each.name: each.signature for each in operators}
    fault = Fault("it does not work")

    def words(values: tuple[Any, ...], given: Any) -> Any:
        all_of_it = values[0].split()
        return tuple((each, all_of_it.count(each)) for each in set(all_of_it))

    said: dict[str, Any] = {
        "sparkWords": words,
        "sparkLong": lambda values, given: ((),) if len(values[0]) >= given[0] else (),
        "sparkHalf": lambda values, given: ((values[0] / 2,),),
        "sparkShy": lambda values, given: fault if values[0] == 7 else ((),),
        **dict.fromkeys(BROKEN, lambda values, given: fault),
    }
    table: OperatorTable = {name: (declared[name], said[name]) for name in declared}
    pairs = [
        (at, id)
        for at, event in enumerate(EVENTS)
        for id, condition in CONDITIONS.items()
        if satisfies(parse(condition), Event.of(SCHEMA, event), SCHEMA, table)
    ]
    found = {id for _, id in pairs}
    assert found == CONDITIONS.keys() - {"contrary", "dies"}, "each says something"
    return sorted(pairs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Events in files."""
    (tmp_path / "events").mkdir()
    for part in range(3):
        table = pa.Table.from_pylist(
            [{"lot": at, **event} for at, event in enumerate(EVENTS)][part * 20 : part * 20 + 20]
        )
        parquet.write_table(table, tmp_path / "events" / f"{part}.parquet")
    return tmp_path


def _engine(operators: list[Operator]) -> Engine:
    engine = Engine(SCHEMA, operators=operators)
    for id, condition in CONDITIONS.items():
        engine.subscribe(condition, id=id)
    return engine


def _index(spark: SparkSession, folder: Path) -> Versions:
    rows = list(CONDITIONS.items())
    versions = Versions(folder / "index")
    made = compile_conditions(
        spark.createDataFrame(rows, "id string, condition string"),
        versions,
        SCHEMA,
        shards=2,
        modules=[MODULE],
    )
    assert (made.subscriptions, made.refused) == (len(rows), 0), made.reasons
    return versions


def _pairs(frame: DataFrame) -> Pairs:
    return sorted((row["lot"], row["subscription"]) for row in frame.collect())


def _check(report: Report) -> None:
    """Operators that do not work are reported with a reason, and the others have no faults."""
    for name in BROKEN:
        count = report[name]
        assert count.faults == count.events > 0, count
        assert count.last, count
    for name in WELL:
        count = report[name]
        assert (count.faults, count.events > 0) == (0, True), count
    assert report["sparkBroken"].raised > 0
    assert report["sparkHangs"].timeouts > 0
    assert report["sparkDies"].raised > 0
    assert report["sparkNonsense"].nonsense > 0
    assert "I do not like seven" in str(report["sparkShy"].last)
    assert report["sparkShy"].faults == 6


def test_the_engine_says_what_truth_says(operators: list[Operator], wanted: Pairs) -> None:
    with _engine(operators) as engine:
        found = engine.match_batch(pa.Table.from_pylist(EVENTS)).to_arrow()
        _check(engine.report())
    pairs = zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)
    assert sorted(pairs) == wanted


def test_a_dataframe(
    spark: SparkSession, folder: Path, operators: list[Operator], wanted: Pairs
) -> None:
    events = spark.read.parquet(str(folder / "events"))
    with _engine(operators) as engine:
        matched = tamis.spark.match(engine, id="lot", report=folder / "report")
    assert _pairs(events.transform(matched)) == wanted
    _check(tamis.spark.report(folder / "report"))
    assert len(tamis.spark.report(folder / "elsewhere")) == 0


def test_a_stream_of_a_dataframe(
    spark: SparkSession, folder: Path, operators: list[Operator], wanted: Pairs
) -> None:
    versions = _index(spark, folder)
    schema = spark.read.parquet(str(folder / "events")).schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    matched = tamis.spark.match(
        versions.folder, id="lot", operators=operators, report=folder / "report"
    )
    stream = events.parquet(str(folder / "events")).transform(matched)
    run_stream(stream, folder, sink="tamis_notifications")
    found = spark.read.format("tamis_notifications").load(str(folder / "found"))
    assert _pairs(found) == wanted
    assert len(manifests(folder / "found")) == 3
    _check(tamis.spark.report(folder / "report"))


def test_files(
    spark: SparkSession, folder: Path, operators: list[Operator], wanted: Pairs, capsys: Capture
) -> None:
    _index(spark, folder)
    events, index, out = folder / "events", folder / "index", folder / "out"
    done = match_files(spark, events, index, out, id="lot", operators=operators)
    found = parquet.read_table(out / "notifications").to_pylist()
    assert sorted((row["lot"], row["subscription"]) for row in found) == wanted
    _check(done.operators)
    (manifest,) = manifests(out)
    counted = {each["operator"]: each for each in manifest["operators"]}
    assert counted["sparkBroken"]["raised"] > 0

    where = ("--events", str(events), "--subscriptions", str(index), "--count-only")
    assert run("spark", "match", *where, "--operators", MODULE) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{len(wanted):,} pairs" in said
    assert "Operators: sparkBroken: " in said
    assert "the last fault: timeout: no answer within 0.2 s" in said
    assert "cannot be imported" in refused(capsys, "spark", "match", *where, "--operators", "no.ne")


def test_a_log(
    spark: SparkSession, tmp_path: Path, operators: list[Operator], wanted: Pairs
) -> None:
    """Half of the subscriptions are in the version, and half come after it."""
    log = Log.create(tmp_path / "log", DOCUMENT)
    ids = list(CONDITIONS)
    log.change(changes.subscribe(ids[::2], [CONDITIONS[id] for id in ids[::2]]))
    versions = Versions(tmp_path / "index")
    made = compile_log(spark, log, versions, modules=[MODULE])
    assert (made.subscriptions, made.refused) == (len(ids[::2]), 0)
    log.change(changes.subscribe(ids[1::2], [CONDITIONS[id] for id in ids[1::2]]))
    first = log.publish(pa.Table.from_pylist(EVENTS[:30])).start
    log.publish(pa.Table.from_pylist(EVENTS[30:]))
    job = StreamJob(
        tmp_path / "log",
        tmp_path / "index",
        tmp_path / "out",
        tmp_path / "out" / "checkpoint",
        trigger=None,
        modules=(MODULE,),
    )
    with Stream(job, spark=spark) as stream:
        stream.start()
        assert stream._query is not None
        assert stream._query.awaitTermination(180)
        stream.check()
        progress, asked = stream.look(), stream.operators()
    found = spark.read.format("tamis_notifications").load(str(tmp_path / "out"))
    pairs = [(row["sequence"] - first, row["subscription"]) for row in found.collect()]
    assert sorted(pairs) == wanted
    assert progress.version == made.version.sequence
    _check(asked)

    facts = StreamFacts(None, 0, 0, 1, None, None, asked)
    (shown,) = [each for each in rows(progress, facts) if each[0] == "operator faults"]
    assert shown[1] == f"{asked.faults:,}"
    assert "sparkHangs: " in shown[2]
    assert f"{asked.faults:,} operator faults" in line(1, progress, facts)
    files = list((tmp_path / "out" / "logs" / "operators").glob("*.json"))
    assert json.loads(files[0].read_text())["operators"]
    with Stream(job, spark=spark) as stream:
        stream.start()
        assert len(stream.operators()) == 0, "each run counts for itself"
        assert stream._query is not None
        assert stream._query.awaitTermination(180)


def test_an_operator_that_takes_the_whole_worker_down_fails_the_job(
    spark: SparkSession, folder: Path
) -> None:
    """What runs in place is trusted. Spark tries the task again, and then gives up."""
    from tamis import operator

    @operator(name="sparkTreason", reads=("price",), run="here")
    def treason(price: int) -> bool:
        import os

        os._exit(3)

    engine = Engine(SCHEMA, operators=[treason])
    engine.subscribe("price = 3 and sparkTreason()", id="no")
    events = spark.read.parquet(str(folder / "events"))
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        events.transform(tamis.spark.match(engine, id="lot")).collect()
    assert events.count() == len(EVENTS), "the session is well"
