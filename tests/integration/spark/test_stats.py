"""Statistics of past events: exactly those of plain Python, where so few can be counted exactly."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import Engine, Operator, Schema, operator
from tamis.errors import EventError, OperatorError, SparkError, StoreError
from tamis.model.event import Event
from tamis.operators import registry
from tamis.schedule.statistics import Known
from tamis.spark import gathering, row_groups, source
from tamis.spark.asking import ask
from tamis.spark.compiling import compile_conditions, compile_log
from tamis.spark.gathering import gather
from tamis.spark.gathering_tasks import ranked
from tamis.spark.values import in_order
from tamis.store import Log, Stats, Versions, changes
from tamis.store.stats import SHARES, AttributeStats, PredicateStats
from tests.connect import Server
from tests.unit.cli.calls import Capture, refused, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]

DOCUMENT: dict[str, Any] = {
    "domains": {
        "state": {"kind": "enumerated", "values": ["new", "used", "broken"]},
        "thing": {"kind": "hierarchy", "tree": {"furniture": {"chair": {}, "table": {}}}},
    },
    "attributes": {
        "price": "decimal",
        "n": "integer",
        "title": "text",
        "tags": "text",
        "sizes": "integer",
        "sold": "boolean",
        "seen": "timestamp",
        "state": "state",
        "thing": "thing",
        "seller.rating": "integer",
        "picture": "opaque",
    },
    "event_types": {
        "offer": {
            "price": "mandatory",
            "n": "optional",
            "title": "optional",
            "tags": "optional multiple",
            "sizes": "optional multiple",
            "sold": "optional",
            "seen": "optional",
            "state": "optional",
            "thing": "optional",
            "seller.rating": "optional",
            "picture": "optional",
        },
        "wish": {"title": "mandatory", "tags": "optional multiple", "thing": "mandatory"},
    },
}
SCHEMA = Schema.from_dict(DOCUMENT)
DAY = datetime(2026, 1, 31, tzinfo=UTC)


def _rows(number: int, seed: int = 1) -> list[dict[str, Any]]:
    """Offers and wishes, or both in one; about one in eight breaks a rule."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for at in range(number):
        row: dict[str, Any] = {
            "event_type": [["offer"], ["wish"], ["wish", "offer"]][
                rng.choice(3, p=[0.8, 0.1, 0.1])
            ],
            "price": [round(float(rng.normal(3, 5)), 1), None][rng.choice(2, p=[0.97, 0.03])],
            "n": [int(rng.integers(-3, 4)), None][rng.integers(2)],
            "title": f"title {rng.integers(5)}",
            "tags": [None, [], ["oak"], ["oak", "öl", "oak", None]][rng.integers(4)],
            "sizes": [int(each) for each in rng.integers(0, 3, rng.integers(0, 4))],
            "sold": [True, False, None][rng.choice(3, p=[0.2, 0.5, 0.3])],
            "seen": DAY + timedelta(microseconds=int(rng.integers(0, 10**12))),
            "state": [None, "new", "used"][rng.integers(3)],
            "thing": [None, "chair", "table", "furniture"][rng.choice(4, p=[0.1, 0.3, 0.3, 0.3])],
            "seller.rating": [4, 5, None][rng.integers(3)],
            "picture": [b"\x00", None][rng.integers(2)],
        }
        if row["event_type"] == ["wish"]:
            row = {name: row[name] for name in ("event_type", "title", "tags", "thing")}
        if at % 31 == 7:
            row["state"] = "melted"
        rows.append(row)
    return rows


def _table(rows: Sequence[Row], **types: pa.DataType) -> pa.Table:
    kinds = {
        "event_type": pa.list_(pa.string()),
        "price": pa.float64(),
        "n": pa.int64(),
        "title": pa.string(),
        "tags": pa.list_(pa.string()),
        "sizes": pa.list_(pa.int64()),
        "sold": pa.bool_(),
        "seen": pa.timestamp("us", "UTC"),
        "state": pa.string(),
        "thing": pa.string(),
        "seller.rating": pa.int64(),
        "picture": pa.binary(),
        **types,
    }
    return pa.table({name: pa.array([r.get(name) for r in rows], t) for name, t in kinds.items()})


