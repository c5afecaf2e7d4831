"""What `now` and durations mean, how they are written, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Schema, parse
from tamis.errors import ConditionError, EventError
from tamis.language import to_text
from tamis.model.condition import (
    Arithmetic,
    AttributeValue,
    Comparison,
    Duration,
    Now,
    Predicate,
    Word,
)
from tamis.model.explain import explain
from tamis.model.semantics import satisfies
from tamis.model.times.durations import UNITS, duration_text, read_duration
from tamis.model.times.moments import mentions_now, read_moment, with_now

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            **dict.fromkeys(("at", "opens", "closes"), "timestamp"),
            "title": "text",
            "number": "integer",
            "any": "dynamic",
            "state": {"kind": "enumerated", "values": ["now", "later"]},
            "items": {"kind": "structs", "attributes": {"due": "timestamp"}},
        },
        "event_types": {
            "event": dict.fromkeys(("at", "opens", "closes"), "optional multiple")
            | dict.fromkeys(("title", "number", "any", "state", "items"), "optional")
        },
    }
)
NOW = "2026-01-31T12:00:00Z"
EVENT = {
    "at": "2026-01-31T11:00:00.000001Z",
    "opens": "2026-01-31T08:00:00Z",
    "closes": "2026-01-31T10:00:00Z",
    "title": "now",
    "state": "now",
    "any": "now",
    "items": [{"due": "2026-01-31T12:00:00.000001Z"}, {}],
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("at > now - 1h", True),
        ("at > now - 60min", True),
        ("at > now - 3599999999us", False),
        ("at >= now - 3599999999us", True),
        ("not at > now - 1h", False),
        ("at < NOW", True),
        ("at = now", False),
        ("at != now", True),
        ("now - @at < 1h", True),
        ("@at - now > -1h", True),
        ("1h > now - @at", True),
        ("@closes - @opens = 2h", True),
        ("@closes - @opens = 120min", True),
        ("@closes - @opens < 1d - 22h", False),
        ("closes <= @opens + 0.5h + 90min", True),
        ("closes <= 2h + @opens", True),
        ("-(@opens - @closes) >= 2h", True),
        ("@closes - now < now - @at - 4h", False),
        ("@closes - now < -1h", True),
        ("some i in items (i.due > now)", True),
        ("some i in items (i.due > now + 1us)", False),
        ("not some i in items (i.due < now)", True),
        ("at > now - 15250284w", True),
        # `now` is a word elsewhere.
        ("title = now and state = now and any = now", True),
        ("title in (now, later)", True),
        ('title > "now - 1h"', False),
        ("any > 5 or any = now", True),
        # An attribute that is not bound has no age.
        ("number missing and not (at > now or at < now - 2h)", True),
    ],
)
def test_truth(text: str, holds: bool) -> None:
    condition = parse(text, SCHEMA)
    assert satisfies(condition, EVENT, SCHEMA, now=NOW) is holds
    assert satisfies(parse(text), EVENT, SCHEMA, now=NOW) is holds  # not resolved yet
    assert satisfies(parse(to_text(condition), SCHEMA), EVENT, SCHEMA, now=NOW) is holds
    assert explain(parse(text), EVENT, SCHEMA, moment=read_moment(NOW)).holds is holds


@pytest.mark.parametrize("text", ["at < now", "not at < now - 1h", "@at - now < 1h", "at != now"])
def test_unbound_is_false(text: str) -> None:
    assert not satisfies(parse(text), {}, SCHEMA, now=NOW)


def test_one_value_for_all() -> None:
    event = {"at": ["2026-01-31T11:30:00Z", "2026-01-31T09:00:00Z"]}
    both = "at > now - 1h and at < 2026-01-31T10:00Z"
    assert not satisfies(parse(both), event, SCHEMA, now=NOW)
    assert satisfies(parse("at > now - 1h and at > 2026-01-31T10:00Z"), event, SCHEMA, now=NOW)
    assert satisfies(parse("at < now - 1h"), event, SCHEMA, now=NOW)


def test_without_a_moment_it_is_refused() -> None:
    for text in ("at > now", "at > now - 1h", "some i in items (i.due < now)"):
        with pytest.raises(ConditionError, match="give the moment"):
            satisfies(parse(text), EVENT, SCHEMA)
    assert satisfies(parse("@closes - @opens = 2h"), EVENT, SCHEMA)


def test_an_explanation_shows_the_moment() -> None:
    shown = str(explain(parse("at > now - 1min"), EVENT, SCHEMA, moment=read_moment(NOW)))
    assert shown == (
        "does not match\n"
        "  no   at > now - 1min: at is 2026-01-31T11:00:00.000001+00:00 and "
        "now is 2026-01-31T12:00:00+00:00"
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("at < 1h", "compared with a difference", "now - 2h"),
        ("number < 5min", "compared with a difference", ""),
        ("number > now - 1h", "@number is a number, but now - 1h is timestamp", ""),
        ("at > now - 5", "no meaning", "as in 30min"),
        ("at > now * 2", "no meaning", "write the product"),
        ("2 * 3h < @at - now", "no meaning", "write the product"),
        ("@at + @at > 1h", "no meaning", "a time minus a time is a duration"),
        ("@at - 2026-01-01 > 1h", "no meaning", "times are attributes and now"),
        ("@closes - @opens < 5", "is duration, but 5 is a number", "as in 30min"),
        ("@closes - @opens < now", "is duration, but now is timestamp", "with a duration"),
        ("at > now - 1m", "not a number", "30min"),
        ("at > now - 2 hours", "expected 'and' or 'or'", ""),
        ("at > now - 1.0000001s", "whole number of microseconds", ""),
        ("at > now - 99999999999999w", "in 64 bits", ""),
        ("at between now - 1h and now", "are constants", "two comparisons"),
        ("at in (now)", "not an ISO 8601", "now is compared by"),
        ("any > now - 1h", "timestamp is not compared with a dynamic", "declare it as a timestamp"),
        ("@any - @any > 1h", "is duration", "declare it as a timestamp"),
        ("any > now", "not the moment", "declare it as a timestamp"),
        ("title > now - 1h", "@title is text", ""),
        ("?x < 1h", "a variable cannot be compared", ""),
        ("at > `now` - 1h", "not a number", "@now"),
        ("now < at", "unknown attribute 'now'", ""),
        ("1h < 2h", "constants only", ""),
    ],
)
def test_refusals(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConditionError) as refused:
        parse(text, SCHEMA)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")


def test_an_attribute_may_be_called_now() -> None:
    schema = Schema.from_dict({"attributes": {"now": "timestamp", "at": "timestamp"}})
    event = {"now": "2026-01-01", "at": "2026-01-02"}
    for text, holds in (
        ("now < 2026-01-02", True),
        ("now < @at", True),
        ("at > @now + 1d", False),
        ("at > @now + 23h", True),
        ("@now - @at < 0s", True),
        ("now exists and at < now - 20d", True),
    ):
        assert satisfies(parse(text, schema), event, schema, now=NOW) is holds, text


def test_a_word_stays_a_word() -> None:
    assert parse("at > now") == Predicate("at", ">", Word("now"))
    for text in ("title = now", "state != now", "any = now", "title starts with now"):
        assert with_now(parse(text), SCHEMA) == parse(text)
        assert not mentions_now(parse(text, SCHEMA))
    assert parse("at > now", SCHEMA) == Comparison(AttributeValue("at"), ">", Now())
    with pytest.raises(ConditionError):  # quoted, it is text
        parse('at > "now"', SCHEMA)


@given(st.integers(1 - 2**63, 2**63 - 1) | st.sampled_from([1 - 2**63, 2**63 - 1]))
def test_durations_are_read_as_they_are_written(microseconds: int) -> None:
    text = duration_text(microseconds)
    given = Comparison(Arithmetic("-", AttributeValue("at"), Now()), "<", Duration(microseconds))
    assert read_duration(text.removeprefix("-")) == abs(microseconds)
    assert parse(to_text(given), SCHEMA) == given


@given(st.integers(0, 10**7), st.sampled_from([*UNITS]), st.integers(0, 3))
def test_fractions_are_exact_or_refused(number: int, unit: str, places: int) -> None:
    text = f"{number // 10**places}.{number % 10**places:0{places}d}{unit}" if places else None
    micros, rest = divmod(number * UNITS[unit], 10**places)
    assert read_duration(text or f"{number}{unit}") == (None if rest else micros)


def test_moments_that_callers_give() -> None:
    expected = read_moment("1970-01-01T00:00:00.000005Z")
    assert expected == 5
    assert read_moment(datetime(1970, 1, 1, 0, 0, 0, 5, UTC).replace(tzinfo=None)) == 5
    assert read_moment(datetime(1970, 1, 1, 0, 0, 0, 5, UTC)) == 5
    for wrong in (5, "yesterday", None, "2026-01-01T00:00:00.0000001Z"):
        with pytest.raises(EventError, match="now: "):
            read_moment(wrong)


@pytest.mark.parametrize("wrong", [2**63, -(2**63), 1.5, True, "1h"])
def test_a_duration_has_64_bits(wrong: object) -> None:
    with pytest.raises(ConditionError):
        Duration(wrong)  # type: ignore[arg-type]
