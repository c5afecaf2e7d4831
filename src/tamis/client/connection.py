"""What both clients ask of the library for HTTP."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx2

from tamis import __version__
from tamis.client.call import ServiceCall
from tamis.errors import TamisError

TIMEOUT = 30.0
# What fails before anything is sent.
CONNECTING = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def options_of(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """The options of a client of the library."""
    parsed = None
    with suppress(httpx2.InvalidURL):
        parsed = httpx2.URL(url)
    if parsed is None or parsed.scheme not in ("http", "https") or not parsed.host:
        raise TamisError(f"{url!r} is not a URL such as http://127.0.0.1:8080")
    headers = {"User-Agent": f"tamis-client/{__version__}"}
    if key is not None:
        if not key.isascii() or not key.isprintable():
            raise TamisError("a key is plain ASCII, such as tamis_1f0c…")
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": parsed, "headers": headers, "timeout": httpx2.Timeout(timeout)}


def request_of(
    http: httpx2.Client | httpx2.AsyncClient, call: ServiceCall[Any], silence: float | None = None
) -> httpx2.Request:
    """A call as a request of the library. A poll may take as long as it asks to wait.

    A stream goes on as long as it says something within `silence` seconds.
    """
    usual = http.timeout
    reads = usual.read
    if silence is not None:
        reads = silence
    elif reads is not None:
        reads += float(call.params.get("wait", 0))
    return http.build_request(
        call.method,
        call.path,
        params=dict(call.params),
        headers=dict(call.headers),
        content=call.content,
        timeout=httpx2.Timeout(
            connect=usual.connect, read=reads, write=usual.write, pool=usual.pool
        ),
    )