# -- what should come out --------------------------------------------------------------------------


def _good(rows: Iterable[Row], schema: Schema = SCHEMA) -> list[Event]:
    found = []
    for row in rows:
        try:
            found.append(Event.of(schema, row))
        except EventError:
            continue
    return found


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _expected(schema: Schema, events: Sequence[Event]) -> dict[str, AttributeStats]:
    names = [each for each in schema.attributes if each != "event_type"]
    if len(schema.event_types) > 1:
        names = ["event_type", *names]
    return {name: _attribute(schema, name, events) for name in names}


def _attribute(schema: Schema, name: str, events: Sequence[Event]) -> AttributeStats:
    kind = schema.attributes[name].kind
    bound = [event.values[name] for event in events if name in event.values]
    values = [value for each in bound for value in each]
    if kind == "opaque":
        return AttributeStats(kind, len(bound), len(values))
    counted = Counter(values)
    frequent = sorted(((_plain(v), c / len(events)) for v, c in counted.items()),
                      key=lambda each: (-each[1], each[0]))  # fmt: skip
    low = high = None
    quantiles: tuple[Any, ...] = ()
    if values and kind not in ("enumerated", "hierarchy", "boolean"):
        ordered = sorted(values)
        low, high = ordered[0], ordered[-1]
        if kind != "text":
            places = [max(0, math.ceil(share * len(ordered)) - 1) for share in SHARES]
            quantiles = tuple(_plain(ordered[at]) for at in places)
    return AttributeStats(
        kind, len(bound), len(values), len(counted), _plain(low), _plain(high), quantiles,
        tuple(frequent),
    )  # fmt: skip


def _check(stats: Stats, rows: Sequence[Row], schema: Schema = SCHEMA) -> None:
    events = _good(rows, schema)
    assert (stats.events, stats.dead) == (len(events), len(rows) - len(events))
    wanted = _expected(schema, events)
    assert list(stats.attributes) == list(wanted)
    for name, told in stats.attributes.items():
        right = wanted[name]
        if len(right.frequent) > gathering.FREQUENT:
            # Which of those that are as frequent are told is not said.
            counts = [share for _, share in right.frequent][: gathering.FREQUENT]
            assert [share for _, share in told.frequent] in (counts, [])
            assert set(told.frequent) <= set(right.frequent)
            told, right = (_but_frequent(each) for each in (told, right))  # noqa: PLW2901
        assert told == right, name


def _but_frequent(stats: AttributeStats) -> AttributeStats:
    return replace(stats, frequent=())


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few events are several tasks."""
    monkeypatch.setattr(row_groups, "_LEAST", 64)
    monkeypatch.setattr(source, "_FEW", 64)


@pytest.fixture
def events(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Files with row groups of several sizes, and their rows."""
    rows = _rows(500)
    (tmp_path / "events").mkdir()
    for at, (start, stop) in enumerate(((0, 200), (200, 230), (230, 500))):
        path = tmp_path / "events" / f"{at}.parquet"
        parquet.write_table(_table(rows[start:stop]), path, row_group_size=100)
    return tmp_path / "events", rows


# -- files -----------------------------------------------------------------------------------------


def test_files_are_counted_as_plain_python_does(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]]
) -> None:
    folder, rows = events
    heard: list[tuple[int, int]] = []
    stats = gather(spark, folder, SCHEMA, progress=lambda done, of: heard.append((done, of)))
    _check(stats, rows)
    assert stats.dead > 10
    assert stats.reason is not None
    assert "melted" in stats.reason or "mandatory" in stats.reason
    assert heard[-1][0] == heard[-1][1]
    assert (stats.of, stats.first, stats.subscriptions) == (str(folder), None, None)
    assert Schema.from_dict(stats.schema) == SCHEMA
    assert all(in_order_is_told(stats, name) for name in stats.attributes)


