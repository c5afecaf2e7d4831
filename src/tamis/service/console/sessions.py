"""Sessions of the console: a browser signs in once with a key, and sends a cookie from then on.

The cookie holds a random token, not the key. It counts only for requests that the console's own
pages make: they send the header `Tamis-Console`, which no page of another site can add, and their
`Origin` is this service. So a link or a form elsewhere cannot act for someone who is signed in.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from starlette.requests import cookie_parser

IDLE = 12 * 3600.0  # seconds without a request after which a session ends
MOST = 10_000  # sessions; then the one that waits longest ends
_SAFE = ("GET", "HEAD")
_PORT = re.compile(r":(\d{1,5})$")


class _KeptSession(NamedTuple):
    key: str
    seen: float


class ConsoleSessions:
    """Who is signed in, in the memory of this process: a restart ends all sessions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, _KeptSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, key: str) -> str:
        """Begin a session of a key; returns its token."""
        token = secrets.token_urlsafe(32)
        self._sessions[token] = _KeptSession(key, self._clock())
        while len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return token

    def key(self, token: str) -> str | None:
        """The key of a session, which goes on; None for an unknown session."""
        found = self._sessions.get(token)
        now = self._clock()
        if found is None or now - found.seen > IDLE:
            self._sessions.pop(token, None)
            return None
        self._sessions[token] = found._replace(seen=now)
        self._sessions.move_to_end(token)
        return found.key

    def end(self, token: str) -> None:
        """End a session at once."""
        self._sessions.pop(token, None)


class RequestOrigin(NamedTuple):
    """What a request says about the page that makes it."""

    method: str
    host: str
    origin: str | None
    site: str | None
    marked: bool
    cookies: str

    @classmethod
    def of(cls, method: str, headers: Iterable[tuple[bytes, bytes]]) -> RequestOrigin:
        known = {name: value.decode("latin-1") for name, value in headers}
        return cls(
            method,
            known.get(b"host", ""),
            known.get(b"origin"),
            known.get(b"sec-fetch-site"),
            b"tamis-console" in known,
            known.get(b"cookie", ""),
        )

    @property
    def is_own(self) -> bool:
        """Whether a page of this console makes the request."""
        if not self.marked or self.site not in (None, "same-origin"):
            return False
        if self.origin is None:
            return self.method in _SAFE
        return self.origin.partition("://")[2] == self.host

    @property
    def is_foreign(self) -> bool:
        """Whether a page of another site makes the request. Programs name no page."""
        if self.site not in (None, "same-origin", "none"):
            return True
        return self.origin is not None and self.origin.partition("://")[2] != self.host

    @property
    def is_secure(self) -> bool:
        """Whether the browser speaks TLS, perhaps with a proxy in between."""
        return (self.origin or "").startswith("https://")

    @property
    def cookie_name(self) -> str:
        """Browsers share cookies between the ports of a host, and services do not."""
        port = _PORT.search(self.host)
        return "tamis_console" if port is None else f"tamis_console_{port[1]}"

    @property
    def token(self) -> str | None:
        """The token of a session, from the cookie."""
        # Other services of this host set cookies too: one of an odd form must not hide ours.
        return cookie_parser(self.cookies).get(self.cookie_name)


def session_key(
    sessions: ConsoleSessions, method: str, headers: Iterable[tuple[bytes, bytes]]
) -> str | None:
    """The key with which a request of the console calls; None if it is not one."""
    asked = RequestOrigin.of(method, headers)
    token = asked.token if asked.is_own else None
    return None if token is None else sessions.key(token)
