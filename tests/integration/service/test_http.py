"""A real server, called as other programs call it."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving import SCHEMA, serving

_SERVING = re.compile(r"serving on (http://\S+)")
ANYWHERE = ("--listen", "127.0.0.1:0")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with serving(tmp_path_factory.mktemp("service") / "data") as (client, _):
        yield client


def subscribe(client: httpx2.Client, condition: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/subscriptions", json={"condition": condition, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def notified(client: httpx2.Client, lease: dict[str, Any], after: int, wait: int = 30) -> Any:
    answer = client.get(
        f"/v1/subscriptions/{lease['id']}/notifications",
        params={"after": after, "wait": wait},
        headers={"Tamis-Ticket": lease["ticket"]},
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_subscriber_is_notified(client: httpx2.Client) -> None:
    """What was published before a subscription does not count; what comes after it does."""
    client.post("/v1/events", json={"price": 1})
    lease = subscribe(client, "price < 5")
    published = client.post("/v1/events", json=[{"price": 4, "title": "oak"}, {"price": 9}])
    assert published.status_code == 202
    first = published.json()["first"]
    assert published.json() == {"first": first, "count": 2, "duplicates": 0}
    page = notified(client, lease, -1)
    (found,) = page["notifications"]
    assert found.pop("time").endswith("Z")
    event = {"price": 4, "title": "oak"}
    assert found == {"sequence": first, "subscription": lease["id"], "event": event}
    assert notified(client, lease, page["cursor"], wait=0)["notifications"] == []


def test_lines_are_events(client: httpx2.Client) -> None:
    lease = subscribe(client, "title starts with line")
    lines = "".join(json.dumps({"title": f"line {at}"}) + "\n" for at in range(300))
    answer = client.post(
        "/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert answer.json()["count"] == 300
    cursor = -1
    found: list[Any] = []
    while len(found) < 300:
        page = notified(client, lease, cursor)
        found += page["notifications"]
        cursor = page["cursor"]
    assert [each["event"]["title"] for each in found] == [f"line {at}" for at in range(300)]


def test_a_stream_goes_on_and_resumes(client: httpx2.Client) -> None:
    """A reader that comes back with the last id misses nothing and gets nothing twice."""
    lease = subscribe(client, "title = stream")
    path = f"/v1/subscriptions/{lease['id']}/notifications"
    headers = {"Accept": "text/event-stream", "Tamis-Ticket": lease["ticket"]}
    prices: list[float] = []
    last = None
    for turn in range(3):
        more: dict[str, str] = {"Last-Event-ID": last} if last else {}
        params = {} if last else {"after": "-1"}
        with client.stream("GET", path, params=params, headers={**headers, **more}) as stream:
            for price in range(2):
                client.post("/v1/events", json={"title": "stream", "price": 10 * turn + price})
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    last = line[4:]
                if line.startswith("data: "):
                    prices.append(json.loads(line[6:])["event"]["price"])
                    if len(prices) == 2 * turn + 2:
                        break
    assert prices == [0, 1, 10, 11, 20, 21]


def test_renew_change_and_cancel_need_the_ticket(client: httpx2.Client) -> None:
    lease = subscribe(client, "price < 5", lease=60, name="mine", metadata={"a": [1]})
    path, right = f"/v1/subscriptions/{lease['id']}", {"Tamis-Ticket": lease["ticket"]}
    for headers in ({}, {"Tamis-Ticket": "wrong"}, {"Tamis-Ticket": lease["ticket"] + "x"}):
        assert client.get(path, headers=headers).status_code == 404
        assert client.post(f"{path}/renew", json={}, headers=headers).status_code == 404
        assert client.patch(path, json={"name": "x"}, headers=headers).status_code == 404
        assert client.delete(path, headers=headers).status_code == 404
        assert client.get(f"{path}/notifications", headers=headers).status_code == 404
    shown = client.get(path, headers=right).json()
    assert (shown["name"], shown["metadata"]) == ("mine", {"a": [1]})
    assert client.post(f"{path}/renew", json={"lease": None}, headers=right).json()["until"] is None
    changed = client.patch(path, json={"condition": "price > 5"}, headers=right).json()
    assert (changed["condition"], changed["name"]) == ("price > 5", "mine")
    assert client.delete(path, headers=right).status_code == 204
    assert client.get(path, headers=right).status_code == 404


def test_a_repeated_request_subscribes_once(client: httpx2.Client) -> None:
    asked: Any = {"json": {"condition": "price < 5"}, "headers": {"Idempotency-Key": "k1"}}
    first, second = (client.post("/v1/subscriptions", **asked).json() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        ('{"price": "x"}', "application/json", 400, "price"),
        ('{"price": NaN}', "application/json", 400, "not JSON"),
        ("[1, 2]", "application/json", 400, "JSON object"),
        ("{", "application/json", 400, "not JSON"),
        ("[" * 100_000, "application/json", 400, "array"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "application/json", 400, ""),
        ('{"title": "\\ud800"}', "application/json", 400, ""),
        ('{"price": 1e999}', "application/json", 400, ""),
        ("price=5", "application/x-www-form-urlencoded", 415, "--json"),
        ('{"title": "' + "x" * 70_000 + '"}', "application/json", 400, "bytes"),
        (" " * (17 << 20), "application/json", 413, "more than"),
    ],
)
def test_bad_bodies_are_refused(
    client: httpx2.Client, body: str, kind: str, status: int, words: str
) -> None:
    """Each with a problem that says what was wrong; nothing of it is published."""
    answer = client.post("/v1/events", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert client.get("/readyz").status_code == 200


def test_a_compressed_body_is_refused_as_such(client: httpx2.Client) -> None:
    body = gzip.compress(b'{"price": 4}')
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post("/v1/events", content=body, headers=headers)
    assert answer.status_code == 415
    assert "Content-Encoding" in answer.json()["detail"]


def test_a_wrong_condition_is_shown_with_its_place(client: httpx2.Client) -> None:
    answer = client.post("/v1/subscriptions", json={"condition": "price < 5 and titel = x"})
    assert answer.status_code == 400
    assert answer.json()["column"] == 15
    assert "title" in answer.json()["hint"]


def test_a_killed_server_starts_again(tmp_path: Path) -> None:
    """Acknowledged before kill -9: there afterwards, and notified exactly once."""
    with serving(tmp_path / "data") as (client, process):
        lease = subscribe(client, "price < 5")
        numbers = [
            client.post("/v1/events", json={"price": at % 10}).json()["first"] for at in range(40)
        ]
        process.kill()
    with serving(tmp_path / "data") as (client, _):
        page: Any = {"cursor": -1}
        found: list[int] = []
        while page["cursor"] < numbers[-1]:
            page = notified(client, lease, page["cursor"], wait=5)
            found += [each["sequence"] for each in page["notifications"]]
        assert found == [each for at, each in enumerate(numbers) if at % 10 < 5]


def test_callers_with_keys_have_their_own(tmp_path: Path) -> None:
    """Owners see their own subscriptions and notifications; an admin makes and revokes keys."""
    with serving(tmp_path / "data", "--keys") as (client, _):
        assert client.get("/v1/schema").status_code == 401
        assert client.post("/v1/events", json={"price": 1}).status_code == 401
        made = subprocess.run(
            [sys.executable, "-m", "tamis.cli.main", "keys", "create", str(tmp_path / "data"),
             "--name", "root", "--role", "admin"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        root = _bearer(made.stdout.strip())
        people = {}
        for name in ("ann", "bob"):
            asked = {"name": name, "roles": ["subscriber", "publisher"]}
            people[name] = _bearer(client.post("/v1/keys", json=asked, headers=root).json()["key"])
        assert client.post("/v1/keys", json=asked, headers=people["ann"]).status_code == 403
        ids = {
            name: client.post(
                "/v1/subscriptions", json={"condition": "price < 5"}, headers=headers
            ).json()["id"]
            for name, headers in people.items()
        }
        event = {"event": {"price": 3}}
        for name, headers in people.items():
            assert client.post("/v1/match", json=event, headers=headers).json() == {
                "subscriptions": [ids[name]],
                "count": 1,
            }
        number = client.post("/v1/events", json={"price": 3}, headers=people["bob"]).json()["first"]
        ask = {"after": str(number - 1), "wait": "30"}
        for name, headers in people.items():
            page = client.get("/v1/notifications", params=ask, headers=headers).json()
            assert [each["subscription"] for each in page["notifications"]] == [ids[name]]
            listed = client.get("/v1/subscriptions", headers=headers).json()["subscriptions"]
            assert [each["id"] for each in listed] == [ids[name]]
        page = client.get("/v1/notifications", params=ask, headers=root).json()
        assert {each["subscription"] for each in page["notifications"]} == {*ids.values()}
        path = f"/v1/subscriptions/{ids['ann']}"
        assert client.delete(path, headers=people["bob"]).status_code == 404
        assert client.delete(path, headers=people["ann"]).status_code == 204
        cursor = "/v1/consumers/mine/cursor"
        assert client.put(cursor, json={"cursor": 7}, headers=people["ann"]).status_code == 200
        assert client.get(cursor, headers=people["ann"]).json() == {"cursor": 7}
        assert client.get(cursor, headers=people["bob"]).status_code == 404
        (bob,) = [
            each["id"]
            for each in client.get("/v1/keys", headers=root).json()
            if each["name"] == "bob"
        ]
        streamed = people["bob"] | {"Accept": "text/event-stream"}
        with client.stream("GET", "/v1/notifications", headers=streamed) as stream:
            assert client.delete(f"/v1/keys/{bob}", headers=root).status_code == 204
            client.post("/v1/events", json={"price": 3}, headers=root)
            assert not [line for line in stream.iter_lines() if line.startswith("data")]
        assert client.get("/v1/subscriptions", headers=people["bob"]).status_code == 401


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_conditions_are_checked_and_explained(client: httpx2.Client) -> None:
    assert client.post("/v1/check", json={"condition": "price < 5"}).status_code == 204
    assert client.post("/v1/check", json={"condition": "price <"}).status_code == 400
    asked = {"condition": "price < 5", "event": {"price": 7}}
    answer = client.post("/v1/explain", json=asked).json()
    assert not answer["matches"]
    assert "price < 5" in answer["explanation"]


def test_a_body_of_another_type_is_named(client: httpx2.Client) -> None:
    """As `curl -d` sends it."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/v1/subscriptions", content='{"condition": "price < 5"}', headers=form)
    assert answer.status_code == 422
    assert "send it as application/json, not as 'application/x-www" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "lease": NaN}'),
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "lease": true}'),
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "sink": {"body": [""]}}'),
        ("POST", "/v1/subscriptions", '{"condition": "title = \\ud800"}'),
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "name": "\\ud800"}'),
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "\\ud800": 1}'),
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "metadata": {"a": NaN}}'),
        ("POST", "/v1/subscriptions", '{"condition": "price < 5", "metadata": {"\\ud800": 1}}'),
        ("POST", "/v1/check", '{"condition": "\\ud800 < 5"}'),
        ("POST", "/v1/match", '{"event": {"title": "\\ud800"}}'),
        ("POST", "/v1/match", '{"event": {"price": NaN}}'),
        ("POST", "/v1/explain", '{"condition": "title = x", "event": {"title": "\\ud800"}}'),
        ("GET", "/v1/subscriptions/{id}/notifications?after=-1&most=0", ""),
        ("GET", "/v1/subscriptions/{id}/notifications?after=-1&most=-1", ""),
        ("GET", "/v1/nothing", ""),
        ("PUT", "/v1/schema", ""),
    ],
)
def test_bad_requests_are_problems(
    client: httpx2.Client, method: str, path: str, body: str
) -> None:
    """None is an error of the server, and the answer does not repeat what was sent."""
    lease = subscribe(client, "price < 5")
    client.post("/v1/events", json={"price": 1})
    answer = client.request(
        method,
        path.format(id=lease["id"]),
        content=body,
        headers={"Content-Type": "application/json", "Tamis-Ticket": lease["ticket"]},
    )
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/readyz").status_code == 200