def in_order_is_told(stats: Stats, name: str) -> bool:
    """Which attributes have a least value is for their codecs to say."""
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
    one = _table(whole[:2], event_type=pa.string(), n=pa.float64(), seen=pa.string())
    price = pa.array([Decimal("2.0"), Decimal("0.1")], pa.decimal128(10, 4))
    one = one.set_column(1, "price", price).drop_columns(["seller.rating"])
    sellers = pa.array([{"rating": 3, "name": "a"}, None], struct)
    parquet.write_table(one.append_column("seller", sellers), tmp_path / "1.parquet")
    other = _table(whole[2:], event_type=pa.string(), n=pa.int32(), seen=pa.date32())
    other = other.set_column(3, "title", other["title"].dictionary_encode())
    parquet.write_table(other, tmp_path / "2.parquet")
    stats = gather(spark, str(tmp_path / "*.parquet"), SCHEMA)
    _check(stats, [{**whole[0], "seller.rating": 3}, *whole[1:]])
    assert stats.attributes["price"].low == -7.25
    assert stats.sample.schema.field("n").type == pa.int64()
    assert stats.sample.schema.field("seen").type == pa.timestamp("us", "UTC")
    assert stats.sample.schema.field("sizes").type == pa.list_(pa.int64())


def test_large_numbers_and_long_texts(spark: SparkSession, tmp_path: Path) -> None:
    numbers = [2**63 - 1, -(2**63), 2**53 + 1, 2**53 + 1, 0]
    schema = Schema.from_dict({"attributes": {"n": "integer", "title": "text"}})
    titles = ["ö" * 300, "ö" * 250, "a", "a", ""]
    parquet.write_table(pa.table({"n": numbers, "title": titles}), tmp_path / "0.parquet")
    stats = gather(spark, tmp_path, Schema.from_dict({**schema.to_dict(), "event_types": {"e": {
        "n": "optional", "title": "optional"}}}))  # fmt: skip
    told = stats.attributes["n"]
    assert (told.low, told.high, told.frequent[0]) == (-(2**63), 2**63 - 1, (2**53 + 1, 0.4))
    # Of a long text no more than the beginning is looked at; the sample has all of it.
    told = stats.attributes["title"]
    assert (told.low, told.high, told.distinct) == ("", "ö" * 200, 3)
    assert sorted(stats.sample["title"].to_pylist()) == sorted(titles)


def test_no_events_at_all(spark: SparkSession, tmp_path: Path) -> None:
    parquet.write_table(_table([]), tmp_path / "0.parquet")
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    for stats in (gather(spark, tmp_path / "0.parquet", SCHEMA), gather(spark, log)):
        _check(stats, [])
        assert stats.sample.num_rows == 0
        stats.save(tmp_path / "stats", replace=True)
        assert Stats.open(tmp_path / "stats") == stats
        engine = Engine(SCHEMA)
        engine.subscribe("price < 5", id="ann")
        engine.expect(stats)
        engine.save(tmp_path / "engine", replace=True)
        told = ask(spark, stats, tmp_path / "engine").subscriptions
        assert told is not None
        assert (told.subscriptions, told.events, told.pairs, told.most) == (1, 0, 0, ())


def test_nothing_but_the_dead(spark: SparkSession, tmp_path: Path) -> None:
    parquet.write_table(_table([{"event_type": "offer"}] * 200, event_type=pa.string()),
                        tmp_path / "0.parquet")  # fmt: skip
    stats = gather(spark, tmp_path, SCHEMA)
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
    _check(gather(spark, tmp_path, schema), rows, schema)


