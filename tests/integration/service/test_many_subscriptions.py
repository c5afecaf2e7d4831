"""Bulk subscribe, export, dead letters, bodies and warnings, over HTTP and as commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving import RunningServer, running
from tests.unit.broker import test_webhooks
from tests.unit.broker.test_webhooks import Receiver, until
from tests.unit.cli.calls import Capture, run

receiver = test_webhooks.receiver
LINES = {"Content-Type": "application/x-ndjson"}
AS_LINES = {"Accept": "application/x-ndjson"}


class People:
    """A server with keys, and what its callers send to say who they are."""

    def __init__(self, server: RunningServer, client: httpx2.Client) -> None:
        self.server, self.client = server, client
        made = subprocess.run(
            [sys.executable, "-m", "tamis.cli.main", "keys", "create", str(server.folder),
             "--name", "root", "--role", "admin"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.keys = {"root": made.stdout.strip()}
        for name in ("ann", "bob", "cleo"):
            asked = {"name": name, "roles": ["subscriber", "publisher"]}
            answer = client.post("/v1/keys", json=asked, headers=self["root"])
            self.keys[name] = answer.json()["key"]

    def __getitem__(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[name]}"}

    def bulk(self, name: str, lines: list[Any], **more: Any) -> httpx2.Response:
        body = "".join(
            (each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines
        )
        headers = self[name] | LINES
        return self.client.post("/v1/subscriptions/bulk", content=body, headers=headers, **more)

    def export(self, name: str, **params: str) -> list[dict[str, Any]]:
        headers = self[name] | AS_LINES
        answer = self.client.get("/v1/subscriptions", params=params, headers=headers)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("many") / "data"
    options = ("--keys", "--allow-sink", "127.0.0.1", "--limit-lease-warning", "5s")
    with (
        running(folder, *options) as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        yield People(server, client)


def test_lines_are_subscribed_to_and_exported(people: People) -> None:
    """An export has what was sent; it goes on after a cursor, and belongs to its owner."""
    lines = [
        {"condition": "price < 5", "lease": 3600, "name": "cheap", "metadata": {"a": 1}},
        {"condition": "price <"},
        {"condition": "price > 5", "until": "2020-01-01T00:00:00Z"},
        "{",
        {"condition": "title = oak", "sink": {"body": ["price"]}},
        {"condition": "price < 5", "colour": "red"},
    ]
    answer = people.bulk("ann", lines)
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["line"] for each in found] == [1, 2, 3, 4, 5, 6]
    assert ["error" in each for each in found] == [False, True, True, True, False, True]
    exported = people.export("ann")
    assert [each["id"] for each in exported] == [found[0]["id"], found[4]["id"]]
    assert exported[0]["until"] == found[0]["until"]
    assert json.loads(exported[0]["metadata"]) == {"a": 1}
    assert json.loads(exported[1]["sink"]) == {"body": ["price"]}
    assert people.export("ann", cursor=str(exported[0]["id"])) == exported[1:]
    assert people.export("ann", most="1") == exported[:1]
    assert people.export("ann", q="oak") == exported[1:]
    assert people.export("bob") == []
    assert people.export("root", owner="ann") == exported
    refused = people.client.get("/v1/subscriptions?owner=ann", headers=people["bob"])
    assert refused.status_code == 403


def test_together_is_all_or_none(people: People) -> None:
    lines = [{"condition": "price < 5"}, {"condition": "titel = x"}]
    before = people.export("cleo")
    answer = people.bulk("cleo", lines, params={"together": "true"})
    assert answer.status_code == 400
    assert answer.json()["refused"][0]["row"] == 1
    assert people.export("cleo") == before
    assert people.bulk("cleo", lines[:1], params={"together": "true"}).status_code == 200
    wrong = people.client.post("/v1/subscriptions/bulk", json=[], headers=people["cleo"])
    assert wrong.status_code == 415


def test_commands_import_and_export(
    people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """An export is a file of subscriptions, and its import the same subscriptions again."""
    monkeypatch.setenv("TAMIS_SERVER", people.server.address)
    monkeypatch.setenv("TAMIS_KEY", people.keys["bob"])
    first, second, ids = (tmp_path / name for name in ("a.csv", "b.jsonl", "ids.jsonl"))
    rows = "".join(f"{at},price < {at}\n" for at in range(1, 26))
    first.write_text(f"id,condition\n{rows}26,price <\n")
    for _ in range(2):  # the second time, nothing is added
        arguments = ("--batch", "10", "--key", "first", "--out", str(ids), "--json")
        assert run("import", str(first), *arguments) == 0
        assert json.loads(capsys.readouterr().out) == {"added": 25, "refused": 1}
    assert [json.loads(line)["from"] for line in ids.read_text().splitlines()][:2] == ["1", "2"]
    assert run("export", "--out", str(second), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"exported": 25}
    assert run("import", str(second), "--json") == 0
    assert json.loads(capsys.readouterr().out)["added"] == 25
    assert run("export") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["condition"] for each in lines[:25]] == [each["condition"] for each in lines[25:]]


def test_bodies_of_notifications(people: People) -> None:
    """What the subscription asks for, unless the reader asks for something else."""
    lines = [
        {"condition": "title = body"},
        {"condition": "title = body", "sink": {"body": "none"}},
        {"condition": "title = body", "sink": {"body": ["price"]}},
    ]
    answer = people.bulk("cleo", lines)
    ids = [json.loads(line)["id"] for line in answer.text.splitlines()]
    event = {"title": "body", "price": 40}
    number = people.client.post("/v1/events", json=event, headers=people["cleo"]).json()["first"]

    def shown(**params: str) -> dict[int, Any]:
        asked = {"after": str(number - 1), "wait": "30", **params}
        page = people.client.get("/v1/notifications", params=asked, headers=people["cleo"]).json()
        assert all(each["time"].endswith("Z") for each in page["notifications"])
        return {each["subscription"]: each["event"] for each in page["notifications"]}

    assert shown() == dict(zip(ids, (event, None, {"price": 40}), strict=True))
    assert shown(body="event") == dict.fromkeys(ids, event)
    assert shown(body="title,price.x") == {id: {"title": "body"} for id in ids}
    assert set(shown(body="none").values()) == {None}


def test_dead_letters_belong_to_their_owner(people: People, receiver: Receiver) -> None:
    receiver.answers = [(410, {})]
    sink = {"url": receiver.url}
    asked = {"condition": "title = dead", "sink": sink}
    people.client.post("/v1/subscriptions", json=asked, headers=people["ann"])
    people.client.post("/v1/events", json={"title": "dead"}, headers=people["ann"])

    def dead(name: str) -> list[dict[str, Any]]:
        answer = people.client.get("/v1/dead-letters", headers=people[name])
        found: list[dict[str, Any]] = answer.json()["dead_letters"]
        return found

    until(lambda: bool(dead("ann")))
    (letter,) = dead("ann")
    assert letter["error"] == "answered with 410"
    assert dead("bob") == []
    assert dead("root") == [letter]
    path = f"/v1/dead-letters/{letter['id']}/retry"
    assert people.client.post(path, headers=people["bob"]).status_code == 404
    assert people.client.post(path, headers=people["ann"]).json() == {"replayed": 1}
    receiver.wait(2)
    assert dead("ann") == []
    assert people.client.post(path, headers=people["ann"]).status_code == 404


def test_a_lease_that_ends_is_warned_of(people: People, receiver: Receiver) -> None:
    """A webhook gets a message, and a stream an event, once; a renewed lease has another end."""
    sink = {"url": receiver.url, "body": "none"}
    asked = {"condition": "price < 0", "sink": sink, "lease": 7}
    lease = people.client.post("/v1/subscriptions", json=asked, headers=people["cleo"]).json()
    path = f"/v1/subscriptions/{lease['id']}/notifications"
    headers = people["cleo"] | {"Accept": "text/event-stream"}
    with people.client.stream("GET", path, headers=headers) as stream:
        lines = stream.iter_lines()
        until(lambda: next(lines) == "event: lease-ending")
        said = json.loads(next(lines).removeprefix("data: "))
    assert said["subscription"] == lease["id"]
    ((_, body),) = receiver.wait(1)
    message = json.loads(body)
    assert message["type"] == "tamis.lease-ending"
    assert message["data"] == said
    shown = f"/v1/subscriptions/{lease['id']}"
    until(lambda: people.client.get(shown, headers=people["cleo"]).status_code == 404)
    assert len(receiver.messages) == 1


def test_the_ticket_of_a_lease_that_ran_out(people: People) -> None:
    """It changes nothing any more. Notifications from before the end may still be read."""
    asked = {"condition": "title = short", "lease": 1}
    lease = people.client.post("/v1/subscriptions", json=asked, headers=people["ann"]).json()
    path, ticket = f"/v1/subscriptions/{lease['id']}", {"Tamis-Ticket": lease["ticket"]}
    number = people.client.post("/v1/events", json={"title": "short"}, headers=people["ann"])
    headers = people["bob"] | ticket
    until(lambda: people.client.get(path, headers=headers).status_code == 404)
    assert people.client.post(f"{path}/renew", json={}, headers=headers).status_code == 404
    assert people.client.delete(path, headers=headers).status_code == 404
    after = {"after": str(number.json()["first"] - 1)}
    page = people.client.get(f"{path}/notifications", params=after, headers=headers)
    assert page.status_code == 200
    other = people["bob"] | {"Tamis-Ticket": lease["ticket"][:-1] + "x"}
    assert people.client.get(f"{path}/notifications", headers=other).status_code == 404
