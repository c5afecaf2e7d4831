"""Saving and opening at random moments changes nothing that anybody can see."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from tamis.engine import Engine
from tamis.engine.engine import DEFAULT
from tamis.errors import NeverTrueError
from tamis.model.condition import Condition
from tamis.model.printer import to_text
from tamis.testing import cases
from tamis.testing.state_machine import conditions, events
from tests.running import run_machine
from tests.unit.engine.world import expected


def _machine(matcher: str) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.folder = tempfile.TemporaryDirectory()
            self.engine = Engine(cases.SCHEMA, matcher)
            self.live: dict[Any, Condition] = {}
            self.made = 0

        def teardown(self) -> None:
            self.folder.cleanup()

        @rule(condition=conditions(), text=st.booleans(), number=st.booleans())
        def subscribe(self, condition: Condition, text: bool, number: bool) -> None:
            self.made += 1
            id = 10_000 + self.made if number else f"id {self.made}"
            try:
                self.engine.subscribe(to_text(condition) if text else condition, id=id, stored=True)
                self.live[id] = condition
            except NeverTrueError:
                assert id not in self.live

        @rule(condition=conditions())
        def subscribe_without_id(self, condition: Condition) -> None:
            try:
                id = self.engine.subscribe(condition)
            except NeverTrueError:
                return
            assert id not in self.live
            self.live[id] = condition

        @rule(asked=st.lists(conditions(), max_size=4), numbers=st.booleans())
        def subscribe_table(self, asked: list[Condition], numbers: bool) -> None:
            rows: dict[Any, Condition] = {}
            for condition in asked:
                self.made += 1
                rows[10_000 + self.made if numbers else f"id {self.made}"] = condition
            table = {"id": list(rows), "condition": [to_text(each) for each in rows.values()]}
            if not rows:
                return
            try:
                self.engine.subscribe_table(pa.table(table), stored=True)  # pitfalls and all
                self.live |= rows
            except NeverTrueError:
                pass

        @precondition(lambda self: self.live)
        @rule(data=st.data())
        def unsubscribe(self, data: st.DataObject) -> None:
            id = data.draw(st.sampled_from(list(self.live)))
            self.engine.unsubscribe(id)
            del self.live[id]

        @rule(verify=st.booleans())
        def save_and_open(self, verify: bool) -> None:
            folder = Path(self.folder.name) / "index"
            self.engine.save(folder, replace=True)
            self.engine = Engine.open(folder, verify=verify)

        @rule(batch=st.lists(events(), min_size=1, max_size=4))
        def match(self, batch: list[dict[str, Any]]) -> None:
            for event, got in zip(batch, self.engine.match_batch(batch), strict=True):
                assert len(got) == len(set(got))
                assert set(got) == expected(self.live, event, cases.SCHEMA)

        @precondition(lambda self: self.live)
        @rule(data=st.data())
        def look_up(self, data: st.DataObject) -> None:
            id = data.draw(st.sampled_from(list(self.live)))
            assert id in self.engine
            assert self.engine.condition(id) == to_text(self.live[id])

        @invariant()
        def as_many_as_there_are(self) -> None:
            assert len(self.engine) == len(self.live)

        @rule()
        def check(self) -> None:
            assert self.engine.ids() == list(self.live)
            self.engine.check()

    return Machine


@pytest.mark.parametrize("matcher", dict.fromkeys((DEFAULT, "tamis", "scan")))
@pytest.mark.slow
def test_saving_changes_nothing(matcher: str) -> None:
    run_machine(_machine(matcher), examples=20, steps=30)
