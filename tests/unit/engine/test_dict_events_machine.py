"""Single events between all that may happen to an engine: the answers are the definition's."""

from __future__ import annotations

import json
import pickle
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tamis import Engine, Schema
from tamis.errors import EventError, NeverTrueError
from tamis.language import parse
from tamis.match.default.matcher import Tamis
from tamis.model import semantics
from tests.running import run_machine

_DECLARED: dict[str, Any] = {
    "price": "decimal",
    "low": "decimal",
    "size": {"kind": "integer", "low": 0, "high": 9},
    "title": "text",
    "seller.rating": "integer",
    "colour": {"kind": "enumerated", "values": ["green", "red"]},
    "any": "dynamic",
}
_PREDICATES = [
    "price < 3",
    "price = -1.5",
    "size between 2 and 5",
    "size != 3",
    'title like "%a%"',
    "title = oak",
    "title > b",
    "seller.rating >= 2",
    "seller.rating exists",
    "any = x",
    "any is null",
    "any > 1",
    "colour = red",
    "colour != green",
    "price < @low",
    "not (price = 1 or title = oak)",
    "not (price < @low or size > 4) and any exists",
]
_VALUES: dict[str, list[Any]] = {
    "price": [-1.5, -0.0, 0, 1, 2.5, 2**53 + 1, None, "x", True],
    "low": [0, 2.5, [1, 1], None],
    "size": [0, 3, 4, 9, 10, 3.0, None],
    "title": ["oak", "a", "", "zebra", ["oak"], [], None, "\ud800"],
    "seller": [{"rating": 2}, {"rating": [1]}, {"rating": None, "x": 1}, {}, None, 3],
    "seller.rating": [1, 5],
    "any": ["x", 1, 2.5, True, None, {"x": 1}, [1, "x"], []],
    "colour": ["red", "green", "blue", None],
    "other": [1, None, [], {"a": 1}],
    "more": ["x"],
}
EVENTS = st.lists(st.sampled_from([*_VALUES]), unique=True, max_size=6).flatmap(
    lambda names: st.fixed_dictionaries({n: st.sampled_from(_VALUES[n]) for n in names})
)
PREDICATE = st.sampled_from(_PREDICATES)
CONDITIONS = st.one_of(
    PREDICATE,
    st.lists(PREDICATE, min_size=2, max_size=4).map(" and ".join),
    st.lists(PREDICATE, min_size=2, max_size=4).map(" or ".join),
)


def schema_of(unknown: str, colours: list[str], more: list[str]) -> Schema:
    attributes = {
        **_DECLARED,
        "colour": {"kind": "enumerated", "values": ["green", "red", *colours]},
        **dict.fromkeys(more, "text"),
    }
    return Schema.from_dict({"attributes": attributes, "unknown": unknown})


