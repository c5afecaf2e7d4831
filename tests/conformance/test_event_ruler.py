"""Event patterns mean here what they mean in event-ruler, on generated patterns and events.

The rounds take turns with an open and a typed schema.

TAMIS_EVENT_RULER is the number of pairs; `make soak CAMPAIGNS=event-ruler` asks for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import cycle

import pytest

from tamis import Engine
from tamis.errors import ConditionError
from tests.campaign import campaign
from tests.event_patterns import random_event, random_pattern
from tests.event_ruler import EventRuler
from tests.typed_event_patterns import SCHEMA, random_typed_event, random_typed_pattern

PAIRS = int(os.environ.get("TAMIS_EVENT_RULER", "10000"))
PATTERNS, EVENTS = 50, 40  # of a round


@pytest.fixture
def ruler() -> Iterator[EventRuler]:
    made = EventRuler()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.skipif(EventRuler.missing() is not None, reason=str(EventRuler.missing()))
def test_patterns_match_what_event_ruler_says(ruler: EventRuler) -> None:
    matches = refused = 0
    rounds = cycle(
        (
            (None, random_pattern, random_event),
            (SCHEMA, random_typed_pattern, random_typed_event),
        )
    )
    with campaign("event-ruler") as running:
        while running.tried < PAIRS:
            schema, a_pattern, an_event = next(rounds)
            patterns = [a_pattern(running.draw) for _ in range(PATTERNS)]
            events = [an_event(running.draw) for _ in range(EVENTS)]
            engine = Engine(schema)
            accepted: set[int] = set()
            for number, pattern in enumerate(patterns):
                try:
                    engine.subscribe(pattern, id=number, language="eventbridge")
                    accepted.add(number)
                except ConditionError:
                    pass
            found = [set(ids) for ids in engine.match_batch(events)]
            for number, right in enumerate(ruler.answers(patterns, events)):
                pattern = patterns[number]
                assert (number in accepted) == (right is not None), f"refused by one: {pattern}"
                if right is None:
                    refused += 1
                    continue
                for event, wanted, ids in zip(events, right, found, strict=True):
                    assert (number in ids) == wanted, (
                        f"event-ruler says {wanted}: {pattern} on {event}; as a condition: "
                        f"{engine.condition(number)}"
                    )
                running.tried += len(events)
                matches += sum(right)
    assert matches > running.tried / 50, "some match"
    assert refused < running.tried / EVENTS, "most patterns are valid"
