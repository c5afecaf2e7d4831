"""Single events: an interrupt in their match leaves nothing behind that the next one trips over."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tamis import Engine, Schema
from tamis.encode.shapes.event_shapes import EventShapes
from tamis.encode.shapes.shape_code import EventShape
from tamis.match.default.matcher import Tamis
from tamis.match.default.single_events import SingleEvents
from tamis.match.default.workers import MatchWorker
from tests.unit.engine.interrupting import interrupt

NAMES = [f"a{number}" for number in range(300)]
SHORT, LONG = {"a0": 0, "a1": 0}, dict.fromkeys(NAMES, 1)
MANY = 1500
TRIED = 40  # interrupts


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine(Schema.from_dict({"attributes": dict.fromkeys(NAMES, "integer")}))
    for number in range(MANY):
        engine.subscribe(f"a1 = 1 and a{number % 100} >= 0", id=number)
    for number in range(3):
        engine.subscribe(f"a0 = 0 and a1 > {-1 - number}")
    engine.match_batch([SHORT, LONG])
    return engine


def shape_of(engine: Engine, event: dict[str, int]) -> EventShape:
    shapes = EventShapes(engine.encoder)
    shapes.encode(event)
    shape = shapes.encode(event)
    assert shape is not None
    return shape


def test_an_interrupt_leaves_no_stale_address(engine: Engine) -> None:
    matcher = engine.matcher
    assert isinstance(matcher, Tamis)
    short, long = shape_of(engine, SHORT), shape_of(engine, LONG)

    def begun() -> SingleEvents:
        assert matcher._index is not None
        singles = SingleEvents(MatchWorker())
        singles.renew(matcher._index, matcher.clauses)
        singles.match(short)
        return singles

    steps = interrupt(partial(begun().match, long), 1 << 60)
    for after in range(1, steps, steps // TRIED):
        singles = begun()
        interrupt(partial(singles.match, long), after)
        for shape, slots in ((short, range(MANY, MANY + 3)), (long, range(MANY))):
            assert np.array_equal(np.sort(singles.match(shape)), slots), f"bytecode {after}"
