"""What the fuzzed doors lead to: a schema of every domain, an engine and a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tamis.encode.lines.json_lines import LineReader
from tamis.engine import Engine
from tamis.model.schema import Schema
from tamis.store import Log

DOCUMENT: dict[str, Any] = {
    "domains": {
        "colour": {
            "kind": "enumerated",
            "values": ["red", "green", "blue"],
            "order": [["red", "blue"]],
        },
        "place": {"kind": "hierarchy", "tree": {"europe": {"france": {"paris": {}, "lyon": {}}}}},
        "small": {"kind": "integer", "low": -5, "high": 100},
    },
    "attributes": {
        "price": "decimal",
        "number": "integer",
        "size": "small",
        "name": "text",
        "tags": "text",
        "open": "boolean",
        "at": "timestamp",
        "colour": "colour",
        "place": "place",
        "picture": "opaque",
        "deep.inner": "decimal",
    },
    "event_types": {
        "offer": {
            "price": "optional",
            "number": "optional",
            "size": "optional",
            "name": "optional",
            "tags": "optional multiple",
            "open": "optional",
            "at": "optional",
            "colour": "optional multiple",
            "place": "optional",
            "picture": "optional",
            "deep.inner": "optional",
        },
        "bid": {"price": "mandatory"},
    },
    "default_event_type": "offer",
}
NAMES = [*DOCUMENT["attributes"], "event_type"]
CONDITIONS = [
    "price < 5 and number > 2 or not name = oak",
    'name starts with "a" and name like "%ä_%" or tags in (oak, pine, "x y")',
    "size between 1 and 3 and open = true or picture exists",
    'at >= "2026-01-01T00:00:00Z" and colour >= red or place = france',
    "deep.inner != 2.5e3 and not (price >= 1 or price <= -1)",
    'name ends with "z" and event_type = offer and number in (1, 2, -9223372036854775808)',
    "((((price = 1)))) or tags contains oak and tags excludes pine or name missing",
    "`name` = 'o\\'clock' and tags != \"\" and at < 2027-01-01",
]
EVENT: dict[str, Any] = {
    "price": 1.5,
    "number": 7,
    "size": 3,
    "name": "a chair",
    "tags": ["oak", "pine"],
    "open": True,
    "at": "2026-01-01T00:00:00Z",
    "colour": ["red", "blue"],
    "place": "paris",
    "picture": {"raw": [1, 2]},
    "deep": {"inner": 2.0},
}


class FuzzedWorld(NamedTuple):
    """The real parts behind the doors."""

    folder: Path
    schema: Schema
    engine: Engine
    lines: LineReader
    log: Log
    numbered: Log  # with numbers as ids


def make_world(folder: Path) -> FuzzedWorld:
    """Build the parts in a folder."""
    schema = Schema.from_dict(DOCUMENT)
    engine = Engine(schema)
    for number, condition in enumerate(CONDITIONS):
        engine.subscribe(condition, id=f"always {number}")
    logs = Log.create(folder / "log", schema), Log.create(folder / "numbered", schema, "int64")
    return FuzzedWorld(folder, schema, engine, LineReader(engine.encoder), *logs)
