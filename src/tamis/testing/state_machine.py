"""A state machine for hypothesis: adds, removes and matches, against `satisfies`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.match.base import Matcher
from tamis.model.condition import Condition
from tamis.testing import cases
from tamis.testing.bitmap_checks import same_bits
from tamis.testing.engine_checks import agree
from tamis.testing.saving_checks import restored

T = TypeVar("T")
_GROWN = 5  # versions of the schema


class HypothesisChooser:
    """Choices by hypothesis, which can shrink them."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def pick(self, options: Sequence[T]) -> T:
        found: T = self._draw(st.sampled_from(list(options)))
        return found

    def number(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """Conditions over `cases.SCHEMA`."""
    return cases.condition(HypothesisChooser(draw), depth=2)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Events over `cases.SCHEMA`."""
    return cases.event(HypothesisChooser(draw))


def machine(make: Callable[[], Matcher]) -> type[RuleBasedStateMachine]:
    """The state machine for engines with matchers made by `make`."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.engine = Engine(cases.SCHEMA, make())
            self.live: dict[int, Condition] = {}
            self.gone: list[tuple[int, Condition]] = []

        @rule(condition=conditions())
        def subscribe(self, condition: Condition) -> None:
            before = len(self.engine)
            try:
                self.live[int(self.engine.subscribe(condition))] = condition
            except NeverTrueError:
                assert len(self.engine) == before

        @precondition(lambda self: self.live)
        @rule(data=st.data())
        def unsubscribe(self, data: st.DataObject) -> None:
            id = data.draw(st.sampled_from(sorted(self.live)))
            self.engine.unsubscribe(id)
            self.gone.append((id, self.live.pop(id)))

        @precondition(lambda self: self.gone)
        @rule()
        def subscribe_again(self) -> None:
            id, condition = self.gone.pop()
            if id not in self.live:
                self.engine.subscribe(condition, id=id)
                self.live[id] = condition

        @rule(batch=st.lists(events(), min_size=1, max_size=4))
        def match(self, batch: list[dict[str, Any]]) -> None:
            agree(self.engine, self.live, batch)
            same_bits(self.engine, batch)

        @precondition(lambda self: self.engine.schema.version < _GROWN)
        @rule(data=st.data())
        def grow(self, data: st.DataObject) -> None:
            chooser = HypothesisChooser(data.draw)
            self.engine.extend(cases.grown(chooser, self.engine.schema))
            agree(self.engine, self.live, [cases.event(chooser, self.engine.schema)])

        @rule()
        def pickle(self) -> None:
            self.engine = pickle.loads(pickle.dumps(self.engine))

        @rule()
        def restore(self) -> None:
            self.engine.matcher = restored(self.engine.matcher, make())

        @invariant()
        def invariants_hold(self) -> None:
            assert len(self.engine) == len(self.live)
            self.engine.check()

    return Machine
