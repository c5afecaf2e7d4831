"""What a sample matches and what operators say of it; planners and schedulers that know it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tamis import Engine, Schema, operator
from tamis.errors import EventError, OperatorError, SparkError, StoreError
from tamis.match.capabilities import saved_form
from tamis.schedule.statistics import PredicateEstimate
from tamis.spark.jobs.compile_index import compile_conditions, compile_log
from tamis.spark.stats.event_stats import gather_stats
from tamis.spark.stats.subscription_stats import match_sample
from tamis.store import Log, Stats, Versions, changes
from tamis.store.stats import PredicateStats
from tests.integration.spark.stats_offers import (
    CONDITIONS,
    SCHEMA,
    as_table,
    good_events,
    offers,
    quiet_operator,
    saved,
)

pytestmark = pytest.mark.usefixtures("small_shares")


# -- subscriptions ---------------------------------------------------------------------------------


@pytest.fixture
def stats(spark: SparkSession, events: tuple[Path, list[dict[str, Any]]]) -> Stats:
    return gather_stats(spark, events[0], SCHEMA)


@pytest.mark.parametrize("shards", [0, 3])
def test_what_a_sample_matches(
    spark: SparkSession, stats: Stats, tmp_path: Path, shards: int
) -> None:
    where = tmp_path / "subscriptions"
    if shards:
        frame = spark.createDataFrame(list(CONDITIONS.items()), "id string, condition string")
        compile_conditions(frame, Versions(where), SCHEMA, shards=shards)
    else:
        saved(CONDITIONS, where)
    known = match_sample(spark, stats, where).subscriptions
    engine = Engine.open(saved(CONDITIONS, tmp_path / "engine"))
    found = [engine.match(row) for row in stats.sample.to_pylist()]
    counted = Counter(id for each in found for id in each)
    assert known is not None
    assert (known.subscriptions, known.events) == (5, stats.events)
    assert (known.pairs, known.matched) == (sum(map(len, found)), sum(map(bool, found)))
    assert {each.id: round(each.share * known.events) for each in known.most} == counted
    assert known.most[0].id == "all"
    assert known.most[0].condition == "price exists or title exists"


def test_ids_that_are_numbers_and_no_more_than_ten(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    conditions: dict[Any, str] = {at: f"price < {at - 11}" for at in range(20)}
    conditions["text"] = "price exists"
    known = match_sample(spark, stats, saved(conditions, tmp_path / "engine")).subscriptions
    assert known is not None
    assert [each.id for each in known.most] == ["text", *range(19, 10, -1)]


def test_subscriptions_for_other_events_are_refused(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    other = Engine(Schema.from_dict({"attributes": {"colour": "text"}}))
    other.subscribe("colour = red", id=1)
    other.save(tmp_path / "engine")
    with pytest.raises(SparkError, match="the subscriptions are for another schema"):
        match_sample(spark, stats, tmp_path / "engine")
    with pytest.raises(SparkError, match="there is no folder of that name"):
        match_sample(spark, stats, tmp_path / "nowhere")


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
    where = saved(ASKING, tmp_path / "engine", [rest, loud])
    heard: list[tuple[int, int]] = []
    known = match_sample(spark, stats, where, operators=[rest, loud], asked=100,
               progress=lambda done, of: heard.append((done, of)))  # fmt: skip
    prices = [row["price"] for row in stats.sample.to_pylist()[:100] if row["price"] is not None]
    titles = [row["title"] for row in stats.sample.to_pylist()[:100] if row["title"] is not None]
    none = sum(math.floor(price) % 3 == 0 for price in prices)
    counted = {text: (each.seen, round(each.share * each.seen), each.faults)
               for text, each in known.predicates.items()}  # fmt: skip
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
    assert all(each.seconds > 0 for each in known.predicates.values())
    assert known.subscriptions is not None
    assert known.subscriptions.events == 100, "no operator is asked about the others"
    assert heard[-1][0] == heard[-1][1] > 1, "all tasks, of several"
    with Engine.open(where, operators=[rest, loud]) as engine:
        found = [engine.match(row) for row in stats.sample.to_pylist()[:100]]
    assert known.subscriptions.pairs == sum(map(len, found))
    assert match_sample(spark, stats, where, operators=[rest, loud], asked=0).predicates == {}


def test_an_operator_that_is_missing_is_missed_at_once(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    where = saved({1: "quiet()"}, tmp_path / "engine", [quiet_operator()])
    with pytest.raises(OperatorError, match="an operator that is missing"):
        match_sample(spark, stats, where)


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
    planned, other = (Engine.open(each.version.shard_folders[0]) for each in made)
    assert saved_form(planned.matcher).facts["laid_out"] == 400
    assert saved_form(other.matcher).facts["laid_out"] is None, (
        "there was no event to lay it out for"
    )
    assert planned.plan().events == stats.events
    batch = as_table(offers(80, seed=9)).filter(
        pa.array([bool(good_events([row])) for row in offers(80, seed=9)])
    )
    answers = [[sorted(each) for each in engine.match_batch(batch)] for engine in (planned, other)]
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
        assert engine.calls.known == {"far()": PredicateEstimate(0.25, 500.0, 40)}


def test_other_files_than_statistics_are_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([("a", "price < 5")], "id string, condition string")
    with pytest.raises(StoreError, match="is not statistics"):
        compile_conditions(frame, Versions(tmp_path / "index"), SCHEMA, stats=tmp_path)
    other = Stats("elsewhere", {}, 1, 0, {}, sample=pa.table({"colour": ["red"]}))
    other.save(tmp_path / "stats")
    with pytest.raises(EventError, match="have another schema than the engine"):
        compile_conditions(frame, Versions(tmp_path / "index"), SCHEMA, stats=tmp_path / "stats")
    assert not (tmp_path / "index").exists()


def test_a_scheduler_begins_with_what_was_seen(
    spark: SparkSession, stats: Stats, tmp_path: Path
) -> None:
    """`rest = 0` is the rarer; both are written second and third, and cost the same by word."""
    conditions = {"both": "rest(1000, ?x) and ?x >= 0 and rest(7, ?y) and ?y = 6"}
    where = saved(conditions, tmp_path / "engine", [rest])
    known = match_sample(spark, stats, where, operators=[rest])
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
