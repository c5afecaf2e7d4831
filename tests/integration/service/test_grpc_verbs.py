"""The verbs of gRPC beyond publishing and subscribing, each over a real channel."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import pytest

from tamis.service.rpc import tamis_pb2 as pb
from tests.grpc_stub import METHODS, Stub, refused
from tests.running import run_script
from tests.serving import RunningServer, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("grpc") / "data"
    with running(folder, "--grpc", "GRPC", "--allow-sink", "127.0.0.1") as server:
        yield server


@pytest.fixture(scope="module")
def key(server: RunningServer) -> str:
    made = run_script(
        "import sys; from tamis.cli.main import main; main(sys.argv[1:])",
        "keys", "create", server.folder, "--name", "boss", "--role", "admin",
    )  # fmt: skip
    return made.stdout.strip()


@pytest.fixture
def channel(server: RunningServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


@pytest.fixture
def stub(channel: grpc.Channel) -> Stub:
    return Stub(channel)


@pytest.fixture
def admin(channel: grpc.Channel, key: str) -> Stub:
    return Stub(channel, key)


def _published(stub: Stub, **attributes: Any) -> int:
    event = pb.Event(json=json.dumps(attributes).encode())
    return int(stub.Publish(pb.PublishRequest(events=[event])).first)


def _until(check: Callable[[], Any]) -> Any:
    for _ in range(3000):
        if found := check():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def test_many_subscriptions(stub: Stub) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    asked = pb.SubscribeManyRequest(
        subscriptions=[
            pb.BulkSubscription(condition="price < 5", name="first", metadata=b'{"a": 1}'),
            pb.BulkSubscription(condition="prise < 5"),
            pb.BulkSubscription(condition="price < 6", until=soon),
            pb.BulkSubscription(condition="price < 7", metadata=b"[]"),
            pb.BulkSubscription(condition="price < 8", lease=timedelta(seconds=60)),
        ],
        request_key="many",
    )
    outcomes = stub.SubscribeMany(asked).outcomes
    assert ["error" if each.HasField("error") else "id" for each in outcomes] == [
        "id", "error", "id", "error", "id",
    ]  # fmt: skip
    assert "prise" in outcomes[1].error
    assert "metadata" in outcomes[3].error
    assert not outcomes[0].HasField("until")
    assert outcomes[2].until.seconds == int(soon.timestamp())
    shown = stub.Show(pb.ShowRequest(id=outcomes[0].id, ticket=outcomes[0].ticket))
    assert (shown.name, json.loads(shown.metadata)) == ("first", {"a": 1})
    again = stub.SubscribeMany(asked).outcomes
    assert [each.id for each in again] == [each.id for each in outcomes]
    asked.together = True
    code, problem = refused(stub.SubscribeMany, asked)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "none was added" in problem["detail"]


def test_a_sink_is_removed(stub: Stub) -> None:
    sink = pb.Sink(json=b'{"url": "http://127.0.0.1:9/", "body": "none"}')
    lease = stub.Subscribe(pb.SubscribeRequest(condition="price = 77", sink=sink, name="it"))
    whose = {"id": lease.id, "ticket": lease.ticket}
    assert stub.Show(pb.ShowRequest(**whose)).HasField("sink")
    changed = stub.Update(pb.UpdateRequest(**whose, remove=["sink", "name"]))
    assert not changed.HasField("sink")
    assert not changed.HasField("name")
    assert changed.condition == "price = 77"
    code, problem = refused(stub.Update, pb.UpdateRequest(**whose, remove=["condition"]))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "cannot be removed" in problem["detail"]


def test_events_are_shown(stub: Stub) -> None:
    number = _published(stub, price=3, title="shown")
    found = stub.ShowEvent(pb.ShowEventRequest(number=number))
    assert json.loads(found.json) == {"price": 3, "title": "shown"}
    found = stub.ShowEvent(pb.ShowEventRequest(number=number, cloud_event=True))
    assert json.loads(found.json)["data"] == {"price": 3, "title": "shown"}
    unknown = pb.ShowEventRequest(number=10**9)
    assert refused(stub.ShowEvent, unknown)[0] == grpc.StatusCode.NOT_FOUND


def test_back_tests(stub: Stub) -> None:
    first = _published(stub, price=555)
    _published(stub, price=556)
    asked = pb.StartBacktestRequest(condition="price = 555", first=first, samples=3)
    found = stub.StartBacktest(asked)
    found = _until(
        lambda: next(
            (
                each
                for each in [stub.ShowBacktest(pb.ShowBacktestRequest(id=found.id))]
                if each.HasField("matched")
            ),
            None,
        )
    )
    assert (found.matched, found.events, found.first) == (1, 2, first)
    assert [json.loads(each.event) for each in found.samples] == [{"price": 555}]
    assert sum(each.matched for each in found.over_time) == 1
    stub.CancelBacktest(pb.CancelBacktestRequest(id=found.id))
    gone = pb.ShowBacktestRequest(id=found.id)
    assert refused(stub.ShowBacktest, gone)[0] == grpc.StatusCode.NOT_FOUND
    code, problem = refused(
        stub.StartBacktest, pb.StartBacktestRequest(condition="price = 1", samples=1000)
    )
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "samples" in problem["detail"]


def test_the_schema_is_extended(stub: Stub) -> None:
    steps = [
        stub.CreateDomain(
            pb.CreateDomainRequest(
                name="states", domain=b'{"kind": "enumerated", "values": ["new", "used"]}'
            )
        ),
        stub.CreateAttribute(pb.CreateAttributeRequest(name="state", domain="states")),
        stub.CreateAttribute(
            pb.CreateAttributeRequest(
                name="size", definition=b'{"kind": "integer", "low": 0, "high": 9}'
            )
        ),
        stub.CreateEventType(
            pb.CreateEventTypeRequest(name="offer", attributes={"state": "mandatory"})
        ),
        stub.ExtendEventType(pb.ExtendEventTypeRequest(name="offer", attribute="size")),
        stub.GrowDomain(pb.GrowDomainRequest(name="states", values=b'["broken"]')),
    ]
    assert [each.sequence for each in steps] == sorted({each.sequence for each in steps})
    document = json.loads(stub.Schema(pb.SchemaRequest()).json)
    assert "broken" in json.dumps(document)
    code, problem = refused(
        stub.CreateAttribute, pb.CreateAttributeRequest(name="state", domain="text")
    )
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert problem["rule"] == "create-attribute"
    for wrong in (b"7", b"{", b"[1]"):
        asked = pb.GrowDomainRequest(name="states", values=wrong)
        assert refused(stub.GrowDomain, asked)[0] == grpc.StatusCode.INVALID_ARGUMENT


class _Receiver:
    """A webhook that is gone, until it is back."""

    def __init__(self) -> None:
        self.answer = 410
        self.bodies: list[Any] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.answer == 204:
                    receiver.bodies.append(json.loads(body))
                self.send_response(receiver.answer)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"


def test_dead_letters_and_secrets(admin: Stub) -> None:
    receiver = _Receiver()
    threading.Thread(target=receiver.server.serve_forever, daemon=True).start()
    sink = pb.Sink(json=json.dumps({"url": receiver.url}).encode())
    lease = admin.Subscribe(pb.SubscribeRequest(condition="title = dead", sink=sink))
    first = _published(admin, price=1, title="dead")
    _published(admin, price=2, title="dead")

    def letters() -> list[Any]:
        found = admin.DeadLetters(pb.DeadLettersRequest()).dead_letters
        return [each for each in found if each.subscription == lease.id]

    dead = _until(lambda: found if len(found := letters()) == 2 else None)
    assert dead[0].sequence == first
    assert dead[0].attempts == 1
    page = admin.DeadLetters(pb.DeadLettersRequest(most=1))
    assert page.cursor == page.dead_letters[0].id
    old = lease.secret
    rotated = admin.RotateSecret(pb.RotateSecretRequest(id=lease.id))
    assert rotated.secret != old
    receiver.answer = 204
    assert admin.RetryDeadLetter(pb.RetryDeadLetterRequest(id=dead[0].id)).replayed == 1
    _until(lambda: len(receiver.bodies) == 1)
    assert admin.Replay(pb.ReplayRequest(id=lease.id)).replayed == 1
    _until(lambda: len(receiver.bodies) == 2)
    assert letters() == []
    missing = pb.RetryDeadLetterRequest(id=dead[0].id)
    assert refused(admin.RetryDeadLetter, missing)[0] == grpc.StatusCode.NOT_FOUND
    receiver.server.shutdown()
    receiver.server.server_close()


def test_anonymous_callers_have_no_dead_letters_cursors_or_keys(stub: Stub) -> None:
    denied = grpc.StatusCode.PERMISSION_DENIED
    for method, request in (
        (stub.DeadLetters, pb.DeadLettersRequest()),
        (stub.ShowCursor, pb.ShowCursorRequest(consumer="x")),
        (stub.SetCursor, pb.SetCursorRequest(consumer="x", cursor=1)),
        (stub.CreateKey, pb.CreateKeyRequest(name="eve", roles=["admin"])),
        (stub.ListKeys, pb.ListKeysRequest()),
        (stub.RevokeKey, pb.RevokeKeyRequest(id="x")),
        (stub.Operators, pb.OperatorsRequest()),
    ):
        assert refused(method, request)[0] == denied


def test_cursors_and_operators(admin: Stub) -> None:
    assert admin.SetCursor(pb.SetCursorRequest(consumer="mine", cursor=7)).cursor == 7
    assert admin.ShowCursor(pb.ShowCursorRequest(consumer="mine")).cursor == 7
    other = pb.ShowCursorRequest(consumer="other")
    assert refused(admin.ShowCursor, other)[0] == grpc.StatusCode.NOT_FOUND
    assert json.loads(admin.Operators(pb.OperatorsRequest()).json)["operators"] == []


def test_keys(channel: grpc.Channel, admin: Stub) -> None:
    made = admin.CreateKey(pb.CreateKeyRequest(name="ann", roles=["subscriber"])).key
    ann = Stub(channel, made)
    ann.Check(pb.CheckRequest(condition="price < 5"))
    assert refused(ann.ListKeys, pb.ListKeysRequest())[0] == grpc.StatusCode.PERMISSION_DENIED
    (shown,) = [each for each in admin.ListKeys(pb.ListKeysRequest()).keys if each.name == "ann"]
    assert list(shown.roles) == ["subscriber"]
    assert abs(shown.created.seconds - time.time()) < 600
    admin.RevokeKey(pb.RevokeKeyRequest(id=shown.id))
    check = pb.CheckRequest(condition="price < 5")
    assert refused(ann.Check, check)[0] == grpc.StatusCode.UNAUTHENTICATED


def test_streams_announce_the_end_of_a_lease(stub: Stub) -> None:
    asked = pb.SubscribeRequest(condition="price = 12345", lease=timedelta(seconds=8))
    lease = stub.Subscribe(asked)
    request = pb.NotificationsRequest(subscription=lease.id, ticket=lease.ticket)
    groups = stub.Notifications(request, timeout=60)
    (ending,) = next(group.endings for group in groups if group.endings)
    assert ending.subscription == lease.id
    assert ending.until.seconds == lease.until.seconds


def test_every_method_has_a_test() -> None:
    """Here or beside: the names of all methods occur in the tests."""
    folder = Path(__file__).parent
    text = "".join(each.read_text() for each in folder.glob("test_grpc*.py"))
    assert [name for name in METHODS if f".{name}(" not in text and f".{name}," not in text] == []
