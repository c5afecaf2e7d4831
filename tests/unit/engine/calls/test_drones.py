"""The five subscriptions of the paper on operators, through an engine with the real packs."""

from __future__ import annotations

import pytest

from tamis import Engine, Schema, schedulers
from tamis.language import parse
from tamis.model import semantics
from tamis.workload import drones

pytest.importorskip("cv2")
pytest.importorskip("shapely")

EVENTS = 120


@pytest.mark.slow
def test_the_papers_subscriptions_match_what_the_definition_says() -> None:
    from tests.unit.workload.test_drones import OPERATORS

    schema = Schema.from_dict(drones.schema())
    events = drones.make(1, seed=4).events(EVENTS)
    plain = [{k: v for k, v in row.items() if v is not None} for row in events.to_pylist()]
    wanted = [
        {
            name
            for name, text in drones.SUBSCRIPTIONS.items()
            if semantics.satisfies(parse(text), event, schema, OPERATORS)
        }
        for event in plain
    ]
    assert any(wanted)
    for name in schedulers():
        engine = Engine(schema, operators=drones.operators(), scheduler=name)
        for id, text in drones.SUBSCRIPTIONS.items():
            engine.subscribe(text, id=id)
        assert [set(answer) for answer in engine.match_batch(events)] == wanted
        report = engine.report()
        assert sum(count.faults for count in report) == 0