def test_more_values_than_can_be_counted_exactly(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {"attributes": {"n": "integer"}, "event_types": {"e": {"n": "mandatory"}}}
    )
    rng = np.random.default_rng(3)
    numbers = np.where(rng.random(200_000) < 0.3, 7, rng.integers(0, 1_000_000, 200_000))
    parquet.write_table(pa.table({"n": numbers}), tmp_path / "0.parquet", row_group_size=50_000)
    told = gather(spark, tmp_path, schema).attributes["n"]
    assert told.distinct == pytest.approx(len(np.unique(numbers)), rel=0.05)
    assert (told.low, told.high) == (numbers.min(), numbers.max())
    ranks = [float((numbers <= each).mean()) for each in told.quantiles]
    below = [float((numbers < each).mean()) for each in told.quantiles]
    for share, least, most in zip(SHARES, below, ranks, strict=True):
        assert least - 0.02 < share < most + 0.02
    value, share = told.frequent[0]
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
    stats = gather(spark, folder, SCHEMA, sample=60, seed=5)
    good = [at for at, row in enumerate(rows) if _good([row])]
    rank = ranked(np.array(good), 5)
    lowest = [rows[good[at]] for at in np.argsort(rank)[:60]]
    assert _sampled(stats) == _sets(_good(lowest)), "of all good events, those of the lowest rank"
    monkeypatch.setattr(row_groups, "_LEAST", 1 << 14)
    (tmp_path / "one").mkdir()
    parquet.write_table(_table(rows), tmp_path / "one" / "0.parquet")
    again = gather(spark, tmp_path / "one", SCHEMA, sample=60, seed=5)
    assert again.sample == stats.sample
    other = gather(spark, folder, SCHEMA, sample=60, seed=6)
    assert other.sample.num_rows == 60
    assert other.sample != stats.sample
    assert gather(spark, folder, SCHEMA).sample.num_rows == len(good)


