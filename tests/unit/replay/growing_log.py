"""Logs whose schema grows, and a plain account of what should come of them."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa

from tamis import Engine, Schema, parse
from tamis.errors import EventError, TamisError
from tamis.model.semantics import satisfies
from tamis.store import Log, cancel, subscribe

DOMAINS = {
    "century": {
        "kind": "enumerated",
        "values": ["XVI", "XVII"],
        "order": [["XVI", "XVII"]],
    },
    "airport": {"kind": "hierarchy", "tree": {"west": {"SFO": {}}, "east": {"JFK": {}}}},
}
ATTRIBUTES: dict[str, Any] = {
    "n": "integer",
    "made": "century",
    "sold": "century",
    "dest": "airport",
    "stops": {"kind": "structs", "attributes": {"at": "airport", "n": "integer"}},
}
CLOSED = {
    "domains": DOMAINS,
    "attributes": ATTRIBUTES,
    "event_types": {"lot": dict.fromkeys(ATTRIBUTES, "optional"), "bid": {"n": "optional"}},
    "default_event_type": "lot",
}
OPEN = CLOSED | {"unknown": "ignore"}

# In any order, as long as each is possible.
EXTENSIONS: list[Any] = [
    lambda s: s.grow_domain("century", ["XV"], [("XV", "XVI")]),
    lambda s: s.grow_domain("century", ["XVIb"], [("XVI", "XVIb"), ("XVIb", "XVII")]),
    lambda s: s.grow_domain("airport", {"SEA": "west"}),
    lambda s: s.grow_domain("airport", {"coast": "west", "SFO": "coast"}),
    lambda s: s.create_attribute("size", "integer"),
    lambda s: s.extend_event_type("lot", "size"),
    lambda s: s.extend_event_type("bid", "dest", "optional multiple"),
    lambda s: s.create_event_type("sale", {"n": "mandatory", "dest": "optional multiple"}),
]
CONDITIONS = [
    "n > 3",
    "made < XVI",  # never true at first
    "made < XVI or n = 1",
    "not made <= XVI",
    "made < @sold or dest = SEA",
    "dest <= west",
    "not dest <= west",
    "dest != SFO and n exists",
    "dest <= coast or n = 2",
    "some s in stops (s.at <= west and s.n > 1)",
    "not some s in stops (s.at <= west)",
    "some s in stops (s.at = SEA) or n = 3",
    "size >= 2",
    "size missing and n < 3",
    "event_type != lot",
    "event_type contains sale or made = XV",
    "size < ",
]
_names = {
    "made": ["XVI", "XVII", "XV", "XVIb"],
    "sold": ["XVI", "XVII", "XV"],
    "dest": ["SFO", "JFK", "west", "SEA", "coast"],
    "event_type": ["lot", "bid", "sale"],
}


def _event(rng: random.Random) -> dict[str, Any]:
    event = {"n": rng.randrange(6), "size": rng.choice([1, 2, 3, "big"])}
    event |= {name: rng.choice(values) for name, values in _names.items()}
    many = range(rng.randrange(3))
    event["stops"] = [{"at": rng.choice(_names["dest"]), "n": rng.randrange(4)} for _ in many]
    return {name: value for name, value in event.items() if name == "n" or rng.random() < 0.4}


def story_of(rng: random.Random) -> list[tuple[Any, ...]]:
    """Steps: what to do, and what with."""
    steps: list[tuple[Any, ...]] = []
    for _ in range(rng.randint(15, 40)):
        chance = rng.random()
        if chance < 0.35:
            events = [_event(rng) for _ in range(rng.randint(1, 4))]
            steps.append(("publish", events, rng.random() < 0.5))
        elif chance < 0.65:
            steps.append(("subscribe", rng.randrange(10), rng.choice(CONDITIONS)))
        elif chance < 0.85:
            steps.append(("extend", rng.choice(EXTENSIONS)))
        elif chance < 0.9:
            steps.append(("cancel", rng.randrange(10)))
        else:
            steps.append(("compact",) if chance < 0.95 else ("trim", rng.random()))
    return steps


Pair = tuple[int, Any]


class Account:
    """What should come of a log: pairs and dead letters, row by row."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.schema, self.end = Schema.from_dict(document), 0
        self.live: dict[Any, str] = {}
        self.pairs: set[Pair] = set()
        self.dead: set[int] = set()

    def subscribe(self, id: Any, text: str) -> None:
        self.live.pop(id, None)
        try:
            Engine(self.schema).subscribe(text)  # by the schema of its number
        except TamisError:
            pass
        else:
            self.live[id] = text
        self.end += 1

    def cancel(self, id: Any) -> None:
        self.live.pop(id, None)
        self.end += 1

    def publish(self, given: dict[str, Any]) -> None:
        try:
            event = self.schema.event(given)
        except EventError:
            self.dead.add(self.end)
        else:
            for id, text in self.live.items():
                if satisfies(parse(text), event, self.schema):
                    self.pairs.add((self.end, id))
        self.end += 1


def told(log: Log, account: Account, story: list[tuple[Any, ...]]) -> list[int]:
    """Write a story to a log; gives the sequence numbers between its steps."""
    places = [0]
    for kind, *said in story:
        if kind == "subscribe":
            account.subscribe(*said)
            log.change(subscribe(said[:1], said[1:]))
        elif kind == "cancel":
            account.cancel(*said)
            log.change(cancel(said))
        elif kind == "publish":
            events, lines = said
            # A column has one type.
            lines = lines or len({type(each.get("size", 1)) for each in events}) > 1
            table = {"json": [json.dumps(each) for each in events]}
            log.publish(pa.table(table) if lines else pa.Table.from_pylist(_filled(events)))
            for event in events:
                account.publish(event)
        elif kind == "extend":
            try:
                wider = said[0](account.schema)
            except TamisError:  # it is there already, or needs another one first
                continue
            assert log.extend(wider) == account.end
            account.schema, account.end = wider, account.end + 1
        elif kind == "compact":
            log.compact(log.end)
        else:
            log.trim(round(said[0] * log.end))
        places.append(account.end)
    assert log.end == account.end
    return places


def _filled(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {name for event in events for name in event}
    return [{name: event.get(name) for name in names} for event in events]
