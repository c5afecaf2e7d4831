"""Callers of a service that is killed again and again: they remember what was acknowledged."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Caller:
    """Publishes, subscribes, renews and cancels, one request at a time.

    A request without an answer is sent again to the next server, with the same key. Everything that
    was answered is remembered.
    """

    def __init__(self, name: str, seed: object, sink: str | None = None) -> None:
        self.name, self._sink = name, sink
        self._draw = random.Random(f"{seed} {name}")
        self._turn = 0
        self._waiting: tuple[str, str, dict[str, Any] | None, dict[str, str]] | None = None
        self.events: dict[str, int] = {}  # numbers by id
        self.texts: dict[str, str] = {}
        self.leases: dict[int, str] = {}  # tickets of subscriptions
        self.cancelled: set[int] = set()
        self.answers = 0
        self.problems: list[str] = []

    def run(self, url: str, enough: threading.Event) -> None:
        """Call a server until it is gone, or until it is enough."""
        address = urlsplit(url)
        connection = HTTPConnection(str(address.hostname), address.port, timeout=30)
        try:
            while not enough.is_set():
                self._one(connection)
        except (OSError, HTTPException):
            return  # it was killed: what was asked last is asked again
        finally:
            connection.close()

    def _one(self, connection: HTTPConnection) -> None:
        if self._waiting is None:
            self._waiting = self._next()
        method, path, body, headers = self._waiting
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        found = answer.read()
        self._waiting = None
        self.answers += 1
        self._note(method, path, answer.status, json.loads(found) if found else {}, headers)

    def _next(self) -> tuple[str, str, dict[str, Any] | None, dict[str, str]]:
        self._turn += 1
        chance, one = self._draw.random(), f"{self.name}-{self._turn}"
        if chance < 0.6:
            self.texts[one] = json.dumps({"price": self._draw.randrange(9), "title": one})
            headers = {"ce-specversion": "1.0", "ce-source": self.name, "ce-id": one,
                       "ce-type": "offer"}  # fmt: skip
            return "POST", "/v1/events", json.loads(self.texts[one]), headers
        mine = sorted(self.leases.keys() - self.cancelled)
        if mine and chance < 0.75:
            id = self._draw.choice(mine)
            ticket = {"Tamis-Ticket": self.leases[id]}
            if chance < 0.68:
                return "POST", f"/v1/subscriptions/{id}/renew", {"lease": 3600}, ticket
            return "DELETE", f"/v1/subscriptions/{id}", None, ticket
        asked: dict[str, Any] = {"condition": f"price < {self._draw.randrange(1, 9)}"}
        if self._sink is not None and self._draw.random() < 0.3:
            asked["sink"] = {"url": self._sink, "body": "none"}
        return "POST", "/v1/subscriptions", asked, {"Idempotency-Key": one}

    def unanswered_cancels(self) -> set[int]:
        """The subscription whose cancel had no answer yet: it may have ended or not."""
        if self._waiting is None or self._waiting[0] != "DELETE":
            return set()
        return {_id(self._waiting[1])}

    def _note(
        self, method: str, path: str, status: int, body: dict[str, Any], headers: dict[str, str]
    ) -> None:
        if path == "/v1/events" and status == 202:
            self.events[headers["ce-id"]] = body["first"]
        elif path == "/v1/subscriptions" and status == 201:
            self.leases[body["id"]] = body["ticket"]
        elif method == "DELETE" and status in (204, 404):  # 404: it was done before the kill
            self.cancelled.add(_id(path))
        elif not (path.endswith("/renew") and status == 200):
            self.problems.append(f"{method} {path}: {status} {body}")


def _id(path: str) -> int:
    return int(path.rpartition("/")[2])


class Receiver:
    """A real receiver of webhooks: which notifications came, and how often."""

    def __init__(self) -> None:
        self.came: dict[tuple[int, int], set[str]] = defaultdict(set)
        receiver = self

        class WebhookHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                data = body["data"]
                if body["type"] == "tamis.notification":
                    pair = data["sequence"], data["subscription"]
                    receiver.came[pair].add(self.headers["webhook-id"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *given: object) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), WebhookHandler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
