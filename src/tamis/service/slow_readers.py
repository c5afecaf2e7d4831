"""Streams whose readers do not read are cut off: they resume by their cursor."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Scope, Send

from tamis.service.guarded_protocol import ABORT


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
                if ABORT not in scope:
                    raise OSError("the reader takes nothing") from None
                scope[ABORT]()  # the server then says that the reader is gone

        await super().__call__(scope, receive, patient)
