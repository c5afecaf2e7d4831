"""Offers that are past, in files and in a log, and what a back-test has to find of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Container
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import Engine, Schema
from tamis.errors import EventError
from tamis.language import parse
from tamis.model.event import Event
from tamis.model.semantics import satisfies
from tamis.spark.backtest.backtest_job import Backtest
from tamis.spark.backtest.tally import ranks
from tamis.store import Log, subscribe
from tests.schemas import one_type

SCHEMA = Schema.from_dict(
    one_type(
        "offer",
        {"price": "decimal!", "tags": "text*", "seller.rating": "integer", "at": "timestamp"},
    )
)
YAML = """
attributes: {price: decimal, tags: text, at: timestamp, seller.rating: integer}
event_types:
  offer: {price: mandatory, tags: optional multiple, at: optional, seller.rating: optional}
"""
CONDITIONS = {
    "cheap": "price < 5",
    "either": "price < 2 or tags = oak",
    "oak": 'tags = "oak" and seller.rating >= 3',
    "without": "seller.rating missing",
    "never": "price > 1000",
}
START = datetime(2024, 3, 1, tzinfo=UTC)


def engine_of(texts: dict[str, str] | None = None, **options: Any) -> Engine:
    engine = Engine(SCHEMA, **options)
    for id, text in (texts or CONDITIONS).items():
        engine.subscribe(text, id=id)
    return engine


def offers(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Events as JSON has them, some of them invalid, in any order of time or without a time."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        event: dict[str, Any] = {"price": round(rng.uniform(0, 10), 2)}
        if rng.random() < 0.8:
            event["tags"] = rng.sample(["oak", "elm", "old"], rng.randint(1, 2))
        if rng.random() < 0.7:
            event["seller"] = {"rating": rng.randint(0, 5)}
        if rng.random() < 0.9:
            event["at"] = (START + timedelta(seconds=rng.randrange(3 * 86_400))).isoformat()
        if rng.random() < 0.05:
            del event["price"]
        made.append(event)
    return made


def in_columns(events: list[dict[str, Any]]) -> pa.Table:
    times = [each.get("at") for each in events]
    moments = [None if each is None else datetime.fromisoformat(each) for each in times]
    return pa.table(
        {
            "price": pa.array([each.get("price") for each in events], pa.float64()),
            "tags": pa.array([each.get("tags") for each in events], pa.list_(pa.string())),
            "seller": pa.array(
                [each.get("seller") for each in events], pa.struct([("rating", pa.int64())])
            ),
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "lot": [f"lot {row}" for row in range(len(events))],
        }
    )


def written(folder: Path, events: list[dict[str, Any]], files: int = 3, **options: Any) -> Path:
    """Files with row groups of several sizes."""
    folder.mkdir()
    table, size = in_columns(events), -(-len(events) // files)
    for file in range(files):
        parquet.write_table(
            table.slice(file * size, size),
            folder / f"{file}.parquet",
            row_group_size=50 + 70 * file,
            **options,
        )
    return folder


class Truth:
    """What a back-test has to find, event by event and condition by condition."""

    def __init__(
        self,
        events: dict[int, dict[str, Any]],
        found: Backtest,
        time: bool,
        texts: Container[int] = (),
    ) -> None:
        edges = found.axis.edges.tolist()
        self.matched: dict[str, list[int]] = {id: [] for id in CONDITIONS}
        self.over_time: Counter[tuple[str, int | None]] = Counter()
        self.events: Counter[int | None] = Counter()
        self.dead: dict[int, str] = {}
        self.any: set[int] = set()
        self.when: dict[int, int | None] = {}
        for number, given in events.items():
            self.when[number] = number
            if time:
                text = given.get("at")
                self.when[number] = None if text is None else micros(text)
            try:
                event = Event.of(SCHEMA, given)
            except EventError as why:
                self.dead[number] = str(why)
                if time and number in texts:  # of which nothing can be read
                    self.when[number] = None
            bucket = place(edges, self.when[number])
            self.events[bucket] += 1
            if number in self.dead:
                continue
            for id, text in CONDITIONS.items():
                if satisfies(parse(text), event, SCHEMA):
                    self.matched[id].append(number)
                    self.over_time[id, bucket] += 1
                    self.any.add(number)

    def check(self, found: Backtest) -> None:
        assert found.events == sum(self.events.values())
        assert found.matched == len(self.any)
        assert found.dead == len(self.dead)
        assert found.pairs == sum(map(len, self.matched.values()))
        rows = {row["subscription"]: row for row in found.counts.to_pylist()}
        assert rows.keys() == self.matched.keys()
        for id, numbers in self.matched.items():
            assert rows[id]["condition"] == CONDITIONS[id]
            assert rows[id]["matched"] == len(numbers)
            assert rows[id]["share"] == pytest.approx(len(numbers) / found.events)
            known = sorted(each for n in numbers if (each := self.when[n]) is not None)
            ends = [number_of(rows[id][name]) for name in ("first", "last")]
            assert ends == ([known[0], known[-1]] if known else [None, None])
        edges = found.axis.edges.tolist()
        over_time = {
            (row["subscription"], place(edges, number_of(row["begin"]))): row["matched"]
            for row in found.over_time.to_pylist()
        }
        assert over_time == self.over_time
        totals = found.totals.to_pylist()
        assert [row["events"] for row in totals] == [
            self.events[bucket]
            for bucket in (*range(found.axis.buckets), *([None] if None in self.events else []))
        ]
        for name in ("matched", "dead", "pairs"):
            assert sum(row[name] for row in totals) == getattr(found, name)
        reasons = {row["reason"]: row["events"] for row in found.reasons.to_pylist()}
        assert reasons == Counter(self.dead.values())

    def samples(self, most: int) -> dict[str, list[int]]:
        rank = {number: ranks(np.array([number]))[0] for number in self.when}
        lowest = {
            id: sorted(sorted(numbers, key=rank.__getitem__)[:most])
            for id, numbers in self.matched.items()
        }
        return {id: numbers for id, numbers in lowest.items() if numbers}


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 10**6)


def place(edges: list[int], value: int | None) -> int | None:
    if value is None:
        return None
    return next(at for at, edge in enumerate(edges[1:]) if value < edge)


def number_of(value: Any) -> int | None:
    if isinstance(value, datetime):
        return round(value.timestamp() * 10**6)
    return value if value is None else int(value)


def sampled(found: Backtest) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row in found.samples.to_pylist():
        rows.setdefault(row["subscription"], []).append(row["sequence"])
    return rows


class Past(NamedTuple):
    """A log, and the events of it by their sequence numbers."""

    log: Log
    events: dict[int, dict[str, Any]]
    texts: set[int]  # those that came as text


def past_log(folder: Path) -> Past:
    """Events in columns and as text, some alone, among changes."""
    made = Log.create(folder, SCHEMA)
    given: dict[int, dict[str, Any]] = {}
    texts: set[int] = set()
    events = offers(400, seed=2)
    made.change(subscribe(["a"], ["price < 1"]))
    for first, last, text in (
        (0, 150, False),
        (150, 152, True),
        (152, 300, True),
        (300, 400, False),
    ):
        some = events[first:last]
        if text:
            rows = made.publish({"json": [json.dumps(each) for each in some]})
            texts.update(rows)
        else:
            rows = made.publish(in_columns(some).drop_columns("lot"))
        given.update(zip(rows, some, strict=True))
        made.change(subscribe([f"b{first}"], ["price < 1"]))
    for event in events[:5]:
        number = made.publish({"json": [json.dumps(event)]})[0]
        given[number] = event
        texts.add(number)
    return Past(made, given, texts)
