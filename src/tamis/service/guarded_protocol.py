"""HTTP of uvicorn, for callers who send too slowly, too much, or do not read."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tamis.service.problems import ProblemDetails

HEADERS = 64 << 10  # bytes of a request before its body
RATE = 10 << 10  # bytes of a body that earn a second


class GuardedProtocol(HttpToolsProtocol):
    """A connection that ends if a request does not arrive.

    uvicorn waits for the rest of a request for ever, so a few callers could hold every connection
    that the process may have. The headers have the time of the setting `slow-request`, from the
    first byte or the opening of the connection on. A body has a second more for each 10 KiB that
    came. A request that is complete may take as long as it needs: a long poll waits.

    Nor does uvicorn give up an answer that nobody reads. A caller who takes nothing of what waits
    for the time of `slow-reader` loses the connection, and a stream resumes by its cursor.
    """

    def __init__(self, config: Any, *given: Any, **more: Any) -> None:
        super().__init__(config, *given, **more)
        settings = config.app.state.server.settings
        self._patience = settings.slow_request.total_seconds()
        self._reading_time = settings.slow_reader.total_seconds()
        self._incomplete, self._in_headers = True, True
        self._began, self._came = 0.0, 0
        self._timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        self._set_timer(self._patience)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self._cancel_reader_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._cancel_reader_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self._incomplete and self._is_answered:  # the next request on this connection
            self._begin()
        if self._in_headers:
            self._came += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_headers and self._came > HEADERS:
            self._refuse(431, f"the headers of the request have more than {HEADERS:,} bytes")
        elif self._incomplete and self._timer is None:
            self._set_timer(self._patience)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not a request of HTTP/1.1")

    def on_message_begin(self) -> None:
        self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers, self._came = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._came += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._incomplete = self._in_headers = False
        self._cancel_timer()
        super().on_message_complete()

    @property
    def _is_answered(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _begin(self) -> None:
        """A request may begin now."""
        self._incomplete = self._in_headers = True
        self._began, self._came = self.loop.time(), 0

    def _set_timer(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._look)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def hurry(self, seconds: float) -> None:
        """Give a caller who takes nothing no more than this time: the server stops."""
        self._reading_time = min(self._reading_time, seconds)
        if self._reader_timer is not None:
            self._await_reader()

    def _await_reader(self) -> None:
        """Look later whether the caller has taken some of what waits."""
        self._cancel_reader_timer()
        waits = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(self._reading_time, self._look_at_reader, waits)

    def _look_at_reader(self, waited: int) -> None:
        if self.transport.get_write_buffer_size() >= waited:
            self.transport.abort()  # closing would first send what waits
        else:
            self._await_reader()

    def _cancel_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _look(self) -> None:
        """End the connection, unless more of the request came or the service itself is slow."""
        self._timer = None
        if self.transport.is_closing():
            return
        earned = 0.0 if self._in_headers else self._came / RATE
        left = self._began + self._patience + earned - self.loop.time()
        if self.flow.read_paused or (self._in_headers and not self._is_answered):
            left = self._patience
        if left > 0:
            self._set_timer(left)
        else:
            self._refuse(408, "the request did not arrive in time; send it again, all at once")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer, if no answer has begun, and close. The route learns that the caller is gone."""
        if self._is_answered or not self.cycle.response_started:
            body = ProblemDetails.of(status, "request", detail, {}).body
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nconnection: close\r\n"
                f"content-type: application/problem+json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