def test_a_task_keeps_no_more_than_may_be_wanted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many events few have ranks under the limit, and of these each task keeps its lowest."""
    monkeypatch.setattr(row_groups, "_LEAST", 2_000)
    schema = Schema.from_dict(
        {"attributes": {"n": "integer"}, "event_types": {"e": {"n": "mandatory"}}}
    )
    numbers = np.arange(20_000)
    parquet.write_table(pa.table({"n": numbers}), tmp_path / "0.parquet", row_group_size=3_000)
    stats = gather(spark, tmp_path, schema, sample=500, work=tmp_path / "work")
    lowest = np.argsort(ranked(numbers, 0))[:500]
    assert stats.sample["n"].to_pylist() == lowest.tolist()
    # Any beginning of it is spread over all events.
    assert np.histogram(lowest[:200], 4, (0, 20_000))[0].min() > 25
    assert list((tmp_path / "work").iterdir()) == [], "nothing is left behind"


# -- logs ------------------------------------------------------------------------------------------


def _json(row: Row) -> str:
    return json.dumps({name: _plain(value) for name, value in row.items() if name != "picture"})


def test_a_log_of_columns_and_of_texts(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "picture"} for row in _rows(300, seed=2)]
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(changes.subscribe(["ann"], ["price < 5"]))
    log.publish(_table(rows[:100]))
    log.publish({"json": [_json(row) for row in rows[100:]]})
    log.change(changes.cancel(["ann"]))
    log.publish({"json": ["no JSON", '{"colour": "red"}']})
    numbers = range(1, 301)  # those of the sequence
    stats = gather(spark, log)
    _check(stats, [*rows, {"event_type": "none"}, {"colour": "red"}])
    assert stats.first is not None
    assert stats.last is not None
    assert (stats.first.sequence, stats.last.sequence) == (1, log.end - 1)
    assert datetime.fromisoformat(stats.first.appended) <= datetime.fromisoformat(
        stats.last.appended
    )
    order = np.argsort(ranked(np.array(numbers), 0))
    assert _sampled(stats) == _sets(_good([rows[at] for at in order]))


def test_a_log_has_its_own_schema(spark: SparkSession, tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    with pytest.raises(SparkError, match="a log has its own"):
        gather(spark, log, SCHEMA)


# -- what is refused -------------------------------------------------------------------------------


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="no such file or folder"):
        gather(spark, tmp_path / "nowhere", SCHEMA)
    table = _table(_rows(3))
    parquet.write_table(table, tmp_path / "0.parquet")
    with pytest.raises(SparkError, match="events in files need their schema"):
        gather(spark, tmp_path)
    with pytest.raises(SparkError, match="one event or more, got 0"):
        gather(spark, tmp_path, SCHEMA, sample=0)
    parquet.write_table(table.drop_columns(["price"]).append_column("prise", table["price"]),
                        tmp_path / "0.parquet")  # fmt: skip
    with pytest.raises(SparkError, match="'prise' is no attribute; did you mean 'price'"):
        gather(spark, tmp_path, SCHEMA)
    parquet.write_table(table.set_column(1, "price", pa.array(["a", "b", "c"])),
                        tmp_path / "0.parquet")  # fmt: skip
    with pytest.raises(SparkError, match="'price' is string, but the attribute is decimal"):
        gather(spark, tmp_path, SCHEMA)


def test_an_opaque_attribute_in_two_forms_makes_no_sample(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = {"event_type": "offer", "price": 1.0, "picture": b"x"}
    parquet.write_table(_table([row], event_type=pa.string()), tmp_path / "0.parquet")
    other = _table([{**row, "picture": None}], event_type=pa.string()).drop_columns(["picture"])
    pictures = pa.array([{"url": "a"}])
    parquet.write_table(other.append_column("picture", pictures), tmp_path / "1.parquet")
    with pytest.raises(SparkError, match="an opaque attribute in several forms"):
        gather(spark, tmp_path, SCHEMA)


# -- subscriptions ---------------------------------------------------------------------------------


CONDITIONS = {
    "cheap": "price < 3",
    "oak": 'tags contains "oak" and price > 0',
    "either": "thing <= furniture or sold = true",
    "all": "price exists or title exists",
    "none": "price > 1000000",
}


def _save(conditions: Mapping[Any, str], folder: Path, operators: Iterable[Operator] = ()) -> Path:
    with Engine(SCHEMA, operators=operators) as engine:
        for id, condition in conditions.items():
            engine.subscribe(condition, id=id)
        engine.save(folder)
    return folder


@pytest.fixture
def stats(spark: SparkSession, events: tuple[Path, list[dict[str, Any]]]) -> Stats:
    return gather(spark, events[0], SCHEMA)


@pytest.mark.parametrize("shards", [0, 3])
def test_what_a_sample_matches(
    spark: SparkSession, stats: Stats, tmp_path: Path, shards: int
) -> None:
    where = tmp_path / "subscriptions"
    if shards:
        frame = spark.createDataFrame(list(CONDITIONS.items()), "id string, condition string")
        compile_conditions(frame, Versions(where), SCHEMA, shards=shards)
    else:
        _save(CONDITIONS, where)
    told = ask(spark, stats, where).subscriptions
    engine = Engine.open(_save(CONDITIONS, tmp_path / "engine"))
    found = [engine.match(row) for row in stats.sample.to_pylist()]
    counted = Counter(id for each in found for id in each)
    assert told is not None
    assert (told.subscriptions, told.events) == (5, stats.events)
    assert (told.pairs, told.matched) == (sum(map(len, found)), sum(map(bool, found)))
    assert {each.id: round(each.share * told.events) for each in told.most} == counted
    assert told.most[0].id == "all"
    assert told.most[0].condition == "price exists or title exists"


def test_ids_that_are_numbers_and_no_more_than_ten(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    conditions: dict[Any, str] = {at: f"price < {at - 11}" for at in range(20)}
    conditions["text"] = "price exists"
    told = ask(spark, stats, _save(conditions, tmp_path / "engine")).subscriptions
    assert told is not None
    assert [each.id for each in told.most] == ["text", *range(19, 10, -1)]


def test_subscriptions_for_other_events_are_refused(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    other = Engine(Schema.from_dict({"attributes": {"colour": "text"}}))
    other.subscribe("colour = red", id=1)
    other.save(tmp_path / "engine")
    with pytest.raises(SparkError, match="the subscriptions are for another schema"):
        ask(spark, stats, tmp_path / "engine")
    with pytest.raises(SparkError, match="there is no folder of that name"):
        ask(spark, stats, tmp_path / "nowhere")


# -- operators -------------------------------------------------------------------------------------


@operator(reads=("price",), gives={"rest": "number"}, arguments={"by": "number"}, run="here")
def rest(price: float, by: float) -> float:
    """What is left when a price is divided."""
    return math.floor(price) % by


@operator(reads=("title",), run="here")
def loud(title: str) -> bool:
    if title.endswith("0"):
        raise ValueError("too quiet")
    return title.endswith("1")


ASKING = {
    "thirds": "rest(3, ?r) and ?r = 0 and loud()",
    "also": "sold = true and rest(3, ?x) and ?x = 0",
    "more": "rest(3, ?x) and ?x > 0 or price < -100",
    "plain": "price < 3",
}


def test_what_operators_come_to(spark: SparkSession, stats: Stats, tmp_path: Path) -> None:
    where = _save(ASKING, tmp_path / "engine", [rest, loud])
    heard: list[tuple[int, int]] = []
    told = ask(spark, stats, where, operators=[rest, loud], asked=100,
               progress=lambda done, of: heard.append((done, of)))  # fmt: skip
    prices = [row["price"] for row in stats.sample.to_pylist()[:100] if row["price"] is not None]
    titles = [row["title"] for row in stats.sample.to_pylist()[:100] if row["title"] is not None]
    none = sum(math.floor(price) % 3 == 0 for price in prices)
    counted = {text: (each.seen, round(each.share * each.seen), each.faults)
               for text, each in told.predicates.items()}  # fmt: skip
    heard_titles = [title for title in titles if not title.endswith("0")]
    assert counted == {
        "rest(3, ?0) and ?0 = 0": (len(prices), none, 0),
        "rest(3, ?0) and ?0 > 0": (len(prices), len(prices) - none, 0),
        "loud()": (
            len(heard_titles),
            sum(title.endswith("1") for title in titles),
            len(titles) - len(heard_titles),
        ),
    }
    assert all(0 < each.seconds < 1 for each in told.predicates.values())
    assert told.subscriptions is not None
    assert told.subscriptions.events == 100, "no operator is asked about the others"
    assert len({done for done, _ in heard}) > 1 or heard[-1][1] < 3
    with Engine.open(where, operators=[rest, loud]) as engine:
        found = [engine.match(row) for row in stats.sample.to_pylist()[:100]]
    assert told.subscriptions.pairs == sum(map(len, found))
    assert ask(spark, stats, where, operators=[rest, loud], asked=0).predicates == {}


def test_an_operator_that_is_missing_is_missed_at_once(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    where = _save({1: "quiet()"}, tmp_path / "engine", [_quiet()])
    with pytest.raises(OperatorError, match="an operator that is not there"):
        ask(spark, stats, where)


def _quiet() -> Operator:
    @operator(name="quiet", reads=("title",), run="here")
    def quiet(title: str) -> bool:
        return False

    registry._REGISTERED.pop("quiet")  # the decorator makes it known to this process
    return quiet


# -- readers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_log", [False, True])
def test_versions_are_laid_out_for_the_sample(
    spark: SparkSession, stats: Stats, tmp_path: Path, from_log: bool
) -> None:
    many = {f"s{at}": f"price < {at / 10} and n = {at % 7}" for at in range(400)}
    stats.save(tmp_path / "stats")
    log = Log.create(tmp_path / "log", SCHEMA)
    log.change(changes.subscribe(list(many), list(many.values())))
    frame = spark.createDataFrame(list(many.items()), "id string, condition string")
    made = []
    for at, past in enumerate((tmp_path / "stats", None)):
        versions = Versions(tmp_path / f"index-{at}")
        made.append(
            compile_log(spark, log, versions, stats=past)
            if from_log
            else compile_conditions(frame, versions, SCHEMA, stats=past)
        )
    told, untold = (Engine.open(each.version.shard_folders[0]) for each in made)
    assert told.matcher.facts()["laid_out"] == 400
    assert untold.matcher.facts()["laid_out"] is None, "there was no event to lay it out for"
    assert told.plan().events == stats.events
    batch = _table(_rows(80, seed=9)).filter(
        pa.array([bool(_good([row])) for row in _rows(80, seed=9)])
    )
    answers = [[sorted(each) for each in engine.match_batch(batch)] for engine in (told, untold)]
    assert answers[0] == answers[1]
    assert any(answers[0])


def test_versions_keep_what_schedulers_know(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    known = replace(stats, predicates={"far()": PredicateStats(0.25, 0.5, 40)})
    known.save(tmp_path / "stats")
    log = Log.create(tmp_path / "log", SCHEMA)
    versions = Versions(tmp_path / "index")
    for id, past in (("ann", tmp_path / "stats"), ("bob", None)):
        log.change(changes.subscribe([id], ["price < 5"]))
        made = compile_log(spark, log, versions, stats=past)
        engine = Engine.open(made.version.shard_folders[0])
        assert id in engine
        assert engine.calls.known == {"far()": Known(0.25, 500.0, 40)}


def test_what_is_no_statistics_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([("a", "price < 5")], "id string, condition string")
    with pytest.raises(StoreError, match="is no statistics"):
        compile_conditions(frame, Versions(tmp_path / "index"), SCHEMA, stats=tmp_path)
    other = Stats("elsewhere", {}, 1, 0, {}, sample=pa.table({"colour": ["red"]}))
    other.save(tmp_path / "stats")
    with pytest.raises(EventError, match="of another schema than the engine"):
        compile_conditions(frame, Versions(tmp_path / "index"), SCHEMA, stats=tmp_path / "stats")
    assert not (tmp_path / "index").exists()


def test_a_scheduler_begins_with_what_was_seen(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    """`rest = 0` is the rarer; both are written second and third, and cost the same by word."""
    conditions = {"both": "rest(1000, ?x) and ?x >= 0 and rest(7, ?y) and ?y = 6"}
    where = _save(conditions, tmp_path / "engine", [rest])
    known = ask(spark, stats, where, operators=[rest])
    known.save(tmp_path / "stats")
    events = stats.sample.filter(stats.sample["price"].is_valid())
    events = events.filter(pa.array([math.floor(p) % 7 != 6 for p in events["price"].to_pylist()]))
    calls = []
    for past in (None, Stats.open(tmp_path / "stats")):
        with Engine.open(where, operators=[rest]) as engine:
            if past is not None:
                engine.expect(past)
            assert engine.match_batch(events).total == 0
            calls.append(engine.report()["rest"].events)
    assert calls[1] == events.num_rows < calls[0], "the rare one first, and then no other"


# -- Spark Connect ---------------------------------------------------------------------------------


_CONNECT = """
import sys
from tamis import Schema
from tamis.spark import session
from tamis.spark.asking import ask
from tamis.spark.gathering import gather
spark, told = session(sys.argv[5]), []
def tell(done, of): told.append(done)
stats = gather(spark, sys.argv[1], Schema.load(sys.argv[2]), progress=tell)
ask(spark, stats, sys.argv[3], progress=tell).save(sys.argv[4])
print("told", bool(told))
"""


def test_the_same_through_spark_connect(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'pyspark[connect]'")
    (tmp_path / "schema.yaml").write_text(SCHEMA.to_yaml(), encoding="utf-8")
    engine, out = _save(CONDITIONS, tmp_path / "engine"), tmp_path / "stats"
    given = [str(each) for each in (events[0], tmp_path / "schema.yaml", engine, out)]
    server = Server(tmp_path)
    try:
        ran = subprocess.run(
            [sys.executable, "-c", _CONNECT, *given, server.url],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.stop()
    assert ran.stdout.strip().endswith("told True"), ran.stderr[-2000:]
    there, here = Stats.open(out), ask(spark, gather(spark, events[0], SCHEMA), engine)
    _check(there, events[1])
    assert there.sample.equals(here.sample)
    assert there.subscriptions == here.subscriptions


# -- the command -----------------------------------------------------------------------------------


def test_the_command(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: Capture
) -> None:
    folder, rows = events
    schema = tmp_path / "schema.yaml"
    schema.write_text(SCHEMA.to_yaml(), encoding="utf-8")
    _save(CONDITIONS, tmp_path / "engine")
    out = tmp_path / "stats"
    given = ["--events", str(folder), "--schema", str(schema), "--out", str(out)]
    assert run("spark", "stats", *given, "--subscriptions", str(tmp_path / "engine")) == 0
    shown = capsys.readouterr().out
    good = len(_good(rows))
    assert f"{folder}: {good} events; {len(rows) - good} dead" in shown
    assert "such as: " in shown
    for words in ("seller.rating", "most frequent", "oak (", "5 subscriptions", "pairs an event",
                  "price exists or title exists", f"The statistics are in {out}."):  # fmt: skip
        assert words in shown
    assert {each.name for each in out.iterdir()} == {"stats.json", "sample.parquet"}
    assert not list(tmp_path.glob(".*")), "nothing is left behind"
    assert Stats.open(out).sample.num_rows == good
    assert "holds statistics already" in refused(capsys, "spark", "stats", *given)
    assert run("spark", "stats", *given, "--replace", "--sample", "50", "--seed", "3") == 0
    assert Stats.open(out).sample.num_rows == 50
    capsys.readouterr()

    table = pa.table({"id": list(CONDITIONS), "condition": list(CONDITIONS.values())})
    parquet.write_table(table, tmp_path / "conditions.parquet")
    given = ["--conditions", str(tmp_path / "conditions.parquet"), "--schema", str(schema)]
    index = ["--index", str(tmp_path / "index")]
    said = refused(capsys, "spark", "compile", *given, *index, "--stats", str(folder))
    assert "is no statistics" in said
    assert run("spark", "compile", *given, *index, "--stats", str(out)) == 0
    (shard,) = Versions(tmp_path / "index").all()[0].shard_folders
    assert Engine.open(shard).plan().events == 50
    capsys.readouterr()
    assert run("plan", str(tmp_path / "engine"), "--stats", str(out)) == 0
    assert "laid out for 50 events" in capsys.readouterr().out


def test_operators_by_the_command(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    schema, out = tmp_path / "schema.yaml", tmp_path / "stats"
    schema.write_text(SCHEMA.to_yaml(), encoding="utf-8")
    _save({at: f"quiet() and price < {at}" for at in range(4)}, tmp_path / "engine", [_quiet()])
    given = ["--events", str(events[0]), "--schema", str(schema), "--out", str(out)]
    given += ["--subscriptions", str(tmp_path / "engine"), "--asked", "200"]
    assert run("spark", "stats", *given) == 2
    said = capsys.readouterr()
    assert "an operator that is not there" in said.err
    assert "Traceback" not in said.err
    assert Stats.open(out).events == len(_good(events[1])), "what was counted is not lost"
    module = """
