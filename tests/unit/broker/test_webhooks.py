"""Webhooks to a real receiver on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import apsw
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tamis.broker.broker import Broker
from tamis.broker.delivery import retries
from tamis.broker.delivery.signature import sign
from tamis.broker.delivery.sink_address import SinkError, SinkRules
from tamis.broker.delivery.sinks import Sink
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.notification_reader import NotificationReader

pytestmark = pytest.mark.slow

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
RULES = SinkRules.of(["127.0.0.1"])


class Receiver:
    """Takes webhooks, and answers with the next of some statuses; then always 204."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.hold = threading.Event()  # while it is not set, nothing is answered
        self.hold.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append((dict(self.headers), body))
                receiver.hold.wait(60)
                status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *given: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count: int) -> list[tuple[dict[str, str], bytes]]:
        until(lambda: len(self.messages) >= count)
        return self.messages


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; a test that waits for a minute has failed."""
    give_up = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)


@contextmanager
def received() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.hold.set()
    made.server.shutdown()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with received() as made:
        yield made


@contextmanager
def brokered(folder: Path) -> Iterator[Broker]:
    with Broker(folder, SCHEMA, sinks=RULES) as broker:
        yield broker


def publish(broker: Broker, *events: dict[str, Any]) -> list[int]:
    given = [IncomingEvent(json.dumps(event)) for event in events]
    return broker.publish(given).result().numbers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds: the schedule itself is tested by its numbers."""
    monkeypatch.setattr(retries, "PAUSES", (0.01,) * 7)
    monkeypatch.setattr(retries, "OPEN_FOR", 0)


def test_a_message_is_signed_and_verified_by_others(tmp_path: Path, receiver: Receiver) -> None:
    """The independent library accepts it, and refuses a changed body."""
    with brokered(tmp_path) as broker:
        lease = broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        (number,) = publish(broker, {"price": 4, "title": "oak"})
        ((headers, body),) = receiver.wait(1)
        assert lease.secret is not None
        found = Webhook(lease.secret).verify(body, headers)
        assert found["type"] == "tamis.notification"
        assert found["data"] == {
            "sequence": number,
            "subscription": lease.id,
            "event": {"price": 4, "title": "oak"},
        }
        with pytest.raises(WebhookVerificationError):
            Webhook(lease.secret).verify(body.replace(b"oak", b"elm"), headers)


def test_the_vector_of_the_specification() -> None:
    """The example that the specification gives."""
    headers = sign(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_failed_message_comes_again_with_the_same_id(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers = [(500, {}), (302, {"Location": "http://127.0.0.1:1/"}), (503, {})]
    with brokered(tmp_path) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url, "none")).result()
        publish(broker, {"price": 4})
        messages = receiver.wait(4)
        until(lambda: broker.webhooks.outbox.count() == 0)
        assert len({headers["webhook-id"] for headers, _ in messages}) == 1
        assert all("event" not in json.loads(body)["data"] for _, body in messages)


