"""Each verb of gRPC over a real channel."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tamis.client import Client
from tamis.service.rpc import tamis_pb2 as pb
from tests.grpc_stub import METHODS, Stub, refused
from tests.running import run_script
from tests.serving import RunningServer, running
from tests.unit.cli.calls import run

WITH_GRPC = ("--grpc", "GRPC")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("grpc") / "data", *WITH_GRPC) as server:
        yield server


@pytest.fixture
def channel(server: RunningServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


@pytest.fixture
def stub(channel: grpc.Channel) -> Stub:
    return Stub(channel)


def _event(**attributes: Any) -> pb.Event:
    return pb.Event(json=json.dumps(attributes).encode())


def _published(**attributes: Any) -> pb.PublishRequest:
    return pb.PublishRequest(events=[_event(**attributes)])


def _notified(stub: Stub, lease: Any, after: int = -1, **options: Any) -> Iterator[Any]:
    request = pb.NotificationsRequest(subscription=lease.id, ticket=lease.ticket, after=after)
    for group in stub.Notifications(request, **options):
        yield from group.notifications


def test_a_subscriber_is_notified(stub: Stub) -> None:
    lease = stub.Subscribe(pb.SubscribeRequest(condition="price < 5 and title = here"))
    assert timedelta(hours=23) < timedelta(seconds=lease.until.seconds - time.time())
    events = [_event(price=4, title="here"), _event(price=9)]
    receipt = stub.Publish(pb.PublishRequest(events=events))
    assert (receipt.count, receipt.duplicates) == (2, 0)
    (found,) = islice(_notified(stub, lease), 1)
    assert (found.sequence, found.subscription) == (receipt.first, lease.id)
    assert json.loads(found.event) == {"price": 4, "title": "here"}
    assert abs(found.time.seconds - time.time()) < 600
    asked = pb.NotificationsRequest(
        subscription=lease.id, ticket=lease.ticket, after=-1, body="price"
    )
    groups = (group for group in stub.Notifications(asked) if group.notifications)
    assert json.loads(next(groups).notifications[0].event) == {"price": 4}


def test_a_subscription_lives_and_ends(stub: Stub) -> None:
    asked = pb.SubscribeRequest(
        condition="price < 5", endless=True, name="mine", metadata=b'{"a":[1]}', request_key="k"
    )
    lease = stub.Subscribe(asked)
    assert stub.Subscribe(asked) == lease
    assert not lease.HasField("until")
    whose = {"id": lease.id, "ticket": lease.ticket}
    shown = stub.Show(pb.ShowRequest(**whose))
    assert (shown.condition, shown.language, shown.name) == ("price < 5", "tamis", "mine")
    assert json.loads(shown.metadata) == {"a": [1]}
    assert not shown.HasField("owner")
    renewed = stub.Renew(pb.RenewRequest(**whose, lease=timedelta(minutes=5)))
    assert 0 < renewed.until.seconds - time.time() <= 300
    changed = stub.Update(pb.UpdateRequest(**whose, condition="price > 5"))
    assert (changed.condition, changed.name) == ("price > 5", "mine")
    for ticket in ("wrong", ""):
        wrong = pb.CancelRequest(id=lease.id, ticket=ticket)
        code, problem = refused(stub.Cancel, wrong)
        assert (code, problem["status"]) == (grpc.StatusCode.NOT_FOUND, 404)
    stub.Cancel(pb.CancelRequest(**whose))
    assert refused(stub.Show, pb.ShowRequest(**whose))[0] == grpc.StatusCode.NOT_FOUND


def test_questions_and_their_mistakes(stub: Stub) -> None:
    stub.Check(pb.CheckRequest(condition="price < 5"))
    code, problem = refused(
        lambda: stub.Check(pb.CheckRequest(condition="price < 5 and titel = x"))
    )
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert (problem["column"], problem["type"]) == (15, "urn:tamis:problem:condition")
    asked = pb.ExplainRequest(condition="price < 5", event=b'{"price": 7}')
    answer = stub.Explain(asked)
    assert not answer.matches
    assert "price < 5" in answer.explanation
    assert list(stub.Match(pb.MatchRequest(event=b'{"price": 4}')).subscriptions) == []
    schema = json.loads(stub.Schema(pb.SchemaRequest()).json)
    assert schema["attributes"].keys() == {"price", "title"}


def test_an_event_with_a_source_and_an_id_is_published_once(stub: Stub) -> None:
    event = pb.Event(json=b'{"price": 1}', source="/shop", id="7", context={"subject": "x"})
    first = stub.Publish(pb.PublishRequest(events=[event]))
    again = stub.Publish(pb.PublishRequest(events=[event, _event(price=2)]))
    assert (first.duplicates, again.duplicates) == (0, 1)
    assert again.first == first.first


def test_a_stream_of_groups_is_answered_in_order(stub: Stub) -> None:
    """A group that is refused is answered with its problem, and the stream goes on."""

    def groups() -> Iterator[pb.PublishRequest]:
        for at in range(50):
            if at == 20:
                yield pb.PublishRequest(events=[_event(price=1), _event(price="x")])
            yield pb.PublishRequest(events=[_event(price=100 + at)] * 3)

    lease = stub.Subscribe(pb.SubscribeRequest(condition="price >= 100 and price < 150"))
    answers = list(stub.PublishStream(groups()))
    refused = answers.pop(20)
    assert (refused.problem.status, json.loads(refused.problem.json)["row"]) == (400, 1)
    assert [each.count for each in answers] == [3] * 50
    numbers = [each.first for each in answers]
    assert numbers == sorted(numbers)
    found = islice(_notified(stub, lease, after=numbers[0] - 1), 150)
    prices = [json.loads(each.event)["price"] for each in found]
    assert prices == [100 + at // 3 for at in range(150)]


@pytest.mark.parametrize(
    ("name", "request_", "words"),
    [
        ("Publish", pb.PublishRequest(events=[pb.Event(json=b"{")]), "not JSON"),
        ("Publish", pb.PublishRequest(events=[pb.Event(json=b'{"price": NaN}')]), "not JSON"),
        ("Publish", pb.PublishRequest(events=[pb.Event()]), "not JSON"),
        ("Subscribe", pb.SubscribeRequest(), "condition"),
        ("Subscribe", pb.SubscribeRequest(condition="price < 5", lease=timedelta(-1)), "lease"),
        ("Subscribe", pb.SubscribeRequest(condition="price < 5", metadata=b"[]"), "metadata"),
        ("Subscribe", pb.SubscribeRequest(condition="price < 5", sink={"json": b"1"}), "sink"),
        ("Subscribe", pb.SubscribeRequest(condition="price < 5", language="x"), "language"),
        ("List", pb.ListRequest(most=-1), "most"),
        ("Match", pb.MatchRequest(event=b"[" * 100_000), "event"),
        ("Explain", pb.ExplainRequest(condition="price < 5", event=b"\xff"), "event"),
        ("Show", pb.ShowRequest(id="x"), "no live subscription"),
        ("Show", pb.ShowRequest(id="9" * 40), "no live subscription"),
    ],
    ids=str,
)
def test_bad_requests_are_problems(stub: Stub, name: str, request_: Any, words: str) -> None:
    code, problem = refused(getattr(stub, name), request_)
    assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
    assert words in problem["detail"]


def test_long_messages_are_refused(stub: Stub) -> None:
    long = pb.PublishRequest(events=[pb.Event(json=b" " * (17 << 20))])
    assert refused(stub.Publish, long)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_health_and_reflection(channel: grpc.Channel) -> None:
    check: Any = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    for name in ("", "tamis.v1.Tamis"):
        answer = check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    ask: Any = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="tamis.v1.Tamis"),
    ]
    services, file = ask(iter(asked))
    names = {each.name for each in services.list_services_response.service}
    assert names >= {"tamis.v1.Tamis", "grpc.health.v1.Health"}
    found = FileDescriptorProto.FromString(file.file_descriptor_response.file_descriptor_proto[0])
    assert {each.name for each in found.service[0].method} == {*METHODS}


def test_calls_are_counted(stub: Stub, server: RunningServer) -> None:
    def counted(code: str) -> float:
        line = f'tamis_grpc_calls_total{{code="{code}",method="Check"}} '
        text = httpx2.get(f"{server.address}/metrics").text
        return sum(float(each.removeprefix(line)) for each in text.splitlines() if line in each)

    before = counted("OK"), counted("INVALID_ARGUMENT")
    stub.Check(pb.CheckRequest(condition="price < 5"))
    refused(stub.Check, pb.CheckRequest(condition="price <"))
    assert (counted("OK"), counted("INVALID_ARGUMENT")) == (before[0] + 1, before[1] + 1)


def test_a_slow_reader_gets_everything_later(stub: Stub) -> None:
    """More than the connection holds: the server reads on when the reader does."""
    lease = stub.Subscribe(pb.SubscribeRequest(condition="title starts with slow"))
    call = _notified(stub, lease)
    for at in range(10):
        events = [_event(title=f"slow {at} {each} " + "x" * 50_000) for each in range(100)]
        stub.Publish(pb.PublishRequest(events=events))
        if not at:
            next(call)
    time.sleep(1)  # nobody reads meanwhile, and others are served
    other = stub.Publish(_published(price=1))
    assert other.count == 1
    titles = [json.loads(each.event)["title"].split()[1:3] for each in islice(call, 999)]
    assert titles == [[str(at // 100), str(at % 100)] for at in range(1, 1000)]


def test_streams_outlive_nothing_and_readers_resume(tmp_path: Path) -> None:
    """Killed, a server is called again on the same port; a reader goes on from its cursor."""
    with running(tmp_path / "data", *WITH_GRPC) as server:
        prices: list[int] = []
        cursor = -1
        lease = None
        for turn in range(2):
            with grpc.insecure_channel(server.grpc) as channel:
                stub = Stub(channel)
                lease = lease or stub.Subscribe(pb.SubscribeRequest(condition="price >= 0"))
                asked = pb.NotificationsRequest(
                    subscription=lease.id, ticket=lease.ticket, after=cursor
                )
                call = stub.Notifications(asked, wait_for_ready=True)
                stub.Publish(_published(price=10 * turn))
                stub.Publish(_published(price=10 * turn + 1))
                while len(prices) < 2 * turn + 2:
                    group = next(call)
                    prices += [json.loads(each.event)["price"] for each in group.notifications]
                    cursor = group.cursor
                if not turn:
                    server.process.kill()
                    code, _ = refused(list, call)
                    assert code == grpc.StatusCode.UNAVAILABLE
                    server.start_again()
        assert prices == [0, 1, 10, 11]


def test_a_stop_ends_open_streams(tmp_path: Path) -> None:
    """Readers and publishers that say nothing do not hold a server."""
    with running(tmp_path / "data", *WITH_GRPC) as server:
        channel = grpc.insecure_channel(server.grpc)
        stub = Stub(channel)
        lease = stub.Subscribe(pb.SubscribeRequest(condition="price >= 0"))
        asked = pb.NotificationsRequest(subscription=lease.id, ticket=lease.ticket)
        reader = stub.Notifications(asked)
        next(reader)
        held = threading.Event()

        def groups() -> Iterator[pb.PublishRequest]:
            yield _published(price=1)
            held.wait(60)

        publisher = stub.PublishStream(groups())
        assert next(publisher).count == 1
        server.process.terminate()
        assert server.process.wait(30) == 0
        held.set()
        for call in (reader, publisher):
            try:
                list(call)
            except grpc.RpcError as why:
                error: Any = why
                assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        channel.close()


def test_keys_make_owners(tmp_path: Path) -> None:
    with (
        running(tmp_path / "data", *WITH_GRPC, "--keys") as server,
        grpc.insecure_channel(server.grpc) as channel,
    ):
        code, _ = refused(Stub(channel).Publish, _published(price=1))
        assert code == grpc.StatusCode.UNAUTHENTICATED
        code, _ = refused(Stub(channel).Schema, pb.SchemaRequest())
        assert code == grpc.StatusCode.UNAUTHENTICATED
        code, _ = refused(Stub(channel, "tamis_x_y").Publish, _published(price=1))
        assert code == grpc.StatusCode.UNAUTHENTICATED
        keys: dict[str, str] = {}
        for name, role in (("root", "admin"), ("ann", "subscriber")):
            keys[name] = _key(tmp_path / "data", name, role)
        ann, root = Stub(channel, keys["ann"]), Stub(channel, keys["root"])
        code, _ = refused(ann.Publish, _published(price=1))
        assert code == grpc.StatusCode.PERMISSION_DENIED
        ids = [
            ann.Subscribe(pb.SubscribeRequest(condition=f"price < {at}")).id for at in range(1, 6)
        ]
        first = ann.List(pb.ListRequest(most=3))
        rest = ann.List(pb.ListRequest(most=3, cursor=first.cursor))
        assert [each.id for each in (*first.subscriptions, *rest.subscriptions)] == ids
        assert not rest.HasField("cursor")
        assert first.subscriptions[0].owner == "ann"
        assert len(root.List(pb.ListRequest(owner="ann")).subscriptions) == 5
        code, _ = refused(ann.List, pb.ListRequest(owner="root"))
        assert code == grpc.StatusCode.PERMISSION_DENIED
        receipt = root.Publish(_published(price=4))
        stream = ann.Notifications(pb.NotificationsRequest(after=receipt.first - 1))
        groups = (each for each in stream if each.notifications)
        assert [each.subscription for each in next(groups).notifications] == ids[4:]
        assert list(root.Match(pb.MatchRequest(event=b'{"price": 3}')).subscriptions) == ids[3:]
        with Client(server.address, key=keys["root"]) as client:
            (id,) = [each.id for each in client.list_keys() if each.name == "ann"]
            client.revoke_key(id)
        root.Publish(_published(price=4))
        assert refused(list, stream)[0] == grpc.StatusCode.UNAUTHENTICATED
        assert run("serve", str(tmp_path / "other"), "--listen", "127.0.0.1:0", "--grpc", "x") == 2


def _key(folder: Path, name: str, role: str) -> str:
    made = run_script(
        "import sys; from tamis.cli.main import main; main(sys.argv[1:])",
        "keys", "create", folder, "--name", name, "--role", role,
    )  # fmt: skip
    return made.stdout.strip()


def test_a_port_that_is_taken_is_refused(server: RunningServer, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="cannot listen"):
        RunningServer(tmp_path / "data", "--grpc", server.grpc)


def test_rates_hold_over_grpc_and_http_together(tmp_path: Path) -> None:
    with (
        running(tmp_path / "data", *WITH_GRPC, "--limit-requests", "1") as server,
        grpc.insecure_channel(server.grpc) as channel,
    ):
        stub = Stub(channel)
        refusals = 0
        for _ in range(30):  # ten are allowed at once
            try:
                stub.Schema(pb.SchemaRequest())
            except grpc.RpcError as why:
                error: Any = why
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                assert "retry-after" in dict(error.trailing_metadata())
                refusals += 1
        assert refusals
        answers = list(stub.PublishStream(_published(price=1) for _ in range(30)))
        assert 429 in {each.problem.status for each in answers}
        with httpx2.Client(base_url=server.address) as client:
            assert 429 in {client.get("/v1/schema").status_code for _ in range(30)}
