"""Statistics of past events: exactly those of plain Python, where so few can be counted exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tamis import Engine, Schema
from tamis.errors import SparkError, StoreError
from tamis.model.event import Event
from tamis.replay import parquet_events
from tamis.spark.stats.attribute_values import in_order
from tamis.spark.stats.event_stats import gather_stats
from tamis.spark.stats.subscription_stats import match_sample
from tamis.spark.stats.value_task import ranked
from tamis.store import Log, Stats, changes
from tamis.store.stats import SHARES, AttributeStats
from tests.integration.spark.stats_offers import (
    SCHEMA,
    Row,
    as_table,
    check,
    good_events,
    offers,
    plain,
)
from tests.schemas import one_type

pytestmark = pytest.mark.usefixtures("small_shares")


# -- files -----------------------------------------------------------------------------------------


def test_files_are_counted_as_plain_python_does(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]]
) -> None:
    folder, rows = events
    heard: list[tuple[int, int]] = []
    stats = gather_stats(spark, folder, SCHEMA, progress=lambda done, of: heard.append((done, of)))
    check(stats, rows)
    assert stats.dead > 10
    assert stats.reason is not None
    assert "melted" in stats.reason or "mandatory" in stats.reason
    assert heard[-1][0] == heard[-1][1]
    assert (stats.of, stats.first, stats.subscriptions) == (str(folder), None, None)
    assert Schema.from_dict(stats.schema) == SCHEMA
    assert all(order_is_known(stats, name) for name in stats.attributes)


def order_is_known(stats: Stats, name: str) -> bool:
    """Codecs say which attributes have a least value."""
    from tamis.encode.encoder import Encoder

    encoder = Encoder(SCHEMA)
    return in_order(encoder.codecs[encoder.positions[name]]) == (
        stats.attributes[name].low is not None
    )


def test_whatever_columns_hold_the_values(spark: SparkSession, tmp_path: Path) -> None:
    """Decimals, dictionaries, dates, texts for times, floats for integers, structs for dots."""
    whole = [
        {"event_type": "offer", "price": 2.0, "n": 5, "seen": "2026-02-01T10:00:00+01:00"},
        {"event_type": "offer", "price": 0.1, "n": None, "seen": "2026-01-01T00:00:00Z"},
        {"event_type": "offer", "price": -0.0, "n": -1, "seen": None, "title": "x"},
        {"event_type": "offer", "price": -7.25, "n": 2, "title": "x", "sizes": [2, 2]},
    ]
    struct = pa.struct([("rating", pa.int8()), ("name", pa.string())])
    one = as_table(whole[:2], event_type=pa.string(), n=pa.float64(), seen=pa.string())
    price = pa.array([Decimal("2.0"), Decimal("0.1")], pa.decimal128(10, 4))
    one = one.set_column(1, "price", price).drop_columns(["seller.rating"])
    sellers = pa.array([{"rating": 3, "name": "a"}, None], struct)
    parquet.write_table(one.append_column("seller", sellers), tmp_path / "1.parquet")
    other = as_table(whole[2:], event_type=pa.string(), n=pa.int32(), seen=pa.date32())
    other = other.set_column(3, "title", other["title"].dictionary_encode())
    parquet.write_table(other, tmp_path / "2.parquet")
    stats = gather_stats(spark, str(tmp_path / "*.parquet"), SCHEMA)
    check(stats, [{**whole[0], "seller.rating": 3}, *whole[1:]])
    assert stats.attributes["price"].low == -7.25
    assert stats.sample.schema.field("n").type == pa.int64()
    assert stats.sample.schema.field("seen").type == pa.timestamp("us", "UTC")
    assert stats.sample.schema.field("sizes").type == pa.list_(pa.int64())


def test_large_numbers_and_long_texts(spark: SparkSession, tmp_path: Path) -> None:
    numbers = [2**63 - 1, -(2**63), 2**53 + 1, 2**53 + 1, 0]
    titles = ["ö" * 300, "ö" * 250, "a", "a", ""]
    parquet.write_table(pa.table({"n": numbers, "title": titles}), tmp_path / "0.parquet")
    schema = one_type("e", {"n": "integer", "title": "text"})
    stats = gather_stats(spark, tmp_path, Schema.from_dict(schema))
    found = stats.attributes["n"]
    assert (found.low, found.high, found.frequent[0]) == (-(2**63), 2**63 - 1, (2**53 + 1, 0.4))
    # Of a long text no more than the beginning is looked at; the sample has all of it.
    found = stats.attributes["title"]
    assert (found.low, found.high, found.distinct) == ("", "ö" * 200, 3)
    assert sorted(stats.sample["title"].to_pylist()) == sorted(titles)


def test_no_events_at_all(spark: SparkSession, tmp_path: Path) -> None:
    parquet.write_table(as_table([]), tmp_path / "0.parquet")
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    for stats in (gather_stats(spark, tmp_path / "0.parquet", SCHEMA), gather_stats(spark, log)):
        check(stats, [])
        assert stats.sample.num_rows == 0
        stats.save(tmp_path / "stats", replace=True)
        assert Stats.open(tmp_path / "stats") == stats
        engine = Engine(SCHEMA)
        engine.subscribe("price < 5", id="ann")
        engine.expect(stats)
        engine.save(tmp_path / "engine", replace=True)
        known = match_sample(spark, stats, tmp_path / "engine").subscriptions
        assert known is not None
        assert (known.subscriptions, known.events, known.pairs, known.most) == (1, 0, 0, ())


def test_nothing_but_the_dead(spark: SparkSession, tmp_path: Path) -> None:
    parquet.write_table(as_table([{"event_type": "offer"}] * 200, event_type=pa.string()),
                        tmp_path / "0.parquet")  # fmt: skip
    stats = gather_stats(spark, tmp_path, SCHEMA)
    assert (stats.events, stats.dead, stats.sample.num_rows) == (0, 200, 0)
    assert "'price' is mandatory" in str(stats.reason)
    assert stats.attributes["price"] == AttributeStats("decimal", 0, 0, 0)


def test_many_attributes(spark: SparkSession, tmp_path: Path) -> None:
    """More than Spark aggregates in memory at a time; events bind a few of them."""
    names = [f"a{at}" for at in range(300)]
    uses = dict.fromkeys(names, "optional")
    schema = Schema.from_dict({"attributes": dict.fromkeys(names, "integer"),
                               "event_types": {"e": uses}})  # fmt: skip
    rows = [{names[(7 * at + k) % 300]: k for k in range(5)} for at in range(200)]
    table = {name: pa.array([row.get(name) for row in rows], pa.int64()) for name in names}
    parquet.write_table(pa.table(table), tmp_path / "0.parquet")
    check(gather_stats(spark, tmp_path, schema), rows, schema)


def test_more_values_than_can_be_counted_exactly(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.from_dict(one_type("e", {"n": "integer!"}))
    rng = np.random.default_rng(3)
    numbers = np.where(rng.random(200_000) < 0.3, 7, rng.integers(0, 1_000_000, 200_000))
    parquet.write_table(pa.table({"n": numbers}), tmp_path / "0.parquet", row_group_size=50_000)
    known = gather_stats(spark, tmp_path, schema).attributes["n"]
    assert known.distinct == pytest.approx(len(np.unique(numbers)), rel=0.05)
    assert (known.low, known.high) == (numbers.min(), numbers.max())
    ranks = [float((numbers <= each).mean()) for each in known.quantiles]
    below = [float((numbers < each).mean()) for each in known.quantiles]
    for share, least, most in zip(SHARES, below, ranks, strict=True):
        assert least - 0.02 < share < most + 0.02
    value, share = known.frequent[0]
    assert value == 7
    assert share == pytest.approx(float((numbers == 7).mean()), rel=0.02)


# -- samples ---------------------------------------------------------------------------------------


def _sets(events: Iterable[Event]) -> list[dict[str, frozenset[Any]]]:
    return [{name: frozenset(each) for name, each in event.values.items()} for event in events]


def _sampled(stats: Stats) -> list[dict[str, frozenset[Any]]]:
    return _sets(Event.of(SCHEMA, row) for row in stats.sample.to_pylist())


def test_a_sample_is_the_same_however_events_are_dealt_out(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder, rows = events
    stats = gather_stats(spark, folder, SCHEMA, sample=60, seed=5)
    good = [at for at, row in enumerate(rows) if good_events([row])]
    rank = ranked(np.array(good), 5)
    lowest = [rows[good[at]] for at in np.argsort(rank)[:60]]
    assert _sampled(stats) == _sets(good_events(lowest)), (
        "of all good events, those of the lowest rank"
    )
    monkeypatch.setattr(parquet_events, "_LEAST", 1 << 14)
    (tmp_path / "one").mkdir()
    parquet.write_table(as_table(rows), tmp_path / "one" / "0.parquet")
    again = gather_stats(spark, tmp_path / "one", SCHEMA, sample=60, seed=5)
    assert again.sample == stats.sample
    other = gather_stats(spark, folder, SCHEMA, sample=60, seed=6)
    assert other.sample.num_rows == 60
    assert other.sample != stats.sample
    assert gather_stats(spark, folder, SCHEMA).sample.num_rows == len(good)


def test_a_task_keeps_no_more_than_may_be_wanted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many events few have ranks under the limit, and of these each task keeps its lowest."""
    monkeypatch.setattr(parquet_events, "_LEAST", 2_000)
    schema = Schema.from_dict(one_type("e", {"n": "integer!"}))
    numbers = np.arange(20_000)
    parquet.write_table(pa.table({"n": numbers}), tmp_path / "0.parquet", row_group_size=3_000)
    stats = gather_stats(spark, tmp_path, schema, sample=500, work=tmp_path / "work")
    lowest = np.argsort(ranked(numbers, 0))[:500]
    assert stats.sample["n"].to_pylist() == lowest.tolist()
    # Any beginning of it is spread over all events.
    assert np.histogram(lowest[:200], 4, (0, 20_000))[0].min() > 25
    assert list((tmp_path / "work").iterdir()) == [], "nothing is left behind"


