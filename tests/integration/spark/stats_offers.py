"""Past events that all tests of statistics have, and what plain Python counts of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tamis import Engine, Operator, Schema, operator
from tamis.errors import EventError
from tamis.model.event import Event
from tamis.operators import registry
from tamis.spark.stats import event_stats as gathering
from tamis.store import Stats
from tamis.store.stats import SHARES, AttributeStats

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
            **dict.fromkeys(("n", "title", "sold", "seen", "state", "thing"), "optional"),
            **dict.fromkeys(("seller.rating", "picture"), "optional"),
            **dict.fromkeys(("tags", "sizes"), "optional multiple"),
        },
        "wish": {"title": "mandatory", "tags": "optional multiple", "thing": "mandatory"},
    },
}
SCHEMA = Schema.from_dict(DOCUMENT)
DAY = datetime(2026, 1, 31, tzinfo=UTC)


def offers(number: int, seed: int = 1) -> list[dict[str, Any]]:
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


def as_table(rows: Sequence[Row], **types: pa.DataType) -> pa.Table:
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


def good_events(rows: Iterable[Row], schema: Schema = SCHEMA) -> list[Event]:
    found = []
    for row in rows:
        try:
            found.append(Event.of(schema, row))
        except EventError:
            continue
    return found


def plain(value: Any) -> Any:
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
    frequent = sorted(((plain(v), c / len(events)) for v, c in counted.items()),
                      key=lambda each: (-each[1], each[0]))  # fmt: skip
    low = high = None
    quantiles: tuple[Any, ...] = ()
    if values and kind not in ("enumerated", "hierarchy", "boolean"):
        ordered = sorted(values)
        low, high = ordered[0], ordered[-1]
        if kind != "text":
            places = [max(0, math.ceil(share * len(ordered)) - 1) for share in SHARES]
            quantiles = tuple(plain(ordered[at]) for at in places)
    return AttributeStats(
        kind, len(bound), len(values), len(counted), plain(low), plain(high), quantiles,
        tuple(frequent),
    )  # fmt: skip


def check(stats: Stats, rows: Sequence[Row], schema: Schema = SCHEMA) -> None:
    events = good_events(rows, schema)
    assert (stats.events, stats.dead) == (len(events), len(rows) - len(events))
    wanted = _expected(schema, events)
    assert list(stats.attributes) == list(wanted)
    for name, found in stats.attributes.items():
        right = wanted[name]
        if len(right.frequent) > gathering.FREQUENT:
            # Of values that are as frequent, any may be listed.
            counts = [share for _, share in right.frequent][: gathering.FREQUENT]
            assert [share for _, share in found.frequent] in (counts, [])
            assert set(found.frequent) <= set(right.frequent)
            found, right = (_but_frequent(each) for each in (found, right))  # noqa: PLW2901
        assert found == right, f"{name}: {found!r} is not {right!r}"


def _but_frequent(stats: AttributeStats) -> AttributeStats:
    return replace(stats, frequent=())


def written(folder: Path) -> list[dict[str, Any]]:
    """Write files with row groups of several sizes; their rows."""
    rows = offers(500)
    folder.mkdir()
    for at, (start, stop) in enumerate(((0, 200), (200, 230), (230, 500))):
        path = folder / f"{at}.parquet"
        parquet.write_table(as_table(rows[start:stop]), path, row_group_size=100)
    return rows


# -- subscriptions ---------------------------------------------------------------------------------


CONDITIONS = {
    "cheap": "price < 3",
    "oak": 'tags contains "oak" and price > 0',
    "either": "thing <= furniture or sold = true",
    "all": "price exists or title exists",
    "none": "price > 1000000",
}


def saved(conditions: Mapping[Any, str], folder: Path, operators: Iterable[Operator] = ()) -> Path:
    with Engine(SCHEMA, operators=operators) as engine:
        for id, condition in conditions.items():
            engine.subscribe(condition, id=id)
        engine.save(folder)
    return folder


def quiet_operator() -> Operator:
    @operator(name="quiet", reads=("title",), run="here")
    def quiet(title: str) -> bool:
        return False

    registry._REGISTERED.pop("quiet")  # the decorator makes it known to this process
    return quiet