class Machine(RuleBasedStateMachine):
    """An engine that is open or declared, and the conditions that are live in it."""

    unknown: str | None = None  # None for the open schema

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int | str, str] = {}
        self.made = self.events = 0
        self.colours: list[str] = []
        self.more: list[str] = []
        self.engine = Engine(None if self.unknown is None else self.schema())
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        self.folder.cleanup()

    def schema(self) -> Schema:
        return schema_of(self.unknown or "ignore", self.colours, self.more)

    def expected(self, event: Any) -> set[Any] | str:
        """The ids that match, or the refusal."""
        schema = self.engine.schema
        try:
            valid = schema.event(event)
        except EventError as why:
            return str(why)
        return {
            id for id, text in self.live.items() if semantics.satisfies(parse(text), valid, schema)
        }

    def found(self, match: Any, event: Any) -> set[Any] | str:
        try:
            found = match(event)
        except EventError as why:
            return str(why)
        assert len(found) == len(set(found))
        return set(found)

    def compare(self, match: Any, event: Any, expected: set[Any] | str) -> None:
        assert self.found(match, event) == expected
        self.events += isinstance(expected, set)

    @rule(condition=CONDITIONS, text=st.booleans(), many=st.sampled_from([1, 1, 40]))
    def subscribe(self, condition: str, text: bool, many: int) -> None:
        for _ in range(many):
            self.made += 1
            id = f"id {self.made}" if text else self.made
            try:
                self.engine.subscribe(condition, id)
            except NeverTrueError:
                return
            self.live[id] = condition

    @precondition(lambda self: self.live)
    @rule(data=st.data(), all=st.booleans())
    def unsubscribe(self, data: st.DataObject, all: bool) -> None:
        for id in [*self.live] if all else [data.draw(st.sampled_from([*self.live]))]:
            self.engine.unsubscribe(id)
            del self.live[id]

    @rule(event=EVENTS, times=st.sampled_from([1, 3, 70]))
    def match(self, event: dict[str, Any], times: int) -> None:
        expected, given = self.expected(event), json.loads(json.dumps(event))
        before = self.engine.report().ignored.get("other", 0)
        for _ in range(times):
            self.compare(self.engine.match, event, expected)
            assert event == given, "an event stays as it was"
        if self.unknown == "ignore":
            counts = isinstance(expected, set) and event.get("other") not in (None, [])
            after = self.engine.report().ignored.get("other", 0)
            assert after - before == (times if counts else 0)

    @rule(event=EVENTS)
    def match_json(self, event: dict[str, Any]) -> None:
        written = json.dumps(event)
        expected = self.expected(event)
        for _ in range(3):
            self.compare(self.engine.match_json, written, expected)
            self.compare(self.engine.match_json, written.encode(), expected)

    @rule(events=st.lists(EVENTS, min_size=1, max_size=5), twice=st.booleans())
    def match_batch(self, events: list[dict[str, Any]], twice: bool) -> None:
        every = events * (1 + twice)
        expected = [self.expected(each) for each in every]
        report = self.engine.match_batch(every, bad="report")
        refused = dict(report.refused)
        for row, (ids, each) in enumerate(zip(report, expected, strict=True)):
            assert refused.get(row, set(ids)) == each
        lines = self.engine.match_lines("\n".join(map(json.dumps, every)), bad="report")
        bad = {row for row, each in enumerate(expected) if isinstance(each, str)}
        assert {row for row, _ in lines.refused} == bad
        assert [*map(set, lines)] == [set() if isinstance(each, str) else each for each in expected]
        self.events += 2 * (len(every) - len(bad))
        if not bad:
            assert [*map(set, self.engine.match_batch(every))] == expected
            self.events += len(every)

    @rule(events=st.lists(EVENTS, min_size=1, max_size=3))
    def match_from_two_threads(self, events: list[dict[str, Any]]) -> None:
        expected = [self.expected(each) for each in events]
        found: list[Any] = []

        def match() -> None:
            found.append([self.found(self.engine.match, each) for each in events])

        threads = [Thread(target=match) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [expected] * 2
        self.events += 2 * sum(isinstance(each, set) for each in expected)

    @rule(how=st.sampled_from(["pickle", "save", "mapped", "torn", "threads", "plan", "settle"]))
    def happen(self, how: str) -> None:
        matcher = self.engine.matcher
        assert isinstance(matcher, Tamis)
        if how == "pickle":
            self.engine = pickle.loads(pickle.dumps(self.engine))
        elif how in ("save", "mapped"):
            folder = Path(self.folder.name) / "engine"
            self.engine.save(folder, replace=True)
            self.engine = Engine.open(folder, verify=how == "save")
            self.events = 0  # a saved engine has no tally
        elif how == "torn":
            self.engine.torn = True  # as Ctrl-C leaves it
        elif how == "threads":
            matcher.threads = 3 - matcher.threads
        elif how == "plan" and matcher._index is not None and matcher._next is None:
            matcher._plan()
        elif how == "settle":
            matcher.settle()

    @rule(what=st.sampled_from(["colours", "more"]))
    def extend(self, what: str) -> None:
        if self.unknown is None:
            return
        if what == "colours":
            self.colours = ["blue"]
        else:
            self.more = ["more"]
        self.engine.extend(self.schema())

    @rule()
    def every_event_is_counted_once(self) -> None:
        assert self.engine.matcher.tally.events == self.events
        self.engine.check()


@pytest.mark.parametrize("unknown", [None, "ignore", "refuse"])
def test_single_events_between_changes(unknown: str | None) -> None:
    kind = type("Machine", (Machine,), {"unknown": unknown})
    run_machine(kind, examples=10, steps=20)
