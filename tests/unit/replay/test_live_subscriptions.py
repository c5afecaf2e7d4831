"""Subscriptions that come and go, against a plain account of who was live when."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.encode.validation import validate
from tamis.language import parse
from tamis.model.event import Event
from tamis.model.semantics import satisfies
from tamis.replay.live_subscriptions import LiveSubscriptions, shard_of, subscribe_rows
from tamis.schedule.statistics import PredicateEstimate
from tests.schemas import one_type

SCHEMA = Schema.from_dict(one_type("event", {"price": "integer!", "kind": "text"}))
CONDITIONS = ["price < 5", "price >= 3 and kind = a", "kind = b or price = 7", "price > 100"]


def _changes(rows: Sequence[tuple[Any, ...]], kind: pa.DataType) -> pa.Table:
    return pa.table(
        {
            "sequence": pa.array([row[0] for row in rows], pa.int64()),
            "kind": pa.array([row[1] for row in rows], pa.string()),
            "id": pa.array([row[2] for row in rows], kind),
            "condition": pa.array([row[3] for row in rows], pa.string()),
            "until": pa.array([None] * len(rows), pa.timestamp("us", "UTC")),
            "language": pa.array([row[4] if len(row) > 4 else None for row in rows], pa.string()),
        }
    )


def _story(rng: random.Random, ids: list[Any], length: int) -> list[Any]:
    """Events and changes in one sequence: an entry is an event, or (kind, id, condition)."""
    made: list[Any] = []
    for _ in range(length):
        what = rng.random()
        if what < 0.5:
            made.append({"price": rng.randrange(10), "kind": rng.choice("abc")})
        elif what < 0.8:
            made.append(("subscribe", rng.choice(ids), rng.choice(CONDITIONS)))
        else:
            made.append((rng.choice(["cancel", "expire", "renew"]), rng.choice(ids), None))
    return made


def _expected(story: list[Any]) -> set[tuple[int, Any]]:
    live: dict[Any, str] = {}
    pairs = set()
    for sequence, entry in enumerate(story):
        if isinstance(entry, dict):
            event = Event.of(SCHEMA, entry)
            for id, condition in live.items():
                if satisfies(parse(condition), event, SCHEMA):
                    pairs.add((sequence, id))
        elif entry[0] == "subscribe":
            live[entry[1]] = entry[2]
        elif entry[0] != "renew":
            live.pop(entry[1], None)
    return pairs


def _version(story: list[Any], sequence: int, shard: int, shards: int) -> Engine:
    live: dict[Any, str] = {}
    for entry in story[:sequence]:
        if isinstance(entry, tuple) and entry[0] == "subscribe":
            live[entry[1]] = entry[2]
        elif isinstance(entry, tuple) and entry[0] != "renew":
            live.pop(entry[1], None)
    engine = Engine(SCHEMA)
    for id, condition in live.items():
        if shard_of(id, shards) == shard:
            engine.subscribe(condition, id=id)
    return engine


def _match(live: LiveSubscriptions, events: pa.Table, numbers: list[int]) -> tuple[Any, pa.Array]:
    known = np.array(numbers, np.int64)
    rows, ids = live.match(validate(live.encoder, events), known)
    return known[rows], ids


@pytest.mark.parametrize("ids", ["text", "int64"])
@pytest.mark.parametrize("shards", [1, 3])
def test_each_event_sees_who_is_live(ids: str, shards: int) -> None:
    rng = random.Random(7)
    kind = pa.string() if ids == "text" else pa.int64()
    known: list[Any] = [f"s{i}" for i in range(8)] if ids == "text" else list(range(-3, 5))
    for _ in range(25):
        story = _story(rng, known, 60)
        begin = rng.choice([0, 0, rng.randrange(60)])
        wanted = {pair for pair in _expected(story) if pair[0] >= begin}
        lives = [
            LiveSubscriptions(
                SCHEMA,
                ids,
                _version(story, begin, shard, shards) if begin else None,
                begin,
                shard=shard,
                shards=shards,
            )
            for shard in range(shards)
        ]
        cuts = sorted({begin, 60, *(rng.randrange(begin, 61) for _ in range(3))})
        found: list[tuple[int, Any]] = []
        for low, high in itertools.pairwise(cuts):
            rows = [(n, *story[n]) for n in range(low, high) if isinstance(story[n], tuple)]
            # Now and then a range is read twice, or more than is asked about.
            again = [(n, *story[n]) for n in range(begin, high) if isinstance(story[n], tuple)]
            numbers = [n for n in range(low, high) if isinstance(story[n], dict)]
            events = pa.Table.from_pylist(
                [story[n] for n in numbers],
                pa.schema([("price", pa.int64()), ("kind", pa.string())]),
            )
            for live in lives:
                live.take_changes(_changes(rng.choice([rows, again]), kind), high)
                sequences, subscriptions = _match(live, events, numbers)
                assert subscriptions.type == kind
                found += zip(sequences.tolist(), subscriptions.to_pylist(), strict=True)
        assert len(found) == len(set(found)), "no pair twice"
        assert set(found) == wanted


def test_a_replay_gives_the_same_though_more_is_known() -> None:
    live = LiveSubscriptions(SCHEMA, "text")
    rows = [(0, "subscribe", "a", "price < 5"), (2, "cancel", "a", None)]
    live.take_changes(_changes(rows, pa.string()), 4)
    events = pa.table({"price": [1, 1], "kind": ["x", "x"]})
    for _ in range(2):
        sequences, ids = _match(live, events, [1, 3])
        assert (sequences.tolist(), ids.to_pylist()) == ([1], ["a"])


def test_a_condition_that_is_wrong_is_left_out() -> None:
    live = LiveSubscriptions(SCHEMA, "text")
    rows = [
        (0, "subscribe", "good", "price < 5"),
        (1, "subscribe", "bad", "prize < 5"),
        (2, "subscribe", "worse", "price <"),
    ]
    live.take_changes(_changes(rows, pa.string()), 3)
    _, ids = _match(live, pa.table({"price": [1], "kind": ["x"]}), [3])
    assert ids.to_pylist() == ["good"]


def test_shards_are_even_and_do_not_move() -> None:
    assert [shard_of(id, 7) for id in ("a", "bc", 0, 1, -1, 2**62)] == [4, 4, 0, 6, 4, 1]
    for ids in (list(range(10_000)), [f"id-{i}" for i in range(10_000)]):
        counts = np.bincount([shard_of(id, 4) for id in ids])
        assert counts.min() > 2_000


def test_what_came_later_knows_what_the_version_knows() -> None:
    base = Engine(SCHEMA)
    base.calls.expect({"far()": PredicateEstimate(0.25, 500.0, 40)})
    assert LiveSubscriptions(SCHEMA, "text", base)._added.calls.known == {
        "far()": PredicateEstimate(0.25, 500.0, 40)
    }
    assert LiveSubscriptions(SCHEMA, "text")._added.calls.known == {}


def test_conditions_are_read_in_their_languages() -> None:
    live = LiveSubscriptions(SCHEMA, "text")
    rows = [
        (0, "subscribe", "bad", '{"prize": [1]}', "eventbridge"),
        (1, "subscribe", "ours", "price < 5", None),
        (2, "subscribe", "theirs", '{"price": [{"numeric": ["<", 5]}]}', "eventbridge"),
        (3, "subscribe", "other", '{"price": [2]}', "eventbridge"),
        (4, "subscribe", "cloud", "price > 1", "cesql"),
        (5, "subscribe", "cloudless", "price IN (1, 2)", "cesql"),
    ]
    live.take_changes(_changes(rows, pa.string()), 6)
    _, ids = _match(live, pa.table({"price": [1], "kind": ["x"]}), [7])
    assert sorted(ids.to_pylist()) == ["cloudless", "ours", "theirs"]


def test_refused_rows_have_their_places_whatever_their_language() -> None:
    conditions = ["price <", '{"price": [1]}', "price < 5", '{"price": 1}', "prize < 5"]
    languages = [None, "eventbridge", None, "eventbridge", None]
    engine = Engine(SCHEMA)
    table = pa.table({"id": [1, 2, 3, 4, 5], "condition": conditions, "language": languages})
    assert [each.row for each in subscribe_rows(engine, table)] == [0, 3, 4]
    assert sorted(engine.ids()) == [2, 3]
