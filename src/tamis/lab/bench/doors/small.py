"""A few rules, as most programs have: how soon they are loaded, and how soon a first event matches.

Kernels are compiled before the clock starts. In the baseline, the rules come from the same table,
or are there as tuples already; it parses no text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.lab.bench.doors import flights
from tamis.lab.bench.doors.turns import HASH_JOIN, DoorRow, DoorTurn, agree, result, rules, scanned
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.bench.startup import new_process
from tamis.lab.instruments import hash_join
from tamis.lab.instruments.hash_join import HashJoin
from tamis.lab.instruments.timing import timed
from tamis.lab.results.records import DoorResult, Goal
from tamis.model.schema import Schema
from tamis.workload import Workload, as_dicts
from tamis.workload.tables import conditions

SMALL = "small"
_RULES = 1_000
_EVENTS = 20
_GOAL = Goal(20, at_most=True)  # ms
_OURS = """\
import sys, time
begun = time.perf_counter()
import json
from tamis import Engine, Schema
given = json.load(open(sys.argv[1], encoding="utf-8"))
engine = Engine(Schema.from_dict(given["schema"]), matcher=sys.argv[2])
for id, condition in given["conditions"]:
    engine.subscribe(condition, id=id)
found = engine.match(given["event"])
print(time.perf_counter() - begun, *sorted(found))
"""
_THEIRS = """\
import sys, time
begun = time.perf_counter()
import json, runpy
given = json.load(open(sys.argv[1], encoding="utf-8"))
join = runpy.run_path(sys.argv[2])["HashJoin"](given["rules"])
found = join.match(given["event"])
print(time.perf_counter() - begun, *sorted(found))
"""


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return 5 * len(setting.fastest)


def measure(setting: BenchSetting) -> Iterator[DoorResult | str]:
    """Load, match once, and both in a new process."""
    for matcher in setting.fastest:
        yield f"a thousand rules, {matcher}"
        yield from _SmallEngine(setting, matcher).results()


class _SmallEngine:
    """A thousand rules in every form in which somebody loads them."""

    def __init__(self, setting: BenchSetting, matcher: str) -> None:
        self._setting, self._matcher = setting, matcher
        size = min(_RULES, setting.most_subscriptions)
        self._made: Workload = flights.make(size, seed=setting.seed)
        self._schema = Schema.from_dict(self._made.schema)
        texts = conditions(self._made.subscriptions).to_pylist()
        self._conditions = list(enumerate(texts))
        self._rules = list(rules(self._made.subscriptions))
        self._events = as_dicts(self._made.events(_EVENTS))
        self._right = scanned(self._made, self._events)
        self._goal = _GOAL if size == _RULES else None

    def results(self) -> Iterator[DoorResult]:
        """Two ways to load, with the first match after each; then new processes."""
        load, first = self._turns(self._from_table, self._join_from_table)
        yield self._result("table", "load a table", load, self._goal)
        yield self._result("first", "the first match after it", first, None)
        load, _ = self._turns(self._from_texts, lambda: HashJoin(self._rules))
        yield self._result("calls", "subscribe one by one, in text", load, self._goal)
        yield self._result("process", "a new process to its first match", self._processes(), None)

    def _empty(self) -> Engine:
        return Engine(self._schema, self._matcher, **self._setting.options)

    def _from_table(self) -> Engine:
        engine = self._empty()
        engine.subscribe_table(self._made.subscriptions)
        return engine

    def _from_texts(self) -> Engine:
        engine = self._empty()
        for id, condition in self._conditions:
            engine.subscribe(condition, id=id)
        return engine

    def _join_from_table(self) -> HashJoin:
        return HashJoin(rules(self._made.subscriptions))

    def _turns(
        self, ours: Callable[[], Engine], theirs: Callable[[], HashJoin]
    ) -> tuple[list[DoorTurn], list[DoorTurn]]:
        """Turns of loading, and of the first match after it."""
        agree(self._matcher, self._right, self._answers(ours()))
        agree(HASH_JOIN, self._right, self._answers(theirs()))
        load: list[DoorTurn] = []
        first: list[DoorTurn] = []
        for _ in range(self._setting.rounds):
            kept: list[Engine | HashJoin] = []
            load.append(DoorTurn(_timed_into(kept, ours), _timed_into(kept, theirs)))
            matched = [timed(partial(each.match, self._events[0])) for each in kept]
            first.append(DoorTurn(matched[0], matched[1]))
        return load, first

    def _answers(self, loaded: Engine | HashJoin) -> list[list[Any]]:
        return [loaded.match(event) for event in self._events]

    def _processes(self) -> list[DoorTurn]:
        """New processes in turns; a first one fills the cache of kernels."""
        with TemporaryDirectory(prefix="tamis-bench-") as folder:
            given = Path(folder) / "given.json"
            content = {
                "schema": self._made.schema,
                "conditions": self._conditions,
                "rules": self._rules,
                "event": self._events[0],
            }
            given.write_text(json.dumps(content), "utf-8")

            def ours() -> float:
                return self._process(_OURS, str(given), self._matcher)

            ours()
            return [
                DoorTurn(ours(), self._process(_THEIRS, str(given), hash_join.__file__))
                for _ in range(self._setting.imports)
            ]

    def _process(self, code: str, *arguments: str) -> float:
        seconds, *found = new_process(code, *arguments).split()
        if [int(id) for id in found] != self._right[0]:
            raise TamisError(f"a new process gave a wrong answer: {found}")
        return float(seconds)

    def _result(
        self, name: str, title: str, turns: list[DoorTurn], goal: Goal | None
    ) -> DoorResult:
        return result(
            DoorRow(SMALL, name, title, self._matcher, len(self._rules), HASH_JOIN),
            "s" if name == "process" else "ms",
            turns,
            goal,
            matches=sum(map(len, self._right)) / len(self._right),
            compared=1 if name == "process" else len(self._right),
            parameters=self._made.parameters,
        )


def _timed_into(kept: list[Engine | HashJoin], load: Callable[[], Engine | HashJoin]) -> float:
    """The seconds of a load, and what it has loaded as one more item of a list."""
    return timed(lambda: kept.append(load()))
