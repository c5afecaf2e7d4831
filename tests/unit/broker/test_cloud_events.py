"""CloudEvents: the SDK of the project is the oracle of what is read and written."""

from __future__ import annotations

import json
import string
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cloudevents.core.bindings import http as sdk
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.broker.cloud_events.context_attributes import ContentTypeError
from tamis.broker.cloud_events.write_cloud_event import StoredEvent, cloud_event
from tamis.broker.incoming import IncomingEvent, prepare_events
from tamis.broker.sequence.requests import PublishedEvent
from tamis.errors import EventError
from tamis.model.schema import Schema
from tamis.service.bodies import events_in

PLAIN = Schema.from_dict({"attributes": {"price": "decimal"}})
SEEN = Schema.from_dict(
    {
        "attributes": {
            "price": "decimal",
            "ce.source": "text",
            "ce.subject": "text",
            "ce.time": "timestamp",
            "ce.level": "integer",
        },
        "event_types": {
            "offer": {"price": "optional", "ce.source": "optional", "ce.level": "optional"},
            "sale": {"price": "optional", "ce.subject": "mandatory", "ce.time": "optional"},
        },
    }
)
OPEN = Schema.open()
APPENDED = datetime(2030, 1, 2, tzinfo=UTC)


def read(message: sdk.HTTPMessage) -> IncomingEvent:
    """What the service reads from an HTTP message."""
    headers = [(k.lower().encode(), v.encode("latin-1")) for k, v in message.headers.items()]
    (event,) = events_in(message.body, headers)
    return event


def prepared(event: IncomingEvent, schema: Schema = PLAIN) -> PublishedEvent:
    (found,) = prepare_events([event], schema, 1 << 20, 1000)
    return found


def stored(event: PublishedEvent, number: int = 7) -> StoredEvent:
    time = None
    if event.time is not None:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=event.time)
    parts = (event.text, event.source, event.id, time, event.envelope)
    return StoredEvent(number, *parts, APPENDED, "abc")


def structured(members: dict[str, Any]) -> sdk.HTTPMessage:
    headers = {"content-type": "application/cloudevents+json"}
    return sdk.HTTPMessage(headers, json.dumps(members).encode())


def an_event(**more: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "1", "source": "/shop", "type": "offer", **more}


# -- what the SDK writes, we read; what we write, the SDK reads ------------------------------------

_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=20).filter(
    lambda name: name not in ("data", "time", "datacontenttype", "specversion", "id", "type")
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)
_attributes = st.fixed_dictionaries(
    {"id": _texts, "source": _texts, "type": _texts},
    optional={
        "subject": _texts,
        "dataschema": _texts,
        "datacontenttype": st.sampled_from(
            ["application/json", "application/vnd.shop+json", "application/json; charset=utf-8"]
        ),
        "time": st.datetimes(timezones=st.just(UTC)),
    },
)
_extensions = st.dictionaries(_names, _texts, max_size=3)
_members = _texts.filter(lambda name: name not in ("ce", "price", "event_type"))
_data = st.none() | st.dictionaries(_members, _values, max_size=4)


@settings(max_examples=300)
@given(_attributes, _extensions, _data, st.booleans(), st.sampled_from([PLAIN, OPEN]))
def test_an_event_of_the_sdk_comes_back_equal(
    attributes: dict[str, Any],
    extensions: dict[str, Any],
    data: dict[str, Any] | None,
    binary: bool,
    schema: Schema,
) -> None:
    event = CloudEvent({**extensions, **attributes}, data)
    message = (sdk.to_binary_event if binary else sdk.to_structured_event)(event)
    inside = prepared(read(message), schema)
    written = msgspec.json.encode(cloud_event(stored(inside)))
    again = sdk.from_http_event(structured(json.loads(written)))
    assert again.get_attributes() == event.get_attributes()
    assert again.get_data() == event.get_data()


