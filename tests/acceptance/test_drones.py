"""The drones of the paper, end to end: pictures come in over HTTP, and S1 to S5 are notified."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import yaml

from tamis import Engine, Schema
from tamis.workload import drones
from tests.integration.service.test_http import subscribe
from tests.serving import serving

EVENTS = 150
PACKS = "spatial,vision,drones"


def pictures(count: int) -> list[dict[str, Any]]:
    """Events as a publisher sends them: a picture is base64 in JSON."""
    rows = drones.make(0).events(count).to_pylist()
    found = []
    for row in rows:
        event = {name: value for name, value in row.items() if value is not None}
        event["image"] = base64.b64encode(event["image"]).decode()
        event["time"] = event["time"].isoformat()
        found.append(event)
    return found


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook: its URL, and what it has received."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as http.server calls it
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(json.loads(body)["data"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", received
    finally:
        server.shutdown()
        server.server_close()


def numbers_of(client: httpx2.Client, lease: dict[str, Any], last: int) -> list[int]:
    """The numbers of the events that a subscription was notified of, up to the last event."""
    found: list[int] = []
    headers = {"Tamis-Ticket": lease["ticket"]}
    cursor = -1
    while cursor < last:
        page = client.get(
            f"/v1/subscriptions/{lease['id']}/notifications",
            params={"after": cursor, "wait": 10},
            headers=headers,
        ).json()
        found += [each["sequence"] for each in page["notifications"]]
        cursor = page["cursor"]
    return found


def test_the_subscriptions_of_the_paper_are_notified(tmp_path: Path) -> None:
    """Each by what an engine in this process says."""
    events = pictures(EVENTS)
    schema = Schema.from_dict(drones.schema())
    with Engine(schema) as engine:
        for name, condition in drones.SUBSCRIPTIONS.items():
            engine.subscribe(condition, id=name)
        expected = [set(each) for each in engine.match_batch(events)]
    assert set().union(*expected) == {*drones.SUBSCRIPTIONS}, "each of the five has a match"
    document = tmp_path / "drones.yaml"
    document.write_text(yaml.safe_dump(drones.schema()))
    options = ("--schema", str(document), "--operators", PACKS, "--allow-sink", "127.0.0.1")
    with (
        receiver() as (url, received),
        serving(tmp_path / "data", *options) as (client, _),
    ):
        leases = {
            name: subscribe(client, condition, sink={"url": url, "body": ["drone"]})
            for name, condition in drones.SUBSCRIPTIONS.items()
        }
        refused = client.post("/v1/subscriptions", json={"condition": "hasKeyword(fire)"})
        assert refused.status_code == 400
        assert "operator 'hasKeyword' is not enabled here" in refused.json()["detail"]
        answer = client.post("/v1/events", json=events)
        assert answer.status_code == 202, answer.text
        first, last = answer.json()["first"], answer.json()["first"] + EVENTS - 1
        for name, lease in leases.items():
            numbers = numbers_of(client, lease, last)
            right = [first + at for at, names in enumerate(expected) if name in names]
            assert numbers == right, name
        _check_webhooks(received, leases, expected, events, first)
        headers = _admin(tmp_path / "data")
        _check_report(client, headers)
    _check_without_detectors(tmp_path / "data", document, headers, events)


def _check_webhooks(
    received: list[dict[str, Any]],
    leases: dict[str, dict[str, Any]],
    expected: list[set[Any]],
    events: list[dict[str, Any]],
    first: int,
) -> None:
    right = {
        (first + at, leases[name]["id"]) for at, names in enumerate(expected) for name in names
    }
    until = time.monotonic() + 60
    while len(received) < len(right) and time.monotonic() < until:
        time.sleep(0.05)
    assert {(each["sequence"], each["subscription"]) for each in received} == right
    for each in received:
        assert each["event"] == {"drone": events[each["sequence"] - first]["drone"]}


def _admin(folder: Path) -> dict[str, str]:
    command = ["keys", "create", str(folder), "--name", "ann", "--role", "admin"]
    made = subprocess.run(
        [sys.executable, "-m", "tamis.cli.main", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


def _check_report(client: httpx2.Client, headers: dict[str, str]) -> None:
    """An admin sees the calls: those on pictures are for few of the events."""
    assert client.get("/v1/operators").status_code == 403
    report = client.get("/v1/operators", headers=headers).json()
    counts = {each["name"]: each for each in report["operators"]}
    assert counts["locIn"]["events"] >= EVENTS
    assert 0 < counts["mobPattern"]["events"] < EVENTS / 2
    assert 0 < counts["pedestrianCount"]["events"] < EVENTS / 2
    assert counts["faceCount"]["events"] == 0
    assert counts["mobPattern"]["faults"] == dict.fromkeys(counts["mobPattern"]["faults"], 0)
    assert report["results"] > 0
    assert report["left_out"] == []
    metrics = client.get("/metrics", headers=headers).text
    calls = counts["mobPattern"]["calls"]
    assert f'tamis_operator_calls_total{{operator="mobPattern"}} {calls:.1f}' in metrics
    assert 'tamis_operator_faults_total{kind="timeouts",operator="locIn"} 0.0' in metrics
    assert "Bronx" not in metrics, "no label for constants"


def _check_without_detectors(
    folder: Path, schema: Path, headers: dict[str, str], events: list[dict[str, Any]]
) -> None:
    """What cannot be matched any more is reported, and nothing else stops."""
    options = ("--schema", str(schema), "--operators", "spatial", "--allow-sink", "127.0.0.1")
    with serving(folder, *options) as (client, _):
        near = subscribe(client, "locIn(Bronx)")
        last = client.post("/v1/events", json=events[:20]).json()["first"] + 19
        assert numbers_of(client, near, last)
        left_out = client.get("/v1/operators", headers=headers).json()["left_out"]
        assert sum(each["subscriptions"] for each in left_out) == len(drones.SUBSCRIPTIONS)
        assert all("is not enabled here" in each["reason"] for each in left_out)
        assert "tamis_subscriptions_left_out 5.0" in client.get("/metrics", headers=headers).text
