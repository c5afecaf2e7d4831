"""CloudEvents and the verbs of the schema, on a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cloudevents.core.bindings import http as sdk
from cloudevents.core.v1.event import CloudEvent

from tests.integration.service.test_http import notified, subscribe
from tests.serving import serving

STRUCTURED = "application/cloudevents+json"
JSON = {"Content-Type": "application/json"}
BATCH = "application/cloudevents-batch+json"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with serving(tmp_path_factory.mktemp("events") / "data") as (client, _):
        yield client


def published(client: httpx2.Client, message: sdk.HTTPMessage) -> dict[str, Any]:
    answer = client.post("/v1/events", content=message.body, headers=message.headers)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def an_event(id: str, **more: Any) -> CloudEvent:
    attributes = {"id": id, "source": "/shop", "type": "com.shop.offer", **more}
    return CloudEvent(attributes, {"price": 4, "title": "oak"})


def extended(client: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"/v1/schema/{path}", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_all_modes_publish_the_same_event_once(client: httpx2.Client) -> None:
    """The three modes, and the SDK reads what comes back."""
    event = an_event("modes", subject="caf\u00e9 table", level="3")
    first = published(client, sdk.to_binary_event(event))
    assert first == {"first": first["first"], "count": 1, "duplicates": 0}
    again = published(client, sdk.to_structured_event(event))
    assert again == {"first": first["first"], "count": 1, "duplicates": 1}
    batch = b"[" + sdk.to_structured_event(event).body + b"]"
    third = client.post("/v1/events", content=batch, headers={"Content-Type": BATCH})
    assert third.json() == again
    path = f"/v1/events/{first['first']}"
    plain = client.get(path)
    assert plain.headers["content-type"] == "application/json"
    assert plain.json() == {"price": 4, "title": "oak"}
    back = client.get(path, headers={"Accept": STRUCTURED})
    assert back.headers["content-type"] == STRUCTURED
    message = sdk.HTTPMessage({"content-type": STRUCTURED}, back.content)
    assert sdk.from_http_event(message).get_attributes() == event.get_attributes()
    assert sdk.from_http_event(message).get_data() == event.get_data()


def test_plain_json_is_a_cloud_event_for_those_who_want_one(client: httpx2.Client) -> None:
    number = client.post("/v1/events", json={"price": 9}).json()["first"]
    back = client.get(f"/v1/events/{number}", headers={"Accept": STRUCTURED}).json()
    assert back["id"] == str(number)
    assert back["data"] == {"price": 9}
    assert back["source"].startswith("urn:tamis:log:")


def test_conditions_see_context_attributes_from_their_declaration_on(
    client: httpx2.Client,
) -> None:
    """The schema is extended over HTTP; the next publish and the next subscribe know it."""
    refused = client.post("/v1/subscriptions", json={"condition": "ce.subject = desk"})
    assert refused.status_code == 400
    before = client.get("/v1/schema").json()["version"]
    created = extended(client, "attributes", {"name": "ce.subject", "domain": "text"})
    assert created["version"] == before + 1
    extended(client, "event-types/event/attributes", {"attribute": "ce.subject"})
    lease = subscribe(client, "ce.subject = desk and price < 5")
    for subject in ("desk", "chair"):
        published(client, sdk.to_binary_event(an_event(f"seen {subject}", subject=subject)))
    # To conditions, plain JSON with the same members is the same event.
    client.post("/v1/events", json={"price": 1, "ce": {"subject": "desk"}})
    found: list[Any] = []
    cursor = -1
    while len(found) < 2:
        page = notified(client, lease, cursor)
        found += page["notifications"]
        cursor = page["cursor"]
    assert [each["event"] for each in found] == [
        {"ce": {"subject": "desk"}, "price": 4, "title": "oak"},
        {"price": 1, "ce": {"subject": "desk"}},
    ]
    sent = client.get(f"/v1/events/{found[0]['sequence']}", headers={"Accept": STRUCTURED})
    assert sent.json()["data"] == {"price": 4, "title": "oak"}
    assert sent.json()["subject"] == "desk"


@pytest.mark.parametrize(
    ("headers", "body", "status", "attribute"),
    [
        ({"Content-Type": STRUCTURED}, b"{}", 400, "specversion"),
        ({"Content-Type": STRUCTURED}, b"[1]", 400, None),
        ({"Content-Type": BATCH}, b"{}", 400, None),
        ({"Content-Type": "application/cloudevents+avro"}, b"{}", 415, None),
        ({"Content-Type": "text/plain"}, b"{}", 415, None),
        ({"ce-id": "1"}, b"{}", 400, "specversion"),
        (
            {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/", "ce-type": "a",
             "Content-Type": "text/plain"},
            b"hello", 415, "datacontenttype",
        ),
    ],
)  # fmt: skip
def test_a_bad_cloud_event_is_a_problem(
    client: httpx2.Client,
    headers: dict[str, str],
    body: bytes,
    status: int,
    attribute: str | None,
) -> None:
    answer = client.post("/v1/events", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json().get("attribute") == attribute


def test_events_that_are_not_there(client: httpx2.Client) -> None:
    lease = subscribe(client, "price < 5")
    assert client.get(f"/v1/events/{lease['id']}").status_code == 404  # a change, not an event
    assert client.get("/v1/events/999999").status_code == 404
    assert client.get(f"/v1/events/{2**63}").status_code == 422


def test_the_five_extensions_and_what_they_refuse(client: httpx2.Client) -> None:
    state = {"kind": "enumerated", "values": ["new", "used"], "order": [["used", "new"]]}
    first = extended(client, "domains", {"name": "state", "domain": state})
    second = extended(client, "attributes", {"name": "state", "domain": "state"})
    assert second["sequence"] > first["sequence"]
    extended(client, "event-types/event/attributes", {"attribute": "state"})
    extended(client, "event-types", {"name": "sale", "attributes": {"price": "mandatory"}})
    lease = subscribe(client, "state < new")
    bad = client.post("/v1/events", json={"state": "broken"})
    assert bad.status_code == 400
    grown = extended(client, "domains/state/values", {"values": ["broken"], "order": [
        ["broken", "used"]]})  # fmt: skip
    good = client.post("/v1/events", json={"state": "broken"})
    assert good.json()["first"] > grown["sequence"]
    assert notified(client, lease, -1)["notifications"][0]["event"] == {"state": "broken"}
    assert client.post("/v1/events", json={"event_type": "sale"}).status_code == 400
    for path, body, rule in (
        ("domains", {"name": "state", "domain": state}, "create-domain"),
        ("attributes", {"name": "a", "domain": "unheard"}, "create-attribute"),
        ("event-types/sale/attributes", {"attribute": "price"}, "extend-event-type"),
        (
            "event-types/sale/attributes",
            {"attribute": "title", "use": "mandatory"},
            "extend-event-type",
        ),
        ("event-types", {"name": "sale", "attributes": {}}, "create-event-type"),
        ("domains/state/values", {"values": ["x"], "order": [["new", "used"]]}, "grow-domain"),
        ("domains/price/values", {"values": ["x"]}, "grow-domain"),
        ("attributes", {"name": "\ud800", "domain": "text"}, "create-attribute"),
    ):
        answer = client.post(f"/v1/schema/{path}", content=json.dumps(body), headers=JSON)
        assert answer.status_code == 400, (path, answer.text)
        assert answer.json()["rule"] == rule
        assert answer.json()["type"] == "urn:tamis:problem:schema"


def test_publishers_read_events_and_extend_the_schema(tmp_path: Path) -> None:
    """Subscribers do not."""
    with serving(tmp_path / "data", "--keys") as (client, _):
        command = [sys.executable, "-m", "tamis.cli.main", "keys", "create", str(tmp_path / "data")]
        statuses = {}
        for role in ("publisher", "subscriber", "admin"):
            key = subprocess.run(
                [*command, "--name", role, "--role", role],
                check=True, capture_output=True, text=True,
            ).stdout.strip()  # fmt: skip
            bearer = {"Authorization": f"Bearer {key}"}
            client.post("/v1/events", json={"price": 9}, headers=bearer)
            made = {"name": f"of_{role}", "domain": "text"}
            statuses[role] = (
                client.get("/v1/events/0", headers=bearer).status_code,
                client.post("/v1/schema/attributes", json=made, headers=bearer).status_code,
                client.get("/v1/schema", headers=bearer).status_code,
            )
        assert statuses == {
            "publisher": (200, 201, 200),
            "subscriber": (403, 403, 200),
            "admin": (200, 201, 200),
        }