@settings(max_examples=100)
@given(_data)
def test_bytes_that_are_json_are_data(data: dict[str, Any] | None) -> None:
    """`data_base64` of the SDK: the bytes of a JSON text."""
    encoded = json.dumps(data or {}).encode()
    event = CloudEvent({"id": "1", "source": "/shop", "type": "offer"}, encoded)
    inside = read(sdk.to_structured_event(event))
    assert json.loads(inside.text) == (data or {})


def test_numbers_of_the_data_stay_as_they_are_written() -> None:
    body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data": {"price": 1.50e1 } }'
    (event,) = events_in(body, [(b"content-type", b"application/cloudevents+json")])
    inside = prepared(event, OPEN)
    assert '"price": 1.50e1' in inside.text
    assert b'"price":1.50e1' in msgspec.json.encode(cloud_event(stored(inside)))


def test_a_batch_is_many_events() -> None:
    body = json.dumps([an_event(id=str(at), data={"price": at}) for at in range(3)]).encode()
    kind = [(b"content-type", b"application/cloudevents-batch+json; charset=utf-8")]
    found = events_in(body, kind)
    assert [each.id for each in found] == ["0", "1", "2"]
    assert [json.loads(each.text) for each in found] == [{"price": at} for at in range(3)]
    assert events_in(b"[]", kind) == []
    bad = json.dumps([an_event(), an_event(id="")]).encode()
    with pytest.raises(EventError, match="event 1: the context attribute 'id'"):
        events_in(bad, kind)


def test_headers_may_be_quoted_and_percent_encoded() -> None:
    headers = {
        "ce-specversion": "1.0",
        "CE-ID": "1",
        "ce-source": "/shop",
        "ce-type": '"offer"',
        "ce-subject": "caf%C3%A9%20%2525",
    }
    event = read(sdk.HTTPMessage(headers, b'{"price": 4}'))
    assert event.envelope == {"specversion": "1.0", "type": "offer", "subject": "café %25"}


# -- what conditions see ---------------------------------------------------------------------------


def members(schema: Schema, **more: Any) -> Any:
    return json.loads(prepared(read(structured(an_event(**more))), schema).text)


def test_a_schema_without_context_sees_only_the_data() -> None:
    assert members(PLAIN, type="com.shop.offer", subject="x", data={"price": 4}) == {"price": 4}


def test_the_type_and_known_attributes_are_members() -> None:
    """Those of the view of the event type, and no others."""
    found = members(SEEN, subject="x", level=3, unknown="y", data={"price": 4})
    assert found == {"event_type": "offer", "ce": {"source": "/shop", "level": 3}, "price": 4}
    time = "2030-01-02T12:00:00.5+02:00"
    found = members(SEEN, type="sale", subject="x", time=time, data={})
    assert found == {
        "event_type": "sale",
        "ce": {"subject": "x", "time": "2030-01-02T10:00:00.500000Z"},
    }


def test_a_header_can_write_numbers_only_as_text() -> None:
    headers = {f"ce-{name}": str(value) for name, value in an_event(level=3).items()}
    inside = prepared(read(sdk.HTTPMessage(headers, b"{}")), SEEN)
    assert json.loads(inside.text)["ce"] == {"source": "/shop", "level": 3}
    assert cloud_event(stored(inside))["level"] == "3"  # as it came


def test_an_open_schema_sees_everything() -> None:
    assert members(OPEN, subject="x", extra=True, data={"a": 1}) == {
        "event_type": "offer",
        "ce": {"source": "/shop", "id": "1", "type": "offer", "subject": "x", "extra": True},
        "a": 1,
    }


def test_the_event_type_of_the_data_wins() -> None:
    found = members(SEEN, type="other", data={"event_type": ["sale", "offer"]}, subject="x")
    assert found["event_type"] == ["sale", "offer"]
    assert found["ce"] == {"source": "/shop", "subject": "x"}


def test_an_unknown_type_is_refused_or_ignored_as_the_schema_says() -> None:
    with pytest.raises(EventError, match=r"unknown event type 'ofer'.*'offer'"):
        members(SEEN, type="ofer")
    assert members(PLAIN, type="ofer") == {}


