"""A log whose schema grows, replayed from anywhere, against semantics event by event.

An event and a condition are read by the schema of their number, whatever schema the log has by the
time they are read.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema, parse
from tamis.errors import EventError, TamisError
from tamis.model.semantics import satisfies
from tamis.replay.live_subscriptions import LiveSubscriptions
from tamis.replay.log_matching import match_log
from tamis.replay.pipeline import BatchPace
from tamis.spark.jobs.compile_shard import LogShardTask
from tamis.spark.stream.log_task import LogTask
from tamis.store import Log, cancel, subscribe

DOMAINS = {
    "century": {
        "kind": "enumerated",
        "values": ["XVI", "XVII"],
        "order": [["XVI", "XVII"]],
    },
    "airport": {"kind": "hierarchy", "tree": {"west": {"SFO": {}}, "east": {"JFK": {}}}},
}
ATTRIBUTES = {"n": "integer", "made": "century", "sold": "century", "dest": "airport"}
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
    return {name: value for name, value in event.items() if name == "n" or rng.random() < 0.4}


def _story(rng: random.Random) -> list[tuple[Any, ...]]:
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


def replayed(live: LiveSubscriptions, log: Log, start: int, end: int) -> tuple[set[Pair], set[int]]:
    pairs: list[Pair] = []
    dead: set[int] = set()
    for events, found in match_log(live, log, start, end, BatchPace(2, 2)):
        sequences = events.numbers[found.rows].tolist()
        pairs += zip(sequences, found.ids.to_pylist(), strict=True)
        dead |= {int(events.chunk.numbers[row]) for row, _ in events.valid.refused}
    assert len(pairs) == len(set(pairs)), "no pair twice"
    return set(pairs), dead


def compiled(log: Log, at: int, draft: Path, before: tuple[int, str] | None) -> str:
    """The shard of a version, as the job compiles it."""
    since, folders = (0, None) if before is None else (before[0], [before[1]])
    task = LogShardTask(str(log.folder), str(draft), since, at, 1, folders, None, ())
    (made,) = task.run(0)
    folder = draft / made["folder"]
    assert Engine.open(folder).schema == log.schema_at(at)
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def _small_segments() -> Iterator[None]:
    """Segments that are complete with two packs, so that a log can be trimmed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tamis.store.segment_files.MOST", 2)
        yield


@settings(max_examples=30)
@given(st.randoms(use_true_random=True), st.sampled_from([CLOSED, OPEN]))
def test_a_replay_is_what_semantics_says_of_each_row(
    rng: random.Random, document: dict[str, Any]
) -> None:
    story = _story(rng)
    with tempfile.TemporaryDirectory() as place:
        log, account = Log.create(Path(place) / "log", document, ids="int64"), Account(document)
        places = [each for each in told(log, account, story) if each >= log.begin]
        rows = range(log.begin, log.end)
        right = {pair for pair in account.pairs if pair[0] in rows}
        dead = {number for number in account.dead if number in rows}
        reader = Log.open(log.folder)
        # All at once, and in steps; each step may be read again after later ones.
        assert replayed(LiveSubscriptions(log.schema_at(0), "int64"), reader, 0, log.end) == (
            right, dead
        )  # fmt: skip
        live = LiveSubscriptions(log.schema_at(0), "int64")
        cuts = sorted({log.begin, log.end, *rng.sample(places, min(3, len(places)))})
        for low, high in [*pairwise(cuts), (cuts[0], cuts[len(cuts) // 2])]:
            wanted = {pair for pair in right if low <= pair[0] < high}
            assert replayed(live, reader, low, high)[0] == wanted
        # From versions, each compiled from the one before, in tasks of a stream.
        before: tuple[int, str] | None = None
        for at in sorted(rng.sample(places, min(2, len(places)))):
            if at:
                before = at, compiled(reader, at, Path(place), before)
                end = rng.choice([each for each in places if each >= at])
                task = LogTask(str(log.folder), at, end, before[1], at, 0, 1, (), ())
                found = [row for batch in task.run() for row in batch.to_pylist()] * (end > at)
                pairs = {(row["sequence"], row["subscription"]) for row in found}
                assert {pair for pair in pairs if pair[1] is not None} == {
                    pair for pair in right if at <= pair[0] < end
                }
                assert {number for number, id in pairs if id is None} == {
                    number for number in dead if at <= number < end
                }