def test_a_message_that_always_fails_is_a_dead_letter_until_it_is_replayed(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answers = [(500, {})] * retries.ATTEMPTS
    with brokered(tmp_path) as broker:
        sink = Sink(receiver.url, ("title", "missing"))
        lease = broker.subscribe("price < 5", sink=sink).result()
        (number,) = publish(broker, {"price": 4, "title": "oak"})
        until(lambda: bool(broker.webhooks.outbox.dead()))
        (dead,) = broker.webhooks.outbox.dead()
        assert (dead.subscription, dead.sequence, dead.attempts) == (lease.id, number, 8)
        assert dead.error == "answered with 500"
        assert len(receiver.messages) == retries.ATTEMPTS
        assert broker.webhooks.replay(lease.id) == 1
        body = receiver.wait(retries.ATTEMPTS + 1)[-1][1]
        assert json.loads(body)["data"]["event"] == {"title": "oak"}
        until(lambda: broker.webhooks.outbox.count() == 0)
        assert not broker.webhooks.outbox.dead()


def test_410_ends_the_attempts(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers = [(410, {})]
    with brokered(tmp_path) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        publish(broker, {"price": 4})
        until(lambda: bool(broker.webhooks.outbox.dead()))
        assert len(receiver.messages) == 1


def test_a_new_start_delivers_what_was_not_delivered(tmp_path: Path, receiver: Receiver) -> None:
    """Nothing is lost between two starts; a receiver knows by the id what it has."""
    receiver.answers = [(500, {})] * 3
    with brokered(tmp_path) as broker:
        broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        numbers = publish(broker, *({"price": at % 10} for at in range(40)))
    with brokered(tmp_path):
        wanted = {number for at, number in enumerate(numbers) if at % 10 < 5}
        until(lambda: _delivered(receiver) >= wanted)
    assert _delivered(receiver) == wanted


def _delivered(receiver: Receiver) -> set[int]:
    return {json.loads(body)["data"]["sequence"] for _, body in list(receiver.messages)}


def test_both_secrets_sign_after_a_rotation(tmp_path: Path, receiver: Receiver) -> None:
    with brokered(tmp_path) as broker:
        lease = broker.subscribe("price < 5", sink=Sink(receiver.url)).result()
        live = broker.subscription(lease.id, ticket=lease.ticket)
        second = broker.webhooks.rotate(live)
        publish(broker, {"price": 4})
        ((headers, body),) = receiver.wait(1)
        assert lease.secret is not None
        for secret in (lease.secret, second):
            Webhook(secret).verify(body, headers)


def test_a_sink_in_the_own_network_is_refused(tmp_path: Path) -> None:
    with Broker(tmp_path, SCHEMA) as broker, pytest.raises(SinkError, match="--allow-sink"):
        broker.subscribe("price < 5", sink=Sink("http://127.0.0.1:9/"))


def test_pauses_grow_and_obey_the_receiver() -> None:
    """Eight attempts within about a day; a receiver may ask for more time."""
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    now = datetime.now(UTC).replace(microsecond=0)
    later = format_datetime(now + timedelta(hours=1), usegmt=True)
    assert retries.retry_after(later, now) == 3600
    assert retries.retry_after("-5", now) is None
    assert retries.next_pause(1, 7200) == 7200
    assert retries.next_pause(1, 1e9) == retries.LONGEST


def test_nothing_is_lost_while_the_database_is_behind(tmp_path: Path, receiver: Receiver) -> None:
    """A subscription may be in the log, and be matched, before the database knows its sink."""
    with brokered(tmp_path) as broker:
        until(lambda: broker.webhooks.outbox.warned() is not None)
        other = apsw.Connection(str(broker.folder.state))
        with broker.state._lock:  # other threads of the broker use it
            broker.state._base.set_busy_timeout(10)
        other.execute("BEGIN IMMEDIATE")
        lease = broker.subscribe("price < 5", sink=Sink(receiver.url)).result(60)
        (number,) = publish(broker, {"price": 1})
        until(lambda: broker.matching.matched > number)
        topics = broker.webhooks.topics
        topics._reader = NotificationReader(broker.log, broker.matching)
        for page in (broker.webhooks._page(-1, None, 100), topics._page(-1)):
            assert page.cursor < number  # who reads past it never comes back
        other.execute("COMMIT")
        until(lambda: broker.state.subscription(lease.id) is not None)
        ((_, body),) = receiver.wait(1)
        assert json.loads(body)["data"]["sequence"] == number


def test_a_removed_sink_gets_nothing_more(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not what waits for a retry; another subscription shows that webhooks went out."""
    monkeypatch.setattr(retries, "PAUSES", (3.0,) * 7)
    with brokered(tmp_path) as broker:
        sink = Sink(receiver.url)
        mine = broker.subscribe("price < 5", sink=sink).result()
        other = broker.subscribe("price < 5", sink=Sink(receiver.url + "/other")).result()
        receiver.answers = [(500, {})] * 2
        publish(broker, {"price": 1})
        until(lambda: broker.webhooks.outbox.count() == 2)
        changed = broker.update(mine.id, ticket=mine.ticket, remove=["sink"]).result()
        assert changed.sink is None
        before = len(receiver.messages)
        publish(broker, {"price": 2})
        until(lambda: broker.webhooks.outbox.count() == 0)
        found = [json.loads(body)["data"] for _, body in receiver.wait(before + 2)[before:]]
        assert {each["subscription"] for each in found} == {other.id}
        # It is live, and its notifications are read.
        broker.matching.wait(broker.log.end - 1, 60)
        page = broker.notifications(-1, broker.readable(id=mine.id, ticket=mine.ticket))
        assert len(page.notifications) == 2
        again = broker.update(mine.id, ticket=mine.ticket, sink=sink).result()
        assert again.sink is not None
        (number,) = publish(broker, {"price": 3})
        until(lambda: number in _delivered(receiver))
    with brokered(tmp_path) as broker:  # and by the log alone
        assert broker.subscription(mine.id, ticket=mine.ticket).sink == again.sink