def test_data_must_not_hide_the_context() -> None:
    with pytest.raises(EventError, match="member 'ce'"):
        members(SEEN, data={"ce": 1})
    assert members(PLAIN, data={"ce": 1}) == {"ce": 1}


def test_no_data_is_not_empty_data() -> None:
    for data, there in (({"data": None}, False), ({}, False), ({"data": {}}, True)):
        for schema in (PLAIN, SEEN, OPEN):
            inside = prepared(read(structured(an_event(**data))), schema)
            assert ("data" in cloud_event(stored(inside))) is there


def test_an_event_that_came_as_json_gets_an_envelope() -> None:
    written = cloud_event(stored(PublishedEvent('{"price": 4, "event_type": ["sale"]}')))
    assert json.loads(msgspec.json.encode(written)) == {
        "specversion": "1.0",
        "id": "7",
        "source": "urn:tamis:log:abc",
        "type": "sale",
        "time": "2030-01-02T00:00:00Z",
        "datacontenttype": "application/json",
        "data": {"price": 4, "event_type": ["sale"]},
    }
    assert cloud_event(stored(PublishedEvent("{}")))["type"] == "tamis.event"


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "attribute"),
    [
        ({"specversion": None}, "specversion"),
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": 1.0}, "specversion"),
        ({"id": None}, "id"),
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"source": ""}, "source"),
        ({"type": None}, "type"),
        ({"subject": ""}, "subject"),
        ({"subject": 5}, "subject"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2030-01-02T10:00:00"}, "time"),
        ({"time": 5}, "time"),
        ({"datacontenttype": ""}, "datacontenttype"),
        ({"Upper": "x"}, "Upper"),
        ({"with_underscore": "x"}, "with_underscore"),
        ({"level": 1.5}, "level"),
        ({"level": 2**31}, "level"),
        ({"level": {"a": 1}}, "level"),
        ({"data": [1]}, "data"),
        ({"data": "text"}, "data"),
        ({"data_base64": "%%%"}, "data_base64"),
        ({"data_base64": "e30=", "data": {}}, "data_base64"),
        ({"data_base64": "MQ=="}, "data"),
    ],
)
def test_a_broken_rule_is_named(wrong: dict[str, Any], attribute: str) -> None:
    with pytest.raises(EventError) as refused:
        read(structured(an_event(**wrong)))
    assert refused.value.attribute == attribute


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/x-ndjson", "json"])
def test_data_that_is_not_json_is_refused(kind: str) -> None:
    with pytest.raises(ContentTypeError):
        read(structured(an_event(datacontenttype=kind, data="x")))
    headers = {f"ce-{name}": str(value) for name, value in an_event().items()}
    with pytest.raises(ContentTypeError):
        read(sdk.HTTPMessage({**headers, "content-type": kind}, b"x"))


@pytest.mark.parametrize("missing", ["specversion", "id", "source", "type"])
def test_a_header_that_is_missing_is_named(missing: str) -> None:
    headers = {f"ce-{name}": str(value) for name, value in an_event().items()}
    del headers[f"ce-{missing}"]
    with pytest.raises(EventError) as refused:
        read(sdk.HTTPMessage(headers, b"{}"))
    assert refused.value.attribute == missing


def test_headers_that_are_not_utf_8_or_there_twice_are_refused() -> None:
    headers = [(f"ce-{name}".encode(), value.encode()) for name, value in an_event().items()]
    with pytest.raises(EventError, match="ce-subject is not percent-encoded"):
        events_in(b"{}", [*headers, (b"ce-subject", b"%ff")])
    with pytest.raises(EventError, match="ce-id is there twice"):
        events_in(b"{}", [*headers, (b"ce-id", b"2")])


def test_an_attribute_that_is_not_utf_8_is_refused() -> None:
    body = json.dumps(an_event()).encode().replace(b'"1.0"', b'"1.\xff"')
    for sent, kind in ((body, b"cloudevents"), (b"[" + body + b"]", b"cloudevents-batch")):
        with pytest.raises(EventError, match="specversion"):
            events_in(sent, [(b"content-type", b"application/" + kind + b"+json")])
