"""CESQL means here what it means in the Java library, on generated expressions and events.

TAMIS_CESQL is the number of pairs; `make soak CAMPAIGNS=cesql` asks for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tamis import Engine
from tamis.errors import ConditionError, NeverTrueError
from tamis.model.schema import Schema
from tests.campaign import campaign
from tests.cesql_expressions import TYPED, ExpressionMaker, random_attributes
from tests.java_cesql import JavaCesql

PAIRS = int(os.environ.get("TAMIS_CESQL", "4000"))
EXPRESSIONS, EVENTS = 50, 40  # of a round
STRUCTURED = dict.fromkeys(("id", "source", "type"), "text") | TYPED


@pytest.fixture
def java() -> Iterator[JavaCesql]:
    made = JavaCesql()
    yield made
    made.close()


def engines() -> Iterator[tuple[bool, str, Engine]]:
    """Whether a schema gives attributes a type, the object they are in, and an engine."""
    while True:
        for within in ("", "ce"):
            yield False, within, Engine()
            names = {f"{within}.{name}" if within else name: kind
                     for name, kind in STRUCTURED.items()}  # fmt: skip
            yield True, within, Engine(Schema.from_dict({"attributes": names}))


@pytest.mark.slow
@pytest.mark.skipif(JavaCesql.missing() is not None, reason=str(JavaCesql.missing()))
def test_expressions_match_what_the_java_library_says(java: JavaCesql) -> None:
    matches = refused = 0
    rounds = engines()
    with campaign("cesql") as running:
        make = ExpressionMaker(running.draw).expression
        while running.tried < PAIRS:
            typed, within, engine = next(rounds)
            expressions = [make() for _ in range(EXPRESSIONS)]
            events = [random_attributes(running.draw, typed) for _ in range(EVENTS)]
            refusals: dict[int, ConditionError] = {}
            for number, expression in enumerate(expressions):
                try:
                    engine.subscribe(expression, id=number, language="cesql")
                except ConditionError as error:
                    refusals[number] = error
            shown = [{within: event} if within else event for event in events]
            found = [set(ids) for ids in engine.match_batch(shown)]
            for number, right in enumerate(java.answers(expressions, events)):
                expression = expressions[number]
                assert right is not None, f"refused by the library: {expression}"
                if number in refusals and not isinstance(refusals[number], NeverTrueError):
                    said = str(refusals[number])
                    assert "no condition of tamis means" in said or "a filter is" in said, said
                    refused += 1
                    continue
                for event, wanted, ids in zip(events, right, found, strict=True):
                    assert (number in ids) == wanted, (
                        f"the library says {wanted}: {expression} on {event}; as a condition: "
                        f"{refusals.get(number) or engine.condition(number)}"
                    )
                running.tried += len(events)
                matches += sum(right)
    assert matches > running.tried / 20, "some match"
    assert refused < running.tried / EVENTS, "most expressions are conditions"
