"""A service as those who run it see it: TLS, sockets, metrics, logs, signals."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

import grpc
import httpx2
import pytest
from grpc_health.v1 import health_pb2

from tests.acceptance.pages import ROOT
from tests.service_process import ServiceProcess, service

TLS = ROOT / "tests" / "data" / "tls"


def _subscribe(client: httpx2.Client, condition: str = "price < 5") -> dict[str, str]:
    answer = client.post("/v1/subscriptions", json={"condition": condition})
    assert answer.status_code == 201
    found: dict[str, str] = answer.json()
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("operation") / "data"
    with service(folder, "--log-level", "debug", form="json") as started:
        yield started


@pytest.fixture(scope="module")
def client(running: ServiceProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=running.address, timeout=60) as client:
        yield client


def _metrics(client: httpx2.Client) -> dict[str, float]:
    text = client.get("/metrics").text
    return {
        name: float(value)
        for name, value in re.findall(r"^([a-z_]+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)
    }


def test_metrics_count_what_happens(client: httpx2.Client) -> None:
    before = _metrics(client)
    lease = _subscribe(client)
    client.post("/v1/events", json=[{"price": 4, "title": "ö"}, {"price": 9}])
    url = f"/v1/subscriptions/{lease['id']}/notifications?after=-1&wait=60"
    assert client.get(url, headers={"Tamis-Ticket": lease["ticket"]}).json()["notifications"]
    assert client.post("/v1/events", json={"price": "x"}).status_code == 400
    assert client.get("/nowhere").status_code == 404
    after = _metrics(client)

    def grown(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    assert grown("tamis_publishes_total") == 1
    assert grown("tamis_events_total") == 2
    assert grown("tamis_event_bytes_total") == len('{"price":4,"title":"ö"}{"price":9}'.encode())
    assert grown("tamis_changes_total") == 1
    assert grown("tamis_live_subscriptions") == 1
    assert grown("tamis_matches_total") == 1
    assert grown("tamis_commit_seconds_count") == grown("tamis_group_rows_count") == 2
    assert grown('tamis_refused_requests_total{reason="event"}') == 1
    assert grown('tamis_http_requests_total{method="GET",route="other",status="404"}') == 1
    assert grown('tamis_http_requests_total{method="POST",route="/v1/events",status="202"}') == 1
    assert grown('tamis_http_seconds_count{route="/v1/events"}') == 2
    assert after["tamis_log_end"] == before["tamis_log_end"] + 3
    assert after["tamis_matching_lag_events"] == 0
    assert after["tamis_disk_free_bytes"] > 0
    assert after["process_resident_memory_bytes"] > 1 << 20
    labels = {label for name in after for label in re.findall(r"(\w+)=", name)}
    assert labels <= {"le", "route", "method", "status", "reason", "outcome", "generation"}


def test_logs_are_json_with_ids_and_without_secrets(
    running: ServiceProcess, client: httpx2.Client
) -> None:
    ticket = _subscribe(client)["ticket"]
    hostile = 'x"\n{"level": "error"}'
    answer = client.get(
        f"/v1/subscriptions/0?x={ticket}",
        headers={"Tamis-Ticket": ticket, "X-Request-Id": "mine-1"},
    )
    assert answer.headers["x-request-id"] == "mine-1"
    client.get("/v1/subscriptions/0", headers={"X-Request-Id": hostile.replace("\n", " ")})
    running.wait_for("mine-1")
    entries = [json.loads(line) for line in running.said]
    assert all({"timestamp", "level", "event", "logger"} <= set(each) for each in entries)
    (mine,) = [each for each in entries if each.get("request") == "mine-1"]
    assert mine["route"] == "/v1/subscriptions/{id}"
    text = "".join(running.said)
    assert ticket not in text
    assert hostile[:2] not in text


def test_the_logs_name_damaged_notifications_and_the_answer_does_not(tmp_path: Path) -> None:
    with service(tmp_path / "data") as started, httpx2.Client(base_url=started.address) as client:
        lease = _subscribe(client)
        ticket, path = {"Tamis-Ticket": lease["ticket"]}, "/v1/subscriptions/0/notifications"
        client.post("/v1/events", json={"price": 1})
        found = client.get(path, params={"after": -1, "wait": 60}, headers=ticket, timeout=70)
        assert found.json()["cursor"] == 1
        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(30) == 0
    (part,) = (tmp_path / "data" / "notifications" / "notifications").iterdir()
    content = bytearray(part.read_bytes())
    content[20:30] = bytes(10)
    part.write_bytes(content)
    with service(tmp_path / "data") as started, httpx2.Client(base_url=started.address) as client:
        asked = {**ticket, "X-Request-Id": "mine-2"}
        answer = client.get(path, params={"after": -1}, headers=asked)
        assert answer.status_code == 503
        assert part.name not in answer.text
        assert part.name in started.wait_for("mine-2").string


def test_health_says_alive_and_ready(client: httpx2.Client) -> None:
    assert client.get("/livez").text == "alive\n"
    assert client.get("/readyz").text == "ready\n"


def test_metrics_need_a_key_where_callers_do(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--keys") as started:
        started.wait_for("nobody can call yet")
        assert httpx2.get(f"{started.address}/metrics").status_code == 401
        assert httpx2.get(f"{started.address}/livez").status_code == 200


def test_tls_and_a_socket_and_a_new_certificate_on_sighup(tmp_path: Path) -> None:
    for kind in ("crt", "key"):
        shutil.copy(TLS / f"one.{kind}", tmp_path / f"server.{kind}")
    place = tmp_path / "tamis.sock"
    options = ["--tls-certificate", str(tmp_path / "server.crt")]
    options += ["--tls-key", str(tmp_path / "server.key"), "--listen", "127.0.0.1:0"]
    with service(tmp_path / "data", *options, "--listen", f"unix:{place}") as started:
        host, port = started.address.removeprefix("https://").split(":")

        def certificate() -> str:
            return ssl.get_server_certificate((host, int(port)))

        def is_alive(trusted: Path) -> bool:
            context = ssl.create_default_context(cafile=str(trusted))
            return httpx2.get(f"{started.address}/livez", verify=context).status_code == 200

        first = certificate()
        assert first.strip() == (TLS / "one.crt").read_text().strip()
        assert is_alive(TLS / "one.crt")
        assert place.is_socket()
        (tmp_path / "server.key").write_text("no key")  # half of a renewal
        started.process.send_signal(signal.SIGHUP)
        started.wait_for("was not reloaded")
        assert certificate() == first
        for kind in ("crt", "key"):
            shutil.copy(TLS / f"two.{kind}", tmp_path / f"server.{kind}")
        started.process.send_signal(signal.SIGHUP)
        started.wait_for("was reloaded")
        assert is_alive(TLS / "two.crt")
        assert started.stop() == 0


def test_a_socket_of_this_machine(tmp_path: Path) -> None:
    place = tmp_path / "tamis.sock"
    for _ in range(2):  # the second finds what the first, killed, has left
        with service(tmp_path / "data", "--listen", f"unix:{place}") as started:
            assert started.address == f"unix:{place}"
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(place))
                caller.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
                assert b"alive" in caller.recv(4096) + caller.recv(4096)


def test_sigterm_ends_open_streams_and_exits_with_zero(tmp_path: Path) -> None:
    with (
        service(tmp_path / "data") as started,
        httpx2.Client(base_url=started.address, timeout=60) as client,
    ):
        lease = _subscribe(client)
        ended = []

        def read() -> None:
            headers = {"Accept": "text/event-stream", "Tamis-Ticket": lease["ticket"]}
            url = f"/v1/subscriptions/{lease['id']}/notifications?after=-1"
            with client.stream("GET", url, headers=headers) as answer:
                begun.set_result(None)
                ended.append(b"".join(answer.iter_bytes()))

        begun: Future[None] = Future()
        reader = Thread(target=read)
        reader.start()
        begun.result(60)
        client.post("/v1/events", json={"price": 1})
        assert started.stop() == 0
        reader.join(60)
        assert len(ended) == 1  # whole, not cut off
        assert "stopped" in started.said[-1]
    with service(tmp_path / "data") as again:
        found = again.wait_for(r"(\d+) rows in the log, 1 live .* begin=0  end=2")
        assert found[1] == "2"


def test_a_reader_that_does_not_read_is_no_error_at_the_end(tmp_path: Path) -> None:
    with (
        service(tmp_path / "data") as started,
        httpx2.Client(base_url=started.address, timeout=60) as client,
        socket.socket() as slow,
    ):
        lease = client.post("/v1/subscriptions", json={"condition": "price < 5"}).json()
        line = json.dumps({"price": 1, "title": "x" * 50_000})
        headers = {"Content-Type": "application/x-ndjson"}
        for _ in range(4):
            lines = "\n".join([line] * 200)
            assert client.post("/v1/events", content=lines, headers=headers).is_success
        host, port = started.address.removeprefix("http://").split(":")
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(
            f"GET /v1/subscriptions/{lease['id']}/notifications?after=-1 HTTP/1.1\r\nHost: x\r\n"
            f"Accept: text/event-stream\r\nTamis-Ticket: {lease['ticket']}\r\n\r\n".encode()
        )
        assert slow.recv(4096).startswith(b"HTTP/1.1 200 ")
        time.sleep(1)  # it writes until it has to wait
        assert started.stop() == 0
        assert not [each for each in started.said if " error " in each]


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with service(tmp_path / "data") as started:
        host, port = started.address.removeprefix("http://").split(":")
        slow = socket.create_connection((host, int(port)))
        slow.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert httpx2.get(f"{started.address}/livez").text == "alive\n"
        started.process.send_signal(signal.SIGTERM)
        started.wait_for("stopping")
        assert started.stop(signal.SIGTERM) == 128 + signal.SIGTERM
        slow.close()


def test_grpc_speaks_tls_with_the_same_certificate(tmp_path: Path) -> None:
    options = ["--tls-certificate", str(TLS / "one.crt"), "--tls-key", str(TLS / "one.key")]
    with service(tmp_path / "data", *options, "--grpc", "127.0.0.1:0") as started:
        place = started.wait_for(r"serving gRPC on (\S+)")[1]
        trusted = grpc.ssl_channel_credentials((TLS / "one.crt").read_bytes())
        with grpc.secure_channel(place, trusted) as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            answer = check(health_pb2.HealthCheckRequest(), timeout=60)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tls-key", "k"], "belong together"),
        (["--tls-key", "k", "--tls-certificate", "c"], "cannot be used"),
    ],
)
def test_bad_certificates_are_refused(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match=message):
        ServiceProcess(tmp_path / "data", *options)
