"""Both clients, against a real server."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tamis.client import AsyncClient, Client, Retries, ServiceError, SourcedEvent, UnreachableError
from tamis.client.webhooks import verify
from tamis.errors import TamisError
from tests.running import run_script
from tests.serving import RunningServer, running

OTHERS = {
    "eventbridge": '{"price": [{"anything-but": 5}]}',
    "cesql": "EXISTS price AND NOT EXISTS title",
    "sql": "price <> 5",
}
PATIENT = Retries(attempts=300, first=0.1, longest=0.5)


class _Blocking:
    """An `AsyncClient` whose awaitables and iterators are waited for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*arguments, **options)

    def __enter__(self) -> _Blocking:
        return self

    def __exit__(self, *exception: object) -> None:
        self._runner.run(self._client.close())
        self._runner.close()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            found = getattr(self._client, name)(*arguments, **options)
            return self._each(found) if inspect.isasyncgen(found) else self._wait(found)

        return call

    def _wait(self, found: Any) -> Any:
        async def wait() -> Any:
            return await found

        return self._runner.run(wait())

    def _each(self, found: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._wait(anext(found))
                except StopAsyncIteration:
                    return
        finally:
            self._wait(found.aclose())


KINDS = {"sync": Client, "async": _Blocking}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("client") / "data"
    with running(folder, "--allow-sink", "127.0.0.1") as server:
        yield server


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[Any]:
    with KINDS[request.param](server.address) as client:
        yield client


def test_a_subscriber_is_notified(client: Any) -> None:
    lease = client.subscribe("price < 5", lease=timedelta(minutes=5), name="mine")
    assert timedelta(0) < lease.until - datetime.now(UTC) <= timedelta(minutes=5)
    receipt = client.publish([{"price": 4, "title": "oak"}, {"price": 9}])
    assert (receipt.count, receipt.duplicates) == (2, 0)
    page = client.poll(lease.id, ticket=lease.ticket, after=-1, wait=60)
    (found,) = page.notifications
    assert (found.sequence, found.subscription) == (receipt.first, lease.id)
    assert found.event == {"price": 4, "title": "oak"}
    assert found.cursor == receipt.first
    assert abs(found.time - datetime.now(UTC)) < timedelta(minutes=10)
    found = client.notifications(lease.id, ticket=lease.ticket, after=-1, body="title")
    assert next(found).event == {"title": "oak"}
    found.close()
    later = client.poll(lease.id, ticket=lease.ticket, after=page.cursor)
    assert later.notifications == []


def test_a_subscription_lives_and_ends(client: Any) -> None:
    lease = client.subscribe("price < 5", metadata={"a": [1]})
    shown = client.show(lease.id, ticket=lease.ticket)
    assert (shown.condition, shown.metadata, shown.until) == ("price < 5", {"a": [1]}, lease.until)
    assert client.renew(lease.id, None, ticket=lease.ticket).until is None
    changed = client.update(lease.id, ticket=lease.ticket, condition="price > 5", name="new")
    assert (changed.condition, changed.name) == ("price > 5", "new")
    changed = client.update(
        lease.id, ticket=lease.ticket, sink={"body": "none"}, remove=["name", "metadata"]
    )
    assert (changed.name, changed.metadata, changed.sink["body"]) == (None, None, "none")
    assert client.update(lease.id, ticket=lease.ticket, remove=["sink"]).sink is None
    for wrong in ({"remove": ["condition"]}, {"remove": ["colour"]}):
        with pytest.raises(ServiceError) as refused:
            client.update(lease.id, ticket=lease.ticket, **wrong)
        assert refused.value.status in (400, 422)
    assert client.list().subscriptions == []  # an anonymous caller owns nothing
    client.cancel(lease.id, ticket=lease.ticket)
    with pytest.raises(ServiceError) as gone:
        client.show(lease.id, ticket=lease.ticket)
    assert (gone.value.status, gone.value.kind) == (404, "not-found")


def test_questions_and_their_mistakes(client: Any) -> None:
    client.ready()
    assert client.schema()["attributes"].keys() == {"price", "title"}
    assert client.check("price < 5") is None
    with pytest.raises(ServiceError) as wrong:
        client.check("price < 5 and titel = x")
    assert wrong.value.fields["column"] == 15
    assert "title" in wrong.value.fields["hint"]
    assert client.explain("price < 5", {"price": 4}).matches
    assert "price < 5" in client.explain("price < 5", {"price": 7}).explanation
    for language, condition in OTHERS.items():
        assert client.check(condition, language=language) is None
        assert client.explain(condition, {"price": 4}, language=language).matches
    assert client.match({"price": 4}) == []
    with pytest.raises(ServiceError) as row:
        client.publish([{"price": 4}, {"price": "x"}])
    assert (row.value.fields["row"], row.value.fields["attribute"]) == (1, "price")


def test_events_are_published_as_they_come(client: Any) -> None:
    lease = client.subscribe("title starts with many")
    receipts = list(client.publish_all(({"title": f"many {at}"} for at in range(250)), most=100))
    assert [each.count for each in receipts] == [100, 100, 50]
    found = client.notifications(lease.id, ticket=lease.ticket, after=-1)
    titles = [each.event["title"] for each in islice(found, 250)]
    assert titles == [f"many {at}" for at in range(250)]
    found.close()


def test_an_event_with_a_source_and_an_id_is_published_once(client: Any) -> None:
    event = SourcedEvent(
        {"price": 3}, f"/shop/{type(client).__name__}", "7", time=datetime.now(UTC)
    )
    first, again = client.publish(event), client.publish([event, event._replace(id="8")])
    assert (first.duplicates, again.duplicates) == (0, 1)
    assert again.first == first.first
    assert client.event(first.first)["price"] == 3
    (receipt,) = client.publish_all(event._replace(id=str(at)) for at in range(5, 10))
    assert (receipt.count, receipt.duplicates) == (5, 2)


def test_the_schema_is_extended(client: Any) -> None:
    name = type(client).__name__
    first = client.create_domain(f"State {name}", {"kind": "enumerated", "values": ["new"]})
    client.create_attribute(f"state {name}", f"State {name}")
    client.extend_event_type("event", f"state {name}")
    client.grow_domain(f"State {name}", ["used"])
    last = client.create_event_type(f"sale {name}", {"price": "mandatory"})
    assert last.version == first.version + 4
    assert client.explain(f"`state {name}` = used", {f"state {name}": "used"}).matches
    with pytest.raises(ServiceError):
        client.create_domain(f"State {name}", {"kind": "enumerated", "values": ["new"]})


def test_notifications_begin_at_the_end(client: Any, server: RunningServer) -> None:
    """Without a cursor, a reader gets what is published after it began."""
    lease = client.subscribe("title = now")
    client.publish({"title": "now", "price": 1})
    client.poll(lease.id, ticket=lease.ticket, after=-1, wait=60)
    found = client.notifications(lease.id, ticket=lease.ticket)

    def publish() -> None:
        with Client(server.address) as other:
            for price in range(2, 100):
                other.publish({"title": "now", "price": price})
                time.sleep(0.1)
                if read.is_set():
                    return

    read = threading.Event()
    publisher = threading.Thread(target=publish)
    publisher.start()
    first = next(found)
    read.set()
    publisher.join()
    assert first.event["price"] >= 2
    found.close()


def test_a_webhook_is_verified(client: Any) -> None:
    got: list[tuple[Any, bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.headers, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    lease = client.subscribe(
        "title = hook", sink=f"http://127.0.0.1:{receiver.server_port}/", lease=None
    )
    assert lease.secret is not None
    client.publish({"title": "hook"})
    receiver.handle_request()
    receiver.server_close()
    message = verify(*got[0], lease.secret)
    assert message.body["data"]["event"] == {"title": "hook"}
    fresh = client.rotate_secret(lease.id, ticket=lease.ticket)
    assert fresh.startswith("whsec_")
    assert fresh != lease.secret
    client.cancel(lease.id, ticket=lease.ticket)


def test_many_are_subscribed_at_once(client: Any) -> None:
    given = [{"condition": f"price < {at}", "lease": 60} for at in range(5)]
    given[2] = {"condition": "titel = x"}
    made = client.subscribe_many(given)
    assert [each.line for each in made if each.error is None] == [1, 2, 4, 5]
    assert "titel" in made[2].error
    assert client.show(made[4].id, ticket=made[4].ticket).condition == "price < 4"
    with pytest.raises(ServiceError, match="none was added"):
        client.subscribe_many(given, together=True)


@pytest.mark.parametrize("kind", KINDS)
def test_readers_and_subscribers_outlive_a_restart(kind: str, tmp_path: Path) -> None:
    """Killed in the middle: a reader misses nothing and gets nothing twice."""
    with ExitStack() as opened:
        server = opened.enter_context(running(tmp_path / "data"))
        client = opened.enter_context(KINDS[kind](server.address, retries=PATIENT))
        lease = client.subscribe("price >= 0")
        found = client.notifications(lease.id, ticket=lease.ticket, after=-1)
        opened.callback(found.close)
        client.publish([{"price": at} for at in range(5)])
        prices = [each.event["price"] for each in islice(found, 5)]
        server.process.kill()
        server.process.wait(60)
        restart = threading.Timer(0.5, server.start_again)
        restart.start()
        # Nothing listens: asked again until somebody does, and subscribed once.
        assert client.subscribe("price < 0", request_key="once").id > lease.id
        restart.join()
        client.publish({"price": 99})
        prices.append(next(found).event["price"])
        assert prices == [*range(5), 99]


def test_keys_make_owners(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--keys") as server, Client(server.address) as nobody:
        with pytest.raises(ServiceError) as refused:
            nobody.publish({"price": 1})
        assert refused.value.status == 401
        made = run_script(
            "import sys; from tamis.cli.main import main; main(sys.argv[1:])",
            "keys", "create", tmp_path / "data", "--name", "root", "--role", "admin",
        )  # fmt: skip
        with Client(server.address, key=made.stdout.strip()) as root:
            key = root.create_key("ann", ["subscriber", "publisher"])
            listed = {each.name: each for each in root.list_keys()}
            assert listed["ann"].roles == ["publisher", "subscriber"]
            with Client(server.address, key=key) as ann:
                ids = [ann.subscribe(f"price < {at}").id for at in range(1, 130)]
                assert [each.id for each in ann.subscriptions()] == ids
                page = ann.list(most=100)
                assert [each.id for each in ann.list(cursor=page.cursor).subscriptions] == ids[100:]
                assert [each.id for each in root.subscriptions(owner="ann")] == ids
                assert [each.id for each in ann.subscriptions(q="price < 12")] == [
                    ids[11], *ids[119:129]
                ]  # fmt: skip
                number = ann.publish({"price": 128}).first
                assert number is not None
                (seen,) = islice(ann.notifications(after=number - 1), 1)
                assert (seen.subscription, seen.sequence) == (ids[128], number)
                assert ann.match({"price": 127}) == ids[127:]
                assert ann.set_cursor("mine", number) == number
                assert ann.cursor("mine") == number
                root.revoke_key(listed["ann"].id)
                with pytest.raises(ServiceError, match="revoked"):
                    ann.show(ids[0])


def test_nobody_answers() -> None:
    with (
        Client("http://127.0.0.1:9", retries=Retries(attempts=2, first=0.01)) as client,
        pytest.raises(UnreachableError) as lost,
    ):
        client.publish({"price": 1})
    assert not lost.value.sent


@pytest.mark.parametrize("url", ["localhost:8080", "", "ftp://a", "http://", "data"])
def test_a_url_is_checked(url: str) -> None:
    with pytest.raises(TamisError, match="is not a URL"):
        Client(url)


def test_the_client_loads_nothing_of_the_service() -> None:
    """`pip install tamis[client]` brings no server."""
    heavy = "{'fastapi', 'starlette', 'uvicorn', 'numba', 'pyspark', 'apsw', 'grpc', 'numpy'}"
    said = run_script(
        f"import tamis.client, tamis.client.webhooks, sys\nprint({heavy} & set(sys.modules))"
    )
    assert said.stdout.strip() == "set()"