def test_the_process_ends_after_a_failed_sync(tmp_path: Path) -> None:
    """The request is not acknowledged, and the exit code says that something went wrong."""
    schema = tmp_path / "schema.yaml"
    schema.write_text(SCHEMA)
    script = (
        "import os, sys\n"
        "right = os.fdatasync\n"
        "def fdatasync(opened):\n"
        f"    if os.path.exists({str(tmp_path / 'fail')!r}): raise OSError(5, 'failed')\n"
        "    right(opened)\n"
        "os.fdatasync = fdatasync\n"
        "from tamis.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "serve", str(tmp_path / "data"), *ANYWHERE]
    process = subprocess.Popen(
        [*command, "--schema", str(schema)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    (address,) = [found[1] for line in _lines(process) if (found := _SERVING.search(line))]
    (tmp_path / "fail").touch()
    with httpx2.Client(base_url=address, timeout=60) as client:
        answer = client.post("/v1/events", json={"price": 1})
    assert answer.status_code == 503
    assert "/data" not in answer.text
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "stopped" in said
    assert "Traceback" not in said


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """What a process says, up to the address."""
    assert process.stderr is not None
    for line in process.stderr:
        yield line
        if _SERVING.search(line):
            return


@pytest.mark.parametrize("path", ["/v1/events", "/v1/subscriptions", "/v1/check"])
def test_long_bodies_are_refused_everywhere(client: httpx2.Client, path: str) -> None:
    """Also one whose length is not declared."""

    def parts() -> Iterator[bytes]:
        for _ in range(17):
            yield b" " * (1 << 20)

    answer = client.post(path, content=parts(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_page_has_a_limit_of_bytes(client: httpx2.Client) -> None:
    lease = subscribe(client, "title starts with long")
    lines = [json.dumps({"title": "long " + "x" * 60_000}) for _ in range(200)]
    for at in (0, 100):
        client.post(
            "/v1/events",
            content="\n".join(lines[at : at + 100]),
            headers={"Content-Type": "application/x-ndjson"},
        )
    page = notified(client, lease, -1)
    count = len(page["notifications"])
    while count < 200:
        assert len(json.dumps(page)) < 9 << 20
        page = notified(client, lease, page["cursor"])
        count += len(page["notifications"])
    assert count == 200
