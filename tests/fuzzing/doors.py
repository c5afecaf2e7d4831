"""The doors of tamis: each takes one fuzzed input, and refuses it with a `TamisError` or not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.broker.incoming import prepare_events
from tamis.cli.data.events import all_events
from tamis.cli.data.subscriptions import read_subscriptions
from tamis.cli.language import _read_event
from tamis.model.schema import Schema
from tamis.replay.log_events import LogEvents
from tamis.replay.pipeline import BatchPace, match_with
from tamis.service.bodies import events_in
from tests.fuzzing.folders import Folders
from tests.fuzzing.tables import Streams, any_table, columns, handmade
from tests.fuzzing.texts import any_condition, any_line, as_json, dumped, garbled, utf8
from tests.fuzzing.values import mutated, odd
from tests.fuzzing.world import CONDITIONS, DOCUMENT, EVENT, NAMES, FuzzedWorld

Door = Callable[[random.Random], None]
_EVENTS = [*NAMES, "json", "deep", "odd", "$id", "$time"]
_CHANGES = ["kind", "id", "condition", "until", "owner", "nonce", "key_generation"]
_CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "7",
    "source": "/shop/é",
    "type": "offer",
    "time": "2026-01-01T00:00:00Z",
    "datacontenttype": "application/json",
    "priority": 5,
}
_CONTENT_TYPES = [
    b"application/cloudevents+json",
    b"application/cloudevents-batch+json; charset=utf-8",
    b"application/cloudevents+avro",
    b"application/json",
    b"application/x-ndjson",
    b"text/\xff",
]
_PREDICATES = pa.list_(
    pa.struct(
        [
            ("attribute", pa.string()),
            ("comparator", pa.string()),
            ("value", pa.float64()),
            ("text", pa.string()),
        ]
    )
)
_JSON_SCHEMA = {
    "type": "object",
    "title": "offer",
    "properties": {
        "price": {"type": "number", "minimum": 0},
        "name": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "deep": {"$ref": "#/$defs/deep"},
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["price"],
    "$defs": {"deep": {"type": "object", "properties": {"inner": {"type": "number"}}}},
}


class Doors:
    """All doors, each with how often it is chosen."""

    def __init__(self, world: FuzzedWorld, seed: int) -> None:
        self._world = world
        draw = random.Random(seed)
        self._pool = columns(draw)
        self._events = Streams(any_table(draw, self._pool, _EVENTS) for _ in range(150))
        self._subscriptions = Streams(_subscriptions(draw, self._pool) for _ in range(60))
        self._changes = Streams(_changes(draw, self._pool) for _ in range(60))
        self._folders = Folders(world)
        self._yaml = world.schema.to_yaml()
        self.weights: dict[Door, int] = {
            self.condition: 300,
            self.event: 250,
            self.events: 40,
            self.event_json: 150,
            self.table: 120,
            self.bitmap: 20,
            self.lines: 15,
            self.cloud_event: 80,
            self.subscriptions: 40,
            self.publish: 10,
            self.change: 10,
            self.replay: 3,
            self.schema: 60,
            self.schema_text: 20,
            self.json_schema: 60,
            self.arrow_schema: 40,
            self.files: 10,
            self._folders.saved_bytes: 3,
            self._folders.documents: 10,
        }

    # -- conditions ------------------------------------------------------------------------------

    def condition(self, draw: random.Random) -> None:
        engine = self._world.engine
        id = engine.subscribe(any_condition(draw))
        engine.unsubscribe(id)

    def subscriptions(self, draw: random.Random) -> None:
        engine = self._world.engine
        if draw.random() < 0.5:
            table: Any = self._subscriptions.table(draw)
        else:
            table = _subscriptions(draw, self._pool)
        before = len(engine)
        try:
            engine.subscribe_table(table)
        finally:
            for id in engine.ids():
                if not str(id).startswith("always"):
                    engine.unsubscribe(id)
        assert len(engine) == before

    # -- events ----------------------------------------------------------------------------------

    def event(self, draw: random.Random) -> None:
        self._world.engine.match(_event(draw))

    def events(self, draw: random.Random) -> None:
        given: Any = [_event(draw) for _ in range(draw.randrange(3))]
        self._world.engine.match_batch(given if draw.random() < 0.9 else odd(draw))

    def event_json(self, draw: random.Random) -> None:
        self._world.engine.match(_read_event(any_line(draw)))

    def table(self, draw: random.Random) -> None:
        engine, table = self._world.engine, self._any_events(draw)
        way = draw.randrange(4)
        if way == 0:
            engine.encode(table)
        elif way == 1 and table.num_columns:
            for batch in table.to_batches():
                engine.match_batch(batch)
        else:
            found = engine.match_batch(table)
            if len(found) < 1000:
                assert sum(len(each) for each in found) == found.total

    def bitmap(self, draw: random.Random) -> None:
        self._world.engine.match_bitmap(self._any_events(draw))

    def _any_events(self, draw: random.Random) -> pa.Table:
        way = draw.random()
        if way < 0.6:
            return self._events.table(draw)
        if way < 0.7:
            return pa.table({draw.choice(NAMES): handmade(draw)})
        return any_table(draw, self._pool, _EVENTS)

    def lines(self, draw: random.Random) -> None:
        given = [utf8(any_line(draw), draw) for _ in range(draw.choice((1, 3, 50)))]
        parsed = self._world.lines.parse(pa.array(given, pa.binary()))
        assert len(parsed.valid) + len(parsed.valid.refused) == len(given)
        _ = parsed.events, parsed.reasons

    def cloud_event(self, draw: random.Random) -> None:
        """A body and headers as HTTP has them: a CloudEvent, a batch, binary mode, plain lines."""
        document: Any = {**_CLOUD_EVENT, "data": EVENT}
        if draw.random() < 0.5:
            document = mutated(document, draw)
        kind = draw.choice((0, 0, *range(len(_CONTENT_TYPES))))
        text = dumped([document] if kind == 1 else document)
        body = utf8(garbled(text, draw) if draw.random() < 0.5 else text, draw)
        headers = [(b"content-type", _CONTENT_TYPES[kind])]
        if draw.random() < 0.2:
            attributes: Any = mutated(_CLOUD_EVENT, draw)
            names = attributes if isinstance(attributes, dict) else _CLOUD_EVENT
            headers += [
                (f"ce-{name}".encode(errors="replace"), utf8(garbled(str(value), draw), draw))
                for name, value in names.items()
            ]
        prepare_events(events_in(body, headers), self._world.schema, 65_536, 1000)

    # -- the log ---------------------------------------------------------------------------------

    def publish(self, draw: random.Random) -> None:
        self._world.log.publish(self._any_events(draw))

    def change(self, draw: random.Random) -> None:
        log = draw.choice((self._world.log, self._world.numbered))
        if draw.random() < 0.5:
            log.change(self._changes.table(draw))
        else:
            log.change(_changes(draw, self._pool))

    def replay(self, draw: random.Random) -> None:
        """What a log accepted is matched or dead."""
        world = self._world
        numbers = world.log.publish(self._any_events(draw))
        share = (numbers.start, numbers.stop)
        source = LogEvents(str(world.log.folder), (share,))
        seen = 0
        for events, _ in match_with(world.engine, source.chunks(0), BatchPace()):
            seen += len(events.valid) + len(events.raw_texts())
        assert seen == len(numbers)

    # -- schemas ---------------------------------------------------------------------------------

    def schema(self, draw: random.Random) -> None:
        Schema.from_dict(mutated(DOCUMENT, draw))

    def schema_text(self, draw: random.Random) -> None:
        suffix = draw.choice((".yaml", ".json"))
        if suffix == ".yaml":
            text = garbled(self._yaml, draw)
        else:
            text = (
                dumped(mutated(DOCUMENT, draw))
                if draw.random() < 0.5
                else garbled(json.dumps(DOCUMENT), draw)
            )
        path = self._world.folder / f"schema{suffix}"
        path.write_bytes(utf8(text, draw))
        Schema.load(path)

    def json_schema(self, draw: random.Random) -> None:
        Schema.from_json_schema(as_json(mutated(_JSON_SCHEMA, draw)))

    def arrow_schema(self, draw: random.Random) -> None:
        table = (
            self._events.table(draw)
            if draw.random() < 0.3
            else any_table(draw, self._pool, _EVENTS)
        )
        Schema.from_arrow(table.schema)

    # -- files -----------------------------------------------------------------------------------

    def files(self, draw: random.Random) -> None:
        """The files that commands read."""
        suffix = draw.choice((".json", ".jsonl", ".csv", ".arrow", ".txt"))
        path: Path = self._world.folder / f"data{suffix}"
        if suffix == ".arrow":
            path.write_bytes(self._events.data(draw))
        elif suffix == ".csv":
            path.write_bytes(utf8(garbled("price,name,tags\n1,a,b\n2,,\n3,x,y\n", draw), draw))
        elif suffix == ".txt":
            path.write_bytes(utf8("\n".join(any_condition(draw) for _ in range(3)), draw))
        else:
            path.write_bytes(utf8("\n".join(any_line(draw) for _ in range(3)), draw))
        if suffix == ".txt" or draw.random() < 0.2:
            read_subscriptions(path)
        else:
            self._world.engine.match_batch(all_events(path, self._world.engine.schema))


def _event(draw: random.Random) -> Any:
    way = draw.randrange(10)
    if way == 0:
        return odd(draw)
    if way < 4:
        return {draw.choice(NAMES): odd(draw) for _ in range(draw.randrange(4))}
    return mutated(EVENT, draw)


def _subscriptions(draw: random.Random, pool: list[pa.Array]) -> pa.Table:
    """A table of subscriptions, some of whose columns may be of another kind."""
    rows = 5 if draw.random() < 0.8 else 60  # many are read in another way than few
    ids = draw.choice((pa.array(range(rows)), pa.array([f"id {n}" for n in range(rows)])))
    made: dict[str, Any] = {"id": ids}
    if draw.random() < 0.6:
        texts = [
            draw.choice(CONDITIONS) if draw.random() < 0.8 else any_condition(draw)
            for _ in range(rows)
        ]
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        made["condition"] = pa.array(clean, draw.choice((pa.string(), pa.large_string())))
    else:
        made["predicates"] = pa.array(
            [[_predicate(draw) for _ in range(draw.randrange(3))] for _ in range(rows)],
            _PREDICATES,
        )
    if rows == 5 and draw.random() < 0.3:
        made[draw.choice((*made, "odd"))] = draw.choice(pool)
    return pa.table(made)


def _predicate(draw: random.Random) -> dict[str, Any]:
    number = draw.choice((None, 1.0, 2.5, float("nan"), 1e300))
    text = draw.choice((None, "oak", "", "red", "offer", "2026-01-01T00:00:00Z"))
    comparator = draw.choice(
        ("=", "<", ">=", "!=", "in", "exists", "like", "==", "", "starts with")
    )
    return {
        "attribute": draw.choice((*NAMES, "odd", "")),
        "comparator": comparator,
        "value": number,
        "text": text if number is None or draw.random() < 0.1 else None,
    }


def _changes(draw: random.Random, pool: list[pa.Array]) -> pa.Table:
    kinds = ["subscribe", "renew", "cancel", "expire", draw.choice(("update", "odd", ""))]
    made: dict[str, Any] = {
        "kind": pa.array(kinds),
        "id": draw.choice((pa.array(range(5)), pa.array(list("abcde")))),
        "condition": pa.array(["price < 5", None, None, None, "price < 6"]),
    }
    for _ in range(draw.randrange(3)):
        made[draw.choice(_CHANGES)] = draw.choice(pool)
    return pa.table(made)