# -- logs ------------------------------------------------------------------------------------------


def _json(row: Row) -> str:
    return json.dumps({name: plain(value) for name, value in row.items() if name != "picture"})


def test_a_log_of_columns_and_of_texts(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "picture"} for row in offers(300, seed=2)]
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    log.publish(as_table(rows[:100]))
    log.publish({"json": [_json(row) for row in rows[100:]]})
    log.change(changes.cancel(["ann"]))
    log.publish({"json": ["no JSON", '{"colour": "red"}']})
    numbers = range(1, 301)  # those of the sequence
    stats = gather_stats(spark, log)
    check(stats, [*rows, {"event_type": "none"}, {"colour": "red"}])
    assert stats.first is not None
    assert stats.last is not None
    assert (stats.first.sequence, stats.last.sequence) == (1, log.end - 1)
    assert datetime.fromisoformat(stats.first.appended) <= datetime.fromisoformat(
        stats.last.appended
    )
    order = np.argsort(ranked(np.array(numbers), 0))
    assert _sampled(stats) == _sets(good_events([rows[at] for at in order]))


# -- what is refused -------------------------------------------------------------------------------


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    table = as_table(offers(3))
    renamed = table.drop_columns(["price"]).append_column("prise", table["price"])
    texts = table.set_column(1, "price", pa.array(["a", "b", "c"]))
    tables = {"table": table, "renamed": renamed, "texts": texts}
    for name, each in tables.items():
        parquet.write_table(each, tmp_path / f"{name}.parquet")
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ("nowhere", {"schema": SCHEMA}, StoreError, "no such file or folder"),
        ("table.parquet", {}, SparkError, "events in files need their schema"),
        ("table.parquet", {"schema": SCHEMA, "sample": 0}, SparkError, "one event or more, got 0"),
        ("renamed.parquet", {"schema": SCHEMA}, SparkError, "did you mean 'price'"),
        ("texts.parquet", {"schema": SCHEMA}, SparkError, "'price' is string, but the attribute"),
    ]
    for name, options, error, message in wrong:
        with pytest.raises(error, match=message):
            gather_stats(spark, tmp_path / name, **options)
    log = Log.create(tmp_path / "log", SCHEMA)
    with pytest.raises(SparkError, match="a log has its own"):
        gather_stats(spark, log, SCHEMA)


def test_an_opaque_attribute_in_two_forms_makes_no_sample(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = {"event_type": "offer", "price": 1.0, "picture": b"x"}
    parquet.write_table(as_table([row], event_type=pa.string()), tmp_path / "0.parquet")
    other = as_table([{**row, "picture": None}], event_type=pa.string()).drop_columns(["picture"])
    pictures = pa.array([{"url": "a"}])
    parquet.write_table(other.append_column("picture", pictures), tmp_path / "1.parquet")
    with pytest.raises(SparkError, match="an opaque attribute has several types"):
        gather_stats(spark, tmp_path, SCHEMA)
