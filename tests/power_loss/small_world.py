"""A small log with subscriptions, and the notifications that should come from it."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tamis.engine import Engine
from tamis.language import parse
from tamis.model.event import Event
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies
from tamis.replay.live_subscriptions import subscribe_rows
from tamis.replay.manifests import manifests
from tamis.replay.parts import NOTIFICATIONS
from tamis.store import Log, Shard, SubscriptionSnapshot, Versions, cancel, describe, subscribe
from tamis.store.verification import verify
from tests.schemas import one_type

SCHEMA = one_type("offer", {"price": "integer!", "kind": "text"})
_READ = Schema.from_dict(SCHEMA)
_CONDITIONS = ("price < 5", "price >= 3 and kind = a", "kind = b or price = 7")


def some_events(draw: random.Random) -> pa.Table:
    """Up to a dozen events; an event without a price is a dead letter."""
    rows = range(draw.randint(1, 12))
    prices = [None if draw.random() < 0.05 else draw.randrange(10) for _ in rows]
    kinds = [draw.choice("abc") for _ in rows]
    return pa.table({"price": pa.array(prices, pa.int64()), "kind": kinds})


def some_changes(draw: random.Random) -> pa.Table:
    id = f"s{draw.randrange(8)}"
    return subscribe([id], [draw.choice(_CONDITIONS)]) if draw.random() < 0.7 else cancel([id])


def compile_version(log: Log, versions: Versions) -> int:
    """Publish a version of who is subscribed by now; gives its sequence number."""
    at, snapshot, engine = log.end, SubscriptionSnapshot(), Engine(_READ)
    snapshot.fold(log.changes(0, at))
    assert not subscribe_rows(engine, snapshot.table(log.ids))
    with versions.publish(at) as draft:
        engine.save(draft / "shard-0000")
        shards = [Shard("shard-0000", len(engine), 1)]
        describe(draft, sequence=at, schema=log.schema, ids=log.ids, shards=shards)
    return at


def expected(log: Log, begin: int = 0) -> tuple[list[tuple[int, str]], list[int]]:
    """Who is notified of which event from `begin` on, and which events are dead letters."""
    rows: list[tuple[int, dict[str, Any]]] = []
    for first, table in log.events(0):
        rows += enumerate(table.to_pylist(), first)
    rows += [(each["sequence"], each) for each in log.changes(0).to_pylist()]
    live: dict[str, str] = {}
    pairs, dead = [], []
    for sequence, row in sorted(rows, key=lambda each: each[0]):
        if "condition" not in row:
            if sequence >= begin and row["price"] is None:
                dead.append(sequence)
            elif sequence >= begin:
                held = [id for id in live if _holds(live[id], row["price"], row["kind"])]
                pairs += [(sequence, id) for id in held]
        elif row["condition"] is None:
            live.pop(row["id"], None)
        else:
            live[row["id"]] = row["condition"]
    return sorted(pairs), dead


@cache
def _holds(condition: str, price: int, kind: str) -> bool:
    event = Event.of(_READ, {"price": price, "kind": kind})
    return bool(satisfies(parse(condition), event, _READ))


def began(log: Log) -> int | None:
    """Where a stream began that starts at the latest event, while the log has a record."""
    for path in (log.folder / "readers").glob("[!.]*.json"):
        return int(json.loads(path.read_bytes())["sequence"])
    return None


def check_notifications(log: Log, out: Path, begun: int) -> None:
    """All notifications and dead letters of a log are there, each once, and the log is whole."""
    found = manifests(out)
    pairs: list[tuple[int, str]] = []
    dead: list[int] = []
    for part in (part for manifest in found for part in manifest["parts"]):
        table = parquet.read_table(out / part["folder"] / part["name"])
        assert table.num_rows == part["rows"]
        numbers = table["sequence"].to_pylist()
        if part["folder"] == NOTIFICATIONS:
            pairs += zip(numbers, table["subscription"].to_pylist(), strict=True)
        else:
            dead += numbers
    assert (sorted(pairs), sorted(dead)) == expected(log, begun)
    assert verify(Log.open(log.folder)).findings == []