from tamis import operator
@operator(reads=("title",), run="here")
def quiet(title):
    return not title.endswith("3")
"""
    (tmp_path / "quietly.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.sparkContext.addPyFile(str(tmp_path / "quietly.py"))
    try:
        assert run("spark", "stats", *given, "--replace", "--operators", "quietly") == 0
    finally:
        registry._REGISTERED.pop("quiet", None)
    shown = capsys.readouterr().out
    assert "quiet()" in shown
    assert "a call takes" in shown
    (told,) = Stats.open(out).predicates.values()
    assert 0.5 < told.share < 1


def test_what_the_command_refuses(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: Capture
) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text(SCHEMA.to_yaml(), encoding="utf-8")
    out = ["--out", str(tmp_path / "stats")]
    files = ["--events", str(events[0]), "--schema", str(schema)]
    wrong: list[tuple[list[str], str]] = [
        (out, "Give either --events and --schema, or --log."),
        ([*files, "--log", str(tmp_path), *out], "Give either --events and --schema, or --log."),
        (["--events", str(events[0]), *out], "Give either --events and --schema, or --log."),
        (["--events", "nowhere", "--schema", str(schema), *out], "no such file or folder"),
        (["--log", str(tmp_path / "log"), *out], "is no log"),
        ([*files, "--subscriptions", "nowhere", *out], "there is no folder of that name"),
        ([*files, "--out", str(tmp_path)], "holds other things than statistics"),
        ([*files, *out, "--sample", "0"], "0 is not in the range"),
    ]
    for given, said in wrong:
        assert said in refused(capsys, "spark", "stats", *given)
    assert not (tmp_path / "stats").exists()
