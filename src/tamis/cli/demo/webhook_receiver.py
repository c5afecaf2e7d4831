"""A receiver of webhooks: what a program of a subscriber would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from tamis.client.webhooks import WebhookError, verify

_HOST = "127.0.0.1"
_LARGEST = 1 << 20  # bytes of a message
_NOTIFICATION = "tamis.notification"
_REMEMBERED = 100_000  # messages


class WebhookReceiver:
    """Receives signed webhooks on a free port of this machine, in threads, and counts them.

    It checks each signature, and counts a message once, however often it is sent.
    """

    def __init__(self) -> None:
        self.received = self.refused = 0
        self.last: dict[str, Any] | None = None  # the last notification
        self.by_subscription: Counter[Any] = Counter()
        self._secrets: list[str] = []
        self._known: dict[str, None] = {}  # in the order in which they came
        self._lock = Lock()
        receiver = self

        class _Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(min(length, _LARGEST))
                self.send_response(204 if receiver.take(dict(self.headers), body) else 400)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """The terminal shows counts."""

        self._server = ThreadingHTTPServer((_HOST, 0), _Handler)
        self._server.daemon_threads = True
        self.url = f"http://{_HOST}:{self._server.server_port}/"
        self._thread = Thread(target=self._server.serve_forever, name="webhooks", daemon=True)
        self._thread.start()

    def expect(self, secret: str) -> None:
        """Accept webhooks that are signed with a secret."""
        self._secrets.append(secret)

    def take(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Take a message; whether it is genuine."""
        try:
            message = verify(headers, body, self._secrets)
        except WebhookError:
            with self._lock:
                self.refused += 1
            return False
        if message.body["type"] != _NOTIFICATION:  # such as the warning that a lease ends
            return True
        with self._lock:
            if message.id not in self._known:
                self._known[message.id] = None
                self.received += 1
                if len(self._known) > _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self.last = found = message.body["data"]
                self.by_subscription[found["subscription"]] += 1
        return True

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
