"""Back-tests: counts, buckets and samples are what the engine and the definition of truth say."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Engine, Schema, operator
from tamis.errors import SparkError
from tamis.language import parse, to_text
from tamis.replay import parquet_events
from tamis.spark.backtest.backtest_job import backtest
from tamis.spark.jobs.compile_index import compile_conditions
from tamis.spark.stats.event_stats import gather_stats
from tamis.store import Log
from tamis.store.versions import Versions
from tamis.workload import auctions, dexin, lesubscribe
from tamis.workload.tables import conditions
from tests.connect import Client
from tests.integration.spark.backtest_offers import (
    SCHEMA,
    START,
    YAML,
    Past,
    Truth,
    engine_of,
    offers,
    sampled,
    written,
)
from tests.integration.spark.own_source import PastLines
from tests.loaded import loaded

pytestmark = pytest.mark.usefixtures("small_shares")


@pytest.mark.parametrize("time", [None, "at"])
def test_files_against_the_definition_of_truth(
    time: str | None, spark: SparkSession, tmp_path: Path
) -> None:
    events = offers(700)
    folder = written(tmp_path / "events", events)
    with engine_of() as engine:
        found = backtest(spark, folder, engine, time=time, buckets=20)
        assert found.tasks > 3
        assert found.axis.buckets == (12 if time else 14)
        truth = Truth(dict(enumerate(events)), found, time is not None)
        assert len(truth.dead) > 10
        truth.check(found)
        assert sampled(found) == truth.samples(5)
        assert found.samples.column_names == ["subscription", "sequence", "price", "tags", "seller",
                                              "at", "lot"]  # fmt: skip
        for row in found.samples.to_pylist():
            given = events[row["sequence"]]
            assert row["lot"] == f"lot {row['sequence']}"
            assert (row["price"], row["tags"]) == (given["price"], given.get("tags"))
        # The same events give the same, whoever reads which.
        folder.rename(tmp_path / "moved")
        again = backtest(
            spark, tmp_path / "moved" / "*.parquet", engine, time=time, samples=2, columns=["lot"]
        )
        Truth(dict(enumerate(events)), again, time is not None).check(again)
        assert sampled(again) == truth.samples(2)
        assert again.samples.column_names == ["subscription", "sequence", "lot"]


def test_nobody_has_to_say_how_the_work_is_dealt_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "events", offers(500))
    with engine_of() as engine:
        several = backtest(spark, folder, engine, time="at")
        monkeypatch.setattr(parquet_events, "_LEAST", 1 << 14)
        one = backtest(spark, folder, engine, time="at")
    assert (several.tasks > 1, one.tasks) == (True, 1)
    for name in ("counts", "over_time", "totals", "samples", "reasons"):
        assert getattr(several, name).equals(getattr(one, name)), name


@pytest.mark.parametrize("name", ["LS", "DX", "auctions"])
def test_counts_are_those_of_the_engine(name: str, spark: SparkSession, tmp_path: Path) -> None:
    made = {"LS": lesubscribe, "DX": dexin, "auctions": auctions}[name].make(1_500)
    engine = loaded(made)
    tables = [made.events(1_000, seed=file) for file in range(2)]
    (tmp_path / "events").mkdir()
    wanted: Counter[tuple[int, int]] = Counter()
    for file, table in enumerate(tables):
        parquet.write_table(table, tmp_path / "events" / f"{file}.parquet", row_group_size=400)
        pairs = engine.match_batch(table).to_arrow()
        buckets = (np.asarray(pairs["event"]) + 1_000 * file) // 100
        wanted.update(zip(pairs["subscription"].to_pylist(), buckets.tolist(), strict=True))
    assert wanted
    engine.save(tmp_path / "engine")
    found = backtest(spark, tmp_path / "events", tmp_path / "engine", buckets=20, samples=1)
    assert found.axis.step == "100"
    assert found.pairs == sum(wanted.values())
    assert {
        (row["subscription"], row["begin"] // 100): row["matched"]
        for row in found.over_time.to_pylist()
    } == wanted
    assert found.counts["subscription"].to_pylist() == engine.ids()
    for id, text in zip(engine.ids(), found.counts["condition"].to_pylist(), strict=True):
        assert to_text(parse(text)) == engine.condition(id)
    for row in found.samples.slice(0, 50).to_pylist():
        table = tables[row["sequence"] // 1_000].slice(row["sequence"] % 1_000, 1)
        assert row["subscription"] in engine.match_batch(table)[0]


def test_shards_of_a_version(spark: SparkSession, tmp_path: Path) -> None:
    made = dexin.make(1_000)
    (tmp_path / "events").mkdir()
    table = made.events(600)
    parquet.write_table(table, tmp_path / "events" / "0.parquet", row_group_size=200)
    texts = pa.table({"id": made.subscriptions["id"], "condition": conditions(made.subscriptions)})
    schema = Schema.from_dict(made.schema)
    compile_conditions(spark.createDataFrame(texts), Versions(tmp_path / "index"), schema, shards=3)
    with Engine(schema) as engine:
        engine.subscribe_table(texts)
        whole = backtest(spark, tmp_path / "events", engine)
    parts = backtest(spark, tmp_path / "events", tmp_path / "index")
    assert parts[:4] == whole[:4]
    for name in ("counts", "over_time", "samples"):
        one, two = (getattr(each, name) for each in (parts, whole))
        order = [(each, "ascending") for each in one.column_names[:2]]
        assert one.sort_by(order).equals(two.sort_by(order)), name
    assert parts.totals.equals(whole.totals)


def moments(kind: pa.TimestampType) -> list[Any]:
    return [START.replace(tzinfo=UTC if kind.tz else None) + timedelta(hours=at) for at in range(9)]


COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "seconds": (pa.array(moments(pa.timestamp("s")), pa.timestamp("s")), "hour"),
    "milliseconds": (pa.array(moments(pa.timestamp("ms")), pa.timestamp("ms")), "hour"),
    "zoned": (
        pa.array(moments(pa.timestamp("us", "UTC")), pa.timestamp("us", "America/New_York")),
        "hour",
    ),
    "nanoseconds": (pa.array(moments(pa.timestamp("ns")), pa.timestamp("ns")), "hour"),
    "dates": (pa.array([date(2024, 3, 1 + at) for at in range(9)]), "day"),
    "whole": (pa.array(range(-3, 6), pa.int32()), "1"),
    "unsigned": (pa.array(range(9), pa.uint64()), "1"),
    "doubles": (pa.array([at / 2 for at in range(9)]), "0.5"),
    "decimals": (pa.array([Decimal(at) / 2 for at in range(9)]), "0.5"),
}


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_time(name: str, statistics: bool, spark: SparkSession, tmp_path: Path) -> None:
    """With what files say of it, and by a look at all of them."""
    column, step = COLUMNS[name]
    rows = np.repeat(np.arange(9), [1, 2, 3, 4, 5, 4, 3, 2, 1])
    np.random.default_rng(5).shuffle(rows)
    table = pa.table({"price": (rows % 2).astype(float), "when": column.take(pa.array(rows))})
    parquet.write_table(
        table, tmp_path / "0.parquet", row_group_size=7, write_statistics=statistics
    )
    looked: list[tuple[int, int]] = []
    with engine_of({"odd": "price = 1"}) as engine:
        found = backtest(
            spark, tmp_path, engine, time="when", buckets=9, looking=lambda *at: looked.append(at)
        )
    assert bool(looked) != statistics
    assert found.axis.step == step
    assert found.totals["events"].to_pylist() == [1, 2, 3, 4, 5, 4, 3, 2, 1]
    assert found.totals["matched"].to_pylist() == [0, 2, 0, 4, 0, 4, 0, 2, 0]
    assert found.time == "when"
    kind = column.type
    if isinstance(kind, pa.TimestampType):
        begins = found.totals["begin"].to_pylist()
        assert begins == moments(pa.timestamp("us", kind.tz and "UTC"))
    assert found.counts["last"][0] == found.totals["begin"][7]


def test_times_in_a_struct_in_text_and_in_files_that_differ(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = [f"2024-03-0{day}T12:00:00+02:00" for day in (1, 2, 9)]
    for at, more in enumerate(({}, {"colour": ["red"] * 3})):
        folder = tmp_path / str(at)
        folder.mkdir()
        inner = pa.StructArray.from_arrays([pa.array([5, 6, 7 + at])], names=["day"])
        table = pa.table({"price": [1.0, 2.0, 3.0], "at": texts, "x": inner, **more})
        parquet.write_table(table, folder / "a.parquet")
    with engine_of({"cheap": "price < 3"}) as engine:
        read = backtest(spark, tmp_path, engine, time="at")
        assert (read.axis.step, read.dead) == ("6 hours", 0)
        assert read.counts["last"][0].as_py() == datetime(2024, 3, 2, 10, tzinfo=UTC)
        nested = backtest(spark, tmp_path, engine, time="x.day")
        assert nested.totals["events"].to_pylist() == [2, 2, 1, 1]
        assert nested.samples["colour"].to_pylist() == [None, None, "red", "red"]


def test_a_source_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    """A job takes what implements `PastEvents` as it takes files and logs."""
    events = offers(300)
    lines = tmp_path / "events.txt"
    lines.write_text("\n".join(json.dumps(each) for each in events))
    with engine_of() as engine:
        found = backtest(spark, PastLines(lines, SCHEMA), engine, buckets=20)
        truth = Truth(dict(enumerate(events)), found, False)
        truth.check(found)
        assert (found.tasks, found.files) == (2, 1)
        assert sampled(found) == truth.samples(5)
    stats = gather_stats(spark, PastLines(lines, SCHEMA))
    assert (stats.events, stats.dead) == (300 - len(truth.dead), len(truth.dead))


@pytest.mark.parametrize("time", [None, "at"])
def test_a_log_against_the_definition_of_truth(
    time: str | None,
    log: Past,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tamis.replay.log_events._FEW", 50)
    with engine_of() as engine:
        found = backtest(spark, log.log, engine, time=time)
        assert found.tasks > 3
        truth = Truth(log.events, found, time is not None, log.texts)
        assert len(truth.dead) > 5
        truth.check(found)
        assert sampled(found) == truth.samples(5)
        some = backtest(spark, log.log, engine, columns=["price", "seller.rating"], samples=2)
    assert sampled(some) == truth.samples(2)
    assert some.samples.column_names == ["subscription", "sequence", "price", "seller.rating"]
    for row in some.samples.to_pylist():
        event = log.events[row["sequence"]]
        rating = event.get("seller", {}).get("rating")
        assert (row["price"], row["seller.rating"]) == (event["price"], rating)


def test_rubbish_in_a_log(spark: SparkSession, tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    log.publish({"json": ['{"price": 1}', "no JSON", None, '{"price": "much"}']})
    log.publish({"price": ["2", "3"]})  # of a type that prices are not
    log.publish({"price": [4.0]})
    with engine_of({"cheap": "price < 5"}) as engine:
        found = backtest(spark, log, engine, time="price")
    assert found[:4] == (7, 2, 2, 5)
    assert found.totals["events"].to_pylist()[-1] == 5  # they have no time
    assert sum(row["events"] for row in found.reasons.to_pylist()) == 5
    assert sampled(found) == {"cheap": [0, 6]}


def test_thousands_of_conditions(spark: SparkSession, tmp_path: Path) -> None:
    prices = np.random.default_rng(1).random(4_000).round(4)
    parquet.write_table(pa.table({"price": prices}), tmp_path / "0.parquet", row_group_size=900)
    limits = np.arange(1, 5_001) / 5_000
    engine = Engine(SCHEMA)
    texts = [f"price < {limit}" for limit in limits]
    engine.subscribe_table(pa.table({"id": np.arange(5_000), "condition": texts}))
    with engine:
        # Too many counts to keep one beside the other, and few enough.
        for buckets in (1_000, 80):
            found = backtest(spark, tmp_path, engine, buckets=buckets, samples=3)
            assert found.axis.buckets == {1_000: 800, 80: 80}[buckets]
            step = 4_000 // found.axis.buckets
            wanted = [
                np.add.reduceat(prices < limit, np.arange(0, 4_000, step)).tolist()
                for limit in limits[::500]
            ]
            assert found.grid[::500, :-1].tolist() == wanted
            assert found.pairs == sum(np.count_nonzero(prices < limit) for limit in limits)
            assert not found.grid[:, -1].any()
    counts = Counter(found.samples["subscription"].to_pylist())
    assert all(counts[at] == min(3, np.count_nonzero(prices < limits[at])) for at in range(5_000))


def test_of_too_many_there_are_fewer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.spark.backtest.backtest_job._COUNTS", 50)
    monkeypatch.setattr("tamis.spark.backtest.backtest_job._SAMPLES", 10)
    folder = written(tmp_path / "events", offers(100))
    with engine_of() as engine:
        found = backtest(spark, folder, engine)
        assert found.axis.buckets == 5  # of 9, those that are easy to read
        assert max(Counter(found.samples["subscription"].to_pylist()).values()) == 2
        with pytest.raises(SparkError, match="5 subscriptions can be counted in 9 buckets at most"):
            backtest(spark, folder, engine, buckets=10)
        with pytest.raises(SparkError, match="can have 2 samples each, not 3"):
            backtest(spark, folder, engine, samples=3)


def test_no_events_and_no_time(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"price": pa.array([], pa.float64()), "n": pa.array([], pa.int64())})
    parquet.write_table(table, tmp_path / "0.parquet")
    with engine_of() as engine:
        found = backtest(spark, tmp_path, engine)
        assert found[:4] == (0, 0, 0, 0)
        assert found.counts["matched"].to_pylist() == [0] * 5
        assert found.samples.num_rows == 0
        nothing = pa.table({"price": [1.0], "n": pa.array([None], pa.int64())})
        parquet.write_table(nothing, tmp_path / "1.parquet")
        with pytest.raises(SparkError, match="no event has a value of 'n'"):
            backtest(spark, tmp_path, engine, time="n")
        empty = Log.create(tmp_path / "log", SCHEMA)
        assert backtest(spark, empty, engine).events == 0


def test_what_could_not_be_tested(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path / "events", offers(20))
    other = Log.create(tmp_path / "log", {"attributes": {"price": "integer"}})
    log = Log.create(tmp_path / "right", SCHEMA)
    wrong: list[tuple[Path | Log, dict[str, Any], str]] = [
        (folder, {"time": "att"}, "there is no column 'att'; did you mean 'at'"),
        (folder, {"time": "seller.ratin"}, "there is no column 'seller.ratin'"),
        (folder, {"time": "tags"}, "which is not a time"),
        (folder, {"time": "lot"}, "the column 'lot' is string, which is not a time"),
        (folder, {"columns": ["lott"]}, "no column 'lott'; did you mean 'lot'"),
        (folder, {"columns": ["lot", "lot"]}, "samples would have two columns 'lot'"),
        (other, {}, "its events are of another schema"),
        (log, {"columns": ["lot"]}, "no attribute 'lot'"),
        (log, {"time": "tags"}, "'tags' is text, which is not a time"),
    ]
    with engine_of() as engine:
        for events, options, why in wrong:
            with pytest.raises(SparkError, match=why):
                backtest(spark, events, engine, **options)
        parquet.write_table(pa.table({"price": [1.0], "sequence": [1]}), folder / "z.parquet")
        with pytest.raises(SparkError, match="samples have a column 'sequence'"):
            backtest(spark, folder, engine)
        assert backtest(spark, folder, engine, samples=0).events == 21


def low(price: float) -> bool:
    return price < 5


def test_operators(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path / "events", offers(300))
    asks = operator(name="low", reads=("price",), run="here")(by_value(low))
    work = tmp_path / "work"
    with Engine(SCHEMA, operators=asks) as engine:
        engine.subscribe("low() and price < 7", id="some")
        found = backtest(spark, folder, engine, work=work)
    assert found.operators["low"].events > 100
    prices = [each.get("price") for each in offers(300)]
    assert found.pairs == sum(each is not None and each < 5 for each in prices)
    assert found.counts["condition"].to_pylist() == ["low() and price < 7"]
    assert not list(work.iterdir())


def by_value(function: Any) -> Any:
    """A function that workers need not import: they cannot import tests."""
    from types import FunctionType

    return FunctionType(function.__code__, {"__builtins__": __builtins__}, function.__name__)


def _far(folder: Path) -> tuple[Any, ...]:
    """What a client of Spark Connect finds."""
    engine = Engine(Schema.load(folder / "schema.yaml"))
    engine.subscribe("price < 5", id="cheap")
    steps: list[tuple[int, int]] = []
    found = backtest(
        tamis.spark.session(),
        folder / "a.parquet",
        engine,
        time="when",
        progress=lambda *each: steps.append(each),
    )
    return *found[:4], int(found.grid.sum()), found.axis.step, bool(steps)


def test_the_same_through_spark_connect(client: Client, tmp_path: Path) -> None:
    table = pa.table({"price": [1.0, 9.0, None, 3.0], "when": ["1", "2", "3", "4"]})
    table = table.set_column(1, "when", table["when"].cast(pa.int32()))
    # Without statistics, so that there are two jobs.
    parquet.write_table(table, tmp_path / "a.parquet", write_statistics=False)
    (tmp_path / "schema.yaml").write_text(YAML, encoding="utf-8")
    assert client.asked(_far, tmp_path) == (4, 2, 2, 1, 2, "1", True)
