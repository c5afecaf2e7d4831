"""Threads that match while another one subscribes and unsubscribes: every answer has one moment.

TAMIS_MANY_CALLERS is the number of (event, subscription) pairs in all answers, and TAMIS_SOAK_SEED
says what comes and goes. `make soak CAMPAIGNS=many-callers` asks for more.

Only one thread changes the engine, and it writes down each change before it begins. A thread that
matches knows which changes were done before its call, and which had begun when the answer was
there. The answer must be the right one after one of these changes, for all events of a batch alike.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest

from tamis import Engine, Schema
from tamis.errors import EventError
from tamis.language import parse
from tamis.match.default import matcher as default_matcher
from tamis.match.default.matcher import Tamis
from tamis.model import semantics
from tests.campaign import campaign

PAIRS = int(os.environ.get("TAMIS_MANY_CALLERS", "200000"))
READERS = 2
IDS = 160  # some are numbers, some are texts
ROUND = 50_000  # pairs with one engine
SCHEMA = {"attributes": {"n": "integer", "m": "integer", "d": "decimal", "s": "text", "t": "text"}}
PLAIN = [
    *(f"n = {each}" for each in range(8)),
    *(f"m >= {each}" for each in range(0, 12, 2)),
    *(f's = "{each}"' for each in ("a", "b", "cc", "cd")),
    *(f"d < {each} and n != 3" for each in (-1.5, 0, 2.5, 7)),
    'n = 1 or s > "b" or m < 3',
    's starts with "c" and m in (1, 4, 9)',
    "n > 2 and m > 2 or n = 0 and d > 1",
    "n missing or d < 1",
]
ALL = [
    *PLAIN,
    's like "%c%"',
    't ends with "x" and n < 6',
    's has substring "d" or n < @m',
    "n < @m",
]


def _events(draw: random.Random) -> list[dict[str, Any]]:
    """Events of a few shapes, of which some come twice."""
    found: list[dict[str, Any]] = []
    for _ in range(40):
        event = {
            "n": draw.randrange(8),
            "m": draw.randrange(12),
            "d": draw.uniform(-3, 8),
            "s": draw.choice(("a", "b", "c", "cc", "cd", "e")),
            "t": draw.choice(("x", "yx", "z")),
        }
        for name in draw.choice(((), (), ("d",), ("n", "t"))):
            del event[name]
        found.append(event)
    return found + found[:8]


ID_OF = [number if number % 3 else f"t{number}" for number in range(IDS)]
NUMBER_OF = {id: number for number, id in enumerate(ID_OF)}


class _World:
    """An engine, what comes and goes, and what is right after each change."""

    def __init__(self, engine: Engine, texts: list[str], seed: str) -> None:
        self.engine, self.texts, self.draw = engine, texts, random.Random(seed)
        self.events = _events(self.draw)
        schema = Schema.from_dict(SCHEMA)
        events = [schema.event(event) for event in self.events]
        self.truth = np.array(
            [
                [semantics.satisfies(condition, event, schema) for event in events]
                for condition in map(parse, texts)
            ]
        )
        self.log: list[tuple[int, int | None]] = []  # a number, and its condition if it comes
        self.done = 0
        self.live: set[int] = set()
        for number in range(0, IDS, 2):
            self.change(number, self.draw.randrange(len(texts)))

    def change(self, number: int, condition: int | None) -> None:
        """Let one subscription come or go."""
        self.log.append((number, condition))
        if condition is None:
            self.engine.unsubscribe(ID_OF[number])
            self.live.remove(number)
        else:
            self.engine.subscribe(self.texts[condition], ID_OF[number])
            self.live.add(number)
        self.done += 1

    def change_some(self, stop: Event) -> None:
        """Let subscriptions come and go until told to stop; at times nearly all of them."""
        least = 20
        while not stop.is_set():
            number = self.draw.randrange(IDS)
            if number not in self.live:
                self.change(number, self.draw.randrange(len(self.texts)))
            elif len(self.live) > least:
                self.change(number, None)
            if self.draw.random() < 0.02:
                least = self.draw.choice((2, 20, 120))
            if self.draw.random() < 0.3:
                stop.wait(self.draw.choice((0, 0.0005)))


class _Reader:
    """A thread that matches, and knows what is right."""

    def __init__(self, world: _World, seed: str) -> None:
        self.world, self.draw = world, random.Random(seed)
        self._right = np.zeros((len(world.events), IDS), np.bool_)
        self._at = 0
        self.pairs = 0
        self._encoded = world.engine.encode(world.events)
        self._late: list[tuple[list[list[Any]], Callable[[], list[list[Any]]]]] = []

    def read(self, stop: Event) -> int:
        """Match in all ways until enough pairs were compared. Returns their number."""
        ways = [self._one, self._text, self._batch, self._encoded_batch, self._others]
        while self.pairs < ROUND // READERS and not stop.is_set():
            self.draw.choices(ways, (20, 5, 3, 6, 1))[0]()
        for then, again in self._late:
            assert again() == then, "an answer keeps its ids"
        return self.pairs

    def _one(self) -> None:
        for _ in range(10):
            row = self.draw.randrange(len(self.world.events))
            event = self.world.events[row]
            self._compare([row], partial(self._match, event))

    def _match(self, event: dict[str, Any]) -> list[list[Any]]:
        return [self.world.engine.match(event)]

    def _text(self) -> None:
        row = self.draw.randrange(len(self.world.events))
        text = json.dumps(self.world.events[row])
        self._compare([row], lambda: [self.world.engine.match_json(text)])

    def _batch(self) -> None:
        events = self.world.events
        self._compare(range(len(events)), lambda: self.world.engine.match_batch(events))

    def _encoded_batch(self) -> None:
        try:
            rows = range(len(self.world.events))
            self._compare(rows, lambda: self.world.engine.match_batch(self._encoded))
        except EventError as why:
            if "out of date" not in str(why):
                raise
            self._encoded = self.world.engine.encode(self.world.events)

    def _others(self) -> None:
        """What one thread does alone."""
        events, engine = self.world.events, self.world.engine
        self._compare(range(len(events)), lambda: engine.match_bitmap(events))
        engine.match_batch(events, first=True)

    def _compare(self, rows: Any, match: Callable[[], Any]) -> None:
        before = self.world.done
        answer = match()
        begun = len(self.world.log)
        while self._at < before:
            self._step()
        found = np.zeros((len(rows), IDS), np.bool_)
        for place, ids in enumerate(answer):
            listed = [NUMBER_OF[id] for id in ids]
            found[place, listed] = True
            assert len(set(listed)) == len(listed), "each id once"
            self.pairs += len(listed)
        while not np.array_equal(found, self._right[list(rows)]):
            assert self._at < begun, (
                f"not right after any of the changes {before} to {begun}: "
                f"{np.argwhere(found != self._right[list(rows)])[:5].tolist()}"
            )
            self._step()
        if len(rows) > 1 and len(self._late) < 50 and self.draw.random() < 0.1:
            self._late.append(([*map(list, answer)], lambda: [*map(list, answer)]))

    def _step(self) -> None:
        number, condition = self.world.log[self._at]
        self._right[:, number] = False if condition is None else self.world.truth[condition]
        self._at += 1


@pytest.fixture(autouse=True)
def _many_switches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads take turns all the time, and small engines plan as large ones do."""
    monkeypatch.setattr(default_matcher, "_AT_ONCE", 0)
    monkeypatch.setattr(default_matcher, "_FEWER", 2)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _worlds(seed: str) -> Iterator[_World]:
    schema = Schema.from_dict(SCHEMA)
    while True:
        yield _World(Engine(schema), PLAIN, seed)
        yield _World(Engine(schema), ALL, seed)
        yield _World(Engine(), [each for each in PLAIN if "missing" not in each], seed)
        yield _World(Engine(schema, "counting-bit"), ALL, seed)


def test_answers_are_right_at_one_moment() -> None:
    with campaign("many-callers") as running:
        worlds = _worlds(f"{running.draw.random()}")
        while running.tried < PAIRS:
            world, stop = next(worlds), Event()
            readers = [_Reader(world, f"{running.draw.random()}") for _ in range(READERS)]
            with ThreadPoolExecutor(READERS + 1) as pool:
                changing = pool.submit(world.change_some, stop)
                reading = [pool.submit(each.read, stop) for each in readers]
                try:
                    running.tried += sum(each.result() for each in reading)
                finally:
                    stop.set()
                changing.result()
            if isinstance(world.engine.matcher, Tamis):
                assert world.engine.matcher.tally.events
            world.engine.check()
