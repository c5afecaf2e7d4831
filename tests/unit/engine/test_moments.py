"""Engines give the answers of `satisfies` for conditions on `now` and durations."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema, parse
from tamis.engine.doors import event_moments
from tamis.errors import EventError, NeverTrueError
from tamis.language import to_text
from tamis.model.condition import (
    COMPLEMENTS,
    And,
    Arithmetic,
    AttributeValue,
    Comparison,
    Condition,
    Duration,
    Not,
    Now,
    Or,
    Predicate,
    Some,
)
from tamis.model.semantics import satisfies
from tamis.model.times.moments import moment_text, read_moment

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            **dict.fromkeys(("at", "until"), "timestamp"),
            "number": "integer",
            "items": {"kind": "structs", "attributes": {"at": "timestamp", "until": "timestamp"}},
        },
        "event_types": {
            "event": {
                "at": "optional multiple",
                "until": "optional multiple",
                "number": "optional",
                "items": "optional",
            }
        },
    }
)
FIRST, LAST = read_moment("0001-01-01"), read_moment("9999-12-31T23:59:59.999999Z")
NOW = "2026-01-31T12:00:00Z"
TEXTS = [
    "at > now - 1h",
    "at < now and number = 1",
    "@until - @at < 2h",
    "@until - now < now - @at",
    "(number = 1 or number = 2) and (at > now - 1h or until < now)",
    "some i in items (i.at > now - 1h)",
    "not some i in items (i.at > now - 1h)",
    "number = 1",
]

# Moments near each other, and at the ends of what a timestamp holds.
moments = st.one_of(
    st.sampled_from([FIRST, FIRST + 1, LAST, LAST - 1, 0, -1, 1]),
    st.integers(-3, 3),
    st.integers(FIRST, LAST),
)
durations = st.builds(
    Duration,
    st.one_of(
        st.integers(-7, 7),
        st.sampled_from([2**63 - 1, 1 - 2**63, LAST - FIRST, FIRST - LAST, FIRST, -FIRST]),
        st.integers(1 - 2**63, 2**63 - 1),
    ),
)
AT, UNTIL, THE_MOMENT = AttributeValue("at"), AttributeValue("until"), Now()


def minus(left: Any, right: Any) -> Arithmetic:
    return Arithmetic("-", left, right)


def sides(length: Duration, other: Duration) -> list[tuple[Any, Any]]:
    """Both sides of comparisons, of one attribute with now and of others."""
    return [
        (AT, minus(THE_MOMENT, length)),
        (AT, Arithmetic("+", Arithmetic("+", THE_MOMENT, length), other)),
        (minus(THE_MOMENT, AT), length),
        (length, minus(AT, THE_MOMENT)),
        (minus(0, minus(THE_MOMENT, AT)), minus(length, other)),
        (AT, THE_MOMENT),
        (minus(AT, THE_MOMENT), Arithmetic("+", length, minus(THE_MOMENT, AT))),
        (minus(UNTIL, AT), length),
        (UNTIL, Arithmetic("+", AT, length)),
        (minus(UNTIL, THE_MOMENT), minus(THE_MOMENT, AT)),
        (minus(minus(AT, AT), length), other),
    ]


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    left, right = draw(st.sampled_from(sides(draw(durations), draw(durations))))
    return Comparison(left, draw(st.sampled_from(sorted(COMPLEMENTS))), right)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    one, other = draw(comparisons()), draw(comparisons())
    date = moment_text(draw(moments))
    whole: list[Condition] = [
        one,
        Not(one),
        And((one, other)),
        Or((one, Not(other))),
        And((one, Predicate("at", ">", date))),
        And((Predicate("number", "=", 1), Or((one, Predicate("at", "missing"))))),
        Some("i", "items", one),
        Not(Some("i", "items", And((one, other)))),
    ]
    return draw(st.sampled_from(whole))


values = st.lists(moments.map(moment_text), min_size=0, max_size=3)
elements = st.fixed_dictionaries(
    {}, optional={"at": moments.map(moment_text), "until": moments.map(moment_text)}
)
events = st.fixed_dictionaries(
    {"number": st.sampled_from([1, 2])},
    optional={"at": values, "until": values, "items": st.lists(elements, max_size=2)},
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(conditions(), min_size=1, max_size=12),
    st.lists(st.tuples(events, moments), min_size=1, max_size=6),
)
def test_answers_are_those_of_the_definition(
    given_conditions: list[Condition], given_events: list[tuple[dict[str, Any], int]]
) -> None:
    engine, live = Engine(SCHEMA, "scan"), {}
    for id, condition in enumerate(given_conditions):
        try:
            engine.subscribe(condition, id=id)
        except NeverTrueError:
            refused = (satisfies(condition, e, SCHEMA, now=moment_text(n)) for e, n in given_events)
            assert not any(refused), to_text(condition)
            continue
        live[id] = condition
    right = [
        {id for id, each in live.items() if satisfies(each, e, SCHEMA, now=moment_text(now))}
        for e, now in given_events
    ]
    one_by_one = [set(engine.match(e, now=moment_text(now))) for e, now in given_events]
    assert one_by_one == right
    checked = [SCHEMA.event(event) for event, _ in given_events]
    batch = engine.encoder.events(checked, np.array([now for _, now in given_events], np.int64))
    assert [set(each) for each in engine.match_batch(batch)] == right
    halves = batch[: len(right) // 2], batch[len(right) // 2 :]
    assert [set(e) for half in halves for e in engine.match_batch(half)] == right
    assert [set(each) for each in engine.match_bitmap(batch)] == right
    engine.check()


def loaded() -> Engine:
    engine = Engine(SCHEMA)
    for text in TEXTS:
        engine.subscribe(text, id=text)
    return engine


def event(number: int, minutes: float) -> dict[str, Any]:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC) - timedelta(minutes=minutes)
    return {
        "number": number,
        "at": moment.isoformat(),
        "until": (moment + timedelta(hours=number)).isoformat(),
        "items": [{"at": moment.isoformat()}, {"until": NOW}],
    }


EVENTS = [event(number, minutes) for number in (1, 2, 3) for minutes in (-1, 0, 59.9, 60, 90, 300)]


def right(now: str) -> list[list[str]]:
    return [
        sorted(text for text in TEXTS if satisfies(parse(text), each, SCHEMA, now=now))
        for each in EVENTS
    ]


def answers(found: Any) -> list[list[str]]:
    return [sorted(each) for each in found]


def test_every_door_and_every_copy(tmp_path: Path) -> None:
    engine, expected = loaded(), right(NOW)
    assert answers(engine.match_batch(EVENTS, now=NOW)) == expected
    assert answers(engine.match_batch(pa.Table.from_pylist(EVENTS), now=NOW)) == expected
    assert answers(engine.match_batch(engine.encode(EVENTS, now=NOW))) == expected
    assert answers(engine.match_bitmap(EVENTS, now=NOW)) == expected
    skipped = engine.match_batch([*EVENTS, {"number": "x"}], bad="skip", now=NOW)
    assert answers(skipped) == [*expected, []]
    assert answers(engine.match(each, now=NOW) for each in EVENTS) == expected
    later = "2026-01-31T13:30:00Z"
    assert answers(engine.match_batch(EVENTS, now=later)) == right(later) != expected
    engine.save(tmp_path / "engine")
    copies = [Engine.open(tmp_path / "engine"), pickle.loads(pickle.dumps(engine))]
    bulk = Engine(SCHEMA)
    bulk.subscribe_table(pa.table({"id": TEXTS, "condition": TEXTS}), stored=True)
    for copy in (*copies, bulk):
        assert answers(copy.match_batch(EVENTS, now=NOW)) == expected
        copy.check()
        for text in TEXTS[:-1]:
            copy.unsubscribe(text)
        assert not event_moments.depends_on_now(copy)
        copy.check()


def test_a_large_table_reads_the_word_as_the_moment() -> None:
    texts = ["at > now", "at <= NOW and number = 1", "number = 2", "at = 2026-01-31T12:00Z"]
    for stored in (False, True):
        engine = Engine(SCHEMA)
        table = pa.table({"id": range(400), "condition": texts * 100})
        engine.subscribe_table(table, stored=stored)
        for each in EVENTS[:6]:
            expected = [satisfies(parse(text), each, SCHEMA, now=NOW) for text in texts]
            found = set(engine.match(each, now=NOW))
            assert found == {id for id in range(400) if expected[id % 4]}


def test_one_moment_for_a_call_and_none_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def clock() -> int:
        calls.append(read_moment(NOW))
        return calls[-1]

    monkeypatch.setattr(event_moments, "clock", clock)
    engine = loaded()
    assert answers(engine.match_batch(EVENTS)) == right(NOW)
    assert len(calls) == 1
    assert answers([engine.match(EVENTS[0])]) == right(NOW)[:1]
    assert answers(engine.match_batch(engine.encode(EVENTS))) == right(NOW)
    calls.clear()
    for text in TEXTS:
        if "now" in text:
            engine.unsubscribe(text)
    engine.match(EVENTS[0])
    engine.match_batch(EVENTS)
    assert not calls


def test_events_without_a_moment_satisfy_nothing_about_it() -> None:
    engine = loaded()
    checked = [SCHEMA.event(each) for each in EVENTS[:2]]
    nothing = np.array([-(2**63), LAST + 1], np.int64)
    found = engine.match_batch(engine.encoder.events(checked, nothing))
    # No element satisfies a condition on now: its negation on the list holds.
    allowed = {"number = 1", "@until - @at < 2h", "not some i in items (i.at > now - 1h)"}
    assert all(set(each) <= allowed for each in found)


def test_moments_that_are_refused() -> None:
    engine = loaded()
    with pytest.raises(EventError, match="now: "):
        engine.match(EVENTS[0], now="soon")
    with pytest.raises(EventError, match="give it to encode"):
        engine.match_batch(engine.encode(EVENTS, now=NOW), now=NOW)
    with pytest.raises(NeverTrueError, match="never true: at > now"):
        engine.subscribe("at > now + 999999w")


def test_an_explanation_is_of_the_moment() -> None:
    engine = loaded()
    for each, found in zip(EVENTS, right(NOW), strict=True):
        for text in TEXTS:
            assert engine.explain(text, each, now=NOW).holds == (text in found)
    assert "now is 2026-01-31T12:00:00+00:00" in str(engine.explain(TEXTS[0], EVENTS[0], now=NOW))
    assert "now is 2" in str(engine.explain(TEXTS[0], EVENTS[0]))
