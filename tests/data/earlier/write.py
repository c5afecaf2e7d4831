"""Writes the files of this folder with the tamis on the path: python write.py FOLDER

Later versions of tamis must open these files (tests/acceptance/test_earlier_files.py). Run it with
a commit whose formats are not covered yet, into a new folder named after that commit.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis import Engine, Schema
from tamis.language import parse
from tamis.match.registry import create
from tamis.model.semantics import satisfies
from tamis.store import Log, Shard, Versions, cancel, describe, renew, subscribe

SCHEMA = Schema.from_dict(
    {
        "domains": {
            "size": {
                "kind": "enumerated",
                "values": ["small", "medium", "large"],
                "order": [["small", "medium"], ["medium", "large"]],
            },
            "furniture": {
                "kind": "hierarchy",
                "tree": {"furniture": {"table": {"desk": {}}, "chair": {"stool": {}}}},
            },
        },
        "attributes": {
            "price": "decimal",
            "number": {"kind": "integer", "low": 0, "high": 50},
            "title": "text",
            "tags": "text",
            "open": "boolean",
            "at": "timestamp",
            "size": "size",
            "category": "furniture",
        },
        "event_types": {
            "offer": {
                **dict.fromkeys(("price", "number", "title", "at", "size"), "mandatory"),
                **dict.fromkeys(("open", "category"), "optional"),
                "tags": "optional multiple",
            }
        },
    }
)
WORDS = ("oak", "pine", "écu", "old oak", "red")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# `tamis` saves all of its index, the others save their clauses and build it again.
MATCHERS: dict[str, dict[str, Any]] = {
    "tamis": {},
    "be-tree": {"capacity": 3},
    "counting-bit": {"domain": 4},
    "dexin": {"plan": "optimal", "slots": 4},
    "aguilera": {"tree": "equality", "collapse": True},
    "gough": {"max_nodes": 2000, "order": "schema"},
}


def condition(draw: random.Random) -> str:
    """Draw a condition in which every kind of predicate occurs."""
    predicates = (  # one for each attribute: two might contradict each other
        draw.choice((f"price < {draw.randint(1, 40)}", f"price >= {draw.randint(1, 40)}.5")),
        f"number {draw.choice(('=', '!=', '<'))} {draw.randint(1, 50)}",
        draw.choice(('title = "old oak"', 'title like "%a%"', 'title starts with "p"')),
        f'tags {draw.choice(("contains", "excludes"))} "{draw.choice(WORDS)}"',
        "open = true",
        f'at > "2026-01-{draw.randint(1, 28):02d}T00:00:00Z"',
        f"size >= {draw.choice(('small', 'medium', 'large'))}",
        f"category <= {draw.choice(('furniture', 'table', 'chair', 'desk'))}",
    )
    clauses = [" and ".join(draw.sample(predicates, draw.randint(1, 3))) for _ in range(2)]
    return " or ".join(clauses[: draw.randint(1, 2)])


def event(draw: random.Random) -> dict[str, Any]:
    """Draw an event, as JSON."""
    found: dict[str, Any] = {
        "event_type": "offer",
        "price": draw.choice((0.5, 9.25, 20.0, 39.5)),
        "number": draw.randint(0, 50),
        "title": draw.choice(WORDS),
        "at": f"2026-01-{draw.randint(1, 28):02d}T12:00:00Z",
        "size": draw.choice(("small", "medium", "large")),
    }
    if draw.random() < 0.6:
        found["tags"] = draw.sample(WORDS, draw.randint(1, 3))
    if draw.random() < 0.5:
        found["open"] = draw.random() < 0.5
    if draw.random() < 0.7:
        found["category"] = draw.choice(("furniture", "table", "chair", "desk", "stool"))
    return found


def matched(subscriptions: dict[str, str], given: dict[str, Any]) -> list[str]:
    """Say by the definition of truth which subscriptions an event matches."""
    return sorted(id for id, text in subscriptions.items() if satisfies(parse(text), given, SCHEMA))


def write_engines(out: Path, draw: random.Random) -> None:
    """Save an engine with each matcher, after subscriptions came and went."""
    texts = {f"s{number}": condition(draw) for number in range(40)}
    gone = draw.sample(sorted(texts), 8)
    live = {id: text for id, text in texts.items() if id not in gone}
    events = [event(draw) for _ in range(25)]
    for name, options in MATCHERS.items():
        engine = Engine(SCHEMA, create(name, **options))
        for id, text in texts.items():
            engine.subscribe(text, id=id)
        for id in gone:
            engine.unsubscribe(id)
        engine.match_batch(events)  # `tamis` lays clauses out for the events that it sees
        with tempfile.TemporaryDirectory() as place:
            engine.save(f"{place}/engine")
            pack(Path(place), out / f"engine-{name}.zip")
    pairs = [matched(live, each) for each in events]
    put(out / "engines.json", {"subscriptions": live, "events": events, "matched": pairs})


def write_log(out: Path, draw: random.Random) -> None:
    """Write a log with every kind of change, segments and packs, and a version of the middle."""
    with tempfile.TemporaryDirectory() as place:
        log, live = Log.create(f"{place}/log", SCHEMA), dict[str, str]()
        pairs: dict[int, list[str]] = {}
        for turn in range(12):
            added = {f"s{turn}.{number}": condition(draw) for number in range(3)}
            lease = NOW + timedelta(days=turn) if turn % 3 == 0 else None
            log.change(subscribe(list(added), list(added.values()), lease))
            live |= added
            if turn % 2:
                left = draw.choice(sorted(live))
                log.change(cancel([left, "nobody"]))
                del live[left]
            events = [event(draw) for _ in range(2)]
            first = log.publish(pa.table({"json": [json.dumps(each) for each in events]})).start
            pairs |= {first + at: matched(live, each) for at, each in enumerate(events)}
            if turn == 5:
                log.compact(log.end)
                write_version(Path(place) / "index", log.end, live)
        log.change(renew([min(live)], NOW + timedelta(days=99)))
        pack(Path(place), out / "log.zip")
        put(out / "log.json", {"end": log.end, "live": live, "matched": pairs})


def write_version(folder: Path, sequence: int, live: dict[str, str]) -> None:
    """Publish a version with one shard."""
    engine = Engine(SCHEMA)
    for id, text in live.items():
        engine.subscribe(text, id=id)
    with Versions(folder).publish(sequence) as draft:
        engine.save(draft / "shard-0000")
        shards = [Shard("shard-0000", len(live), 0)]
        describe(draft, sequence=sequence, schema=SCHEMA.to_dict(), ids="text", shards=shards)


def pack(folder: Path, out: Path) -> None:
    """Compress a folder: sections of a saved index fill whole pages, mostly with zeros."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))


def put(path: Path, document: dict[str, Any]) -> None:
    """Write the expected answers."""
    path.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    write_engines(folder, random.Random(1))
    write_log(folder, random.Random(2))
