"""Streams whose readers do not read are cut off: they resume by their cursor."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_ABORT = "tamis.abort"


class AbortableProtocol(HttpToolsProtocol):
    """HTTP of uvicorn, with a way to end a connection at once.

    To close a connection, a server first sends what waits. A reader that does not read would keep
    it, and the memory, for ever.
    """

    def on_headers_complete(self) -> None:
        scope: Any = self.scope
        scope[_ABORT] = self.transport.abort
        super().on_headers_complete()


class PatientStream(StreamingResponse):
    """A stream that ends if its reader takes nothing for some seconds."""

    def __init__(self, content: Any, patience: float, **more: Any) -> None:
        super().__init__(content, **more)
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        async def patient(message: Message) -> None:
            try:
                async with asyncio.timeout(self._patience):
                    await send(message)
            except TimeoutError:
                if _ABORT not in scope:
                    raise OSError("the reader takes nothing") from None
                scope[_ABORT]()  # the server then says that the reader is gone

        await super().__call__(scope, receive, patient)
