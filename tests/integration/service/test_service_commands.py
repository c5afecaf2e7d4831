"""The commands that call a service, as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.client import Client
from tests.serving import RunningServer, running
from tests.unit.cli.calls import Capture, refused, run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("commands") / "data") as server:
        yield server


@pytest.fixture(autouse=True)
def _at_the_server(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_SERVER", server.address)


def said(capsys: Capture, *arguments: str) -> Any:
    """The JSON that a command prints."""
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_subscription_lives_and_ends(capsys: Capture) -> None:
    assert run("subscribe", "price < 5", "--lease", "2h", "--name", "mine") == 0
    shown = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert shown.keys() == {"id", "ticket", "until"}
    whose = (shown["id"], "--ticket", shown["ticket"])
    assert said(capsys, "renew", *whose, "--lease", "never")["until"] is None
    assert run("renew", *whose) == 0
    assert "until 20" in capsys.readouterr().out
    assert said(capsys, "unsubscribe", *whose) == {"cancelled": shown["id"]}
    assert "no live subscription" in refused(capsys, "unsubscribe", *whose)


def test_files_are_published(capsys: Capture, tmp_path: Path) -> None:
    lease = said(capsys, "subscribe", "title starts with file", "--metadata", '{"a": 1}')
    rows = [{"title": f"file {at}", "price": at} for at in range(6)]
    lines, table, cells = (tmp_path / name for name in ("a.jsonl", "b.parquet", "c.csv"))
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    parquet.write_table(pa.Table.from_pylist([*rows[2:4], {"title": "other"}]), table)
    cells.write_text("title,price\nfile 4,4\nfile 5,5\n")
    found = said(capsys, "publish", *map(str, (lines, table, cells)), "--batch", "2")
    assert found == {"published": 7, "duplicates": 0, "bad": 0}
    most = ("--after", "-1", "--most", "6")
    assert run("tail", str(lease["id"]), "--ticket", lease["ticket"], *most, "--json") == 0
    events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert events == rows


def test_a_file_is_published_once(capsys: Capture, tmp_path: Path) -> None:
    """By a source and an id, also if the command is run twice."""
    file = tmp_path / "lots.csv"
    file.write_text("title,price\none,1\ntwo,2\n")
    options = ("publish", str(file), "--source", "/lots", "--id", "title")
    assert said(capsys, *options) == {"published": 2, "duplicates": 0, "bad": 0}
    assert said(capsys, *options) == {"published": 0, "duplicates": 2, "bad": 0}
    assert "go together" in refused(capsys, "publish", str(file), "--id", "title")
    file.write_text("title,price\n,1\n")
    assert "has no 'title'" in refused(capsys, *options)


def test_bad_events_are_refused_or_left_out(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "lots.jsonl"
    file.write_text('{"price": 1}\n{"price": "x"}\n')
    assert "line 2" in refused(capsys, "publish", str(file))
    assert run("publish", str(file), "--bad", "report") == 1
    assert "line 2" in capsys.readouterr().err
    assert "1 event" not in refused(capsys, "publish", str(tmp_path / "nothing.jsonl"))


def test_questions_without_a_schema_ask_the_service(capsys: Capture, tmp_path: Path) -> None:
    document = said(capsys, "schema")
    assert document["attributes"].keys() == {"price", "title"}
    assert run("schema") == 0
    assert "price" in capsys.readouterr().out
    assert said(capsys, "check", "price < 5 or price > 9")["clauses"] == ["price < 5", "price > 9"]
    assert "titel" in refused(capsys, "check", "titel = x")
    assert not said(capsys, "explain", "price < 5", '{"price": 7}')["matches"]
    assert run("explain", "price < 5", '{"price": 3}') == 0
    assert capsys.readouterr().out.startswith("matches")
    file = tmp_path / "other.yaml"
    file.write_text("attributes:\n  weight: decimal\n")
    assert said(capsys, "explain", str(file), "weight < 5", '{"weight": 3}')["matches"]
    assert "too many" in refused(capsys, "explain", str(file), "weight", "<", "5", "{}")


def test_a_back_test_of_a_folder_and_of_a_service(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "data")
    with running(Path(folder)) as server, Client(server.address) as client:
        monkeypatch.setenv("TAMIS_SERVER", server.address)
        client.publish([{"price": at} for at in range(50)])
        asked = said(capsys, "backtest", "price < 7", "--first", "2")
        assert (asked["events"], asked["matched"]) == (48, 5)
        assert said(capsys, "backtest", folder, "price < 7", "--first", "2") == asked
        assert run("backtest", "price < 7") == 0
        assert "7 of 50 events match" in capsys.readouterr().out
        report = client.backtest("price < 7", samples=2)
        assert (report.matched, len(report.samples or [])) == (7, 2)


def test_mistakes_are_told(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "column 15" in refused(capsys, "subscribe", "price < 5 and titel = x")
    assert "time span" in refused(capsys, "subscribe", "price < 5", "--lease", "soon")
    assert "JSON" in refused(capsys, "subscribe", "price < 5", "--metadata", "[1]")
    assert "without a key" in refused(capsys, "tail")
    assert "is not a URL" in refused(capsys, "schema", "--server", "here")
    monkeypatch.setenv("TAMIS_KEY", "tamis_x_y")
    assert "revoked" in refused(capsys, "subscribe", "price < 5")


def test_keys_of_a_folder_and_of_a_service(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "data")
    with running(Path(folder), "--keys") as server:
        monkeypatch.setenv("TAMIS_SERVER", server.address)
        assert "key" in refused(capsys, "keys", "list")
        role = ("--role", "admin")
        monkeypatch.setenv(
            "TAMIS_KEY", said(capsys, "keys", "create", folder, "--name", "root", *role)["key"]
        )
        assert run("keys", "create", "--name", "ann", "--role", "subscriber") == 0
        assert capsys.readouterr().out.startswith("tamis_")
        listed = said(capsys, "keys", "list")
        assert [each["name"] for each in listed] == ["root", "ann"]
        assert said(capsys, "keys", "list", folder) == listed
        assert run("keys", "revoke", listed[1]["id"]) == 0
        assert "there is no key" in refused(capsys, "keys", "revoke", folder, listed[1]["id"])


def test_dead_letters_are_tried_again(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver that is gone (410) makes dead letters at once."""
    folder, status = tmp_path / "data", [410]
    got: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    with running(folder, "--keys", "--allow-sink", "127.0.0.1") as server:
        monkeypatch.setenv("TAMIS_SERVER", server.address)
        role = ("--name", "root", "--role", "admin")
        key = said(capsys, "keys", "create", str(folder), *role)["key"]
        monkeypatch.setenv("TAMIS_KEY", key)
        sink = f"http://127.0.0.1:{receiver.server_port}/"
        lease = said(capsys, "subscribe", "price < 5", "--sink", sink)
        with Client(server.address, key=key) as client:
            client.publish([{"price": 1}, {"price": 2}])
            for _ in range(2):
                receiver.handle_request()
            while len(found := client.dead_letters().dead_letters) < 2:
                time.sleep(0.05)
        assert run("dead", "list") == 0
        assert "410" in capsys.readouterr().out
        status[0] = 204
        assert said(capsys, "dead", "retry", str(found[0].id)) == {"replayed": 1}
        receiver.handle_request()
        assert said(capsys, "dead", "replay", str(lease["id"])) == {"replayed": 1}
        receiver.handle_request()
        assert {json.loads(each)["data"]["event"]["price"] for each in got[2:]} == {1, 2}
        assert "no dead letter" in refused(capsys, "dead", "retry", "99")
    receiver.server_close()


def test_tail_outlives_a_restart(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server, Client(server.address) as client:
        lease = client.subscribe("price >= 0")
        command = [sys.executable, "-m", "tamis.cli.main", "tail", str(lease.id)]
        options = ["--ticket", lease.ticket, "--after", "-1", "--most", "4"]
        tail = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TAMIS_SERVER": server.address},
        )
        assert tail.stdout is not None
        client.publish([{"price": 0}, {"price": 1}])
        prices = [_price(next(tail.stdout)) for _ in range(2)]
        server.process.kill()
        restart = threading.Thread(target=server.start_again)
        restart.start()
        restart.join()
        with Client(server.address) as again:
            again.publish([{"price": 2}, {"price": 3}])
        prices += [_price(line) for line in tail.stdout]
        assert tail.wait(60) == 0
        assert prices == [0, 1, 2, 3]


def _price(line: str) -> Any:
    return json.loads(line.split("  ", 2)[2])["price"]
