"""Readers that wait for notifications, without a thread each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tamis.broker.matching.notification_files import NotificationPairs


class Waiting:
    """Wakes the coroutines that wait when notifications were found.

    The matching thread calls `found`. It wakes the loop at most once until the loop has run.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()
        self._pending = False
        self.closing = False
        self.listener: Callable[[NotificationPairs], None] = lambda pairs: None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake coroutines of this loop from now on."""
        self._loop = loop

    def found(self, pairs: NotificationPairs) -> None:
        """Something was matched. Called in another thread."""
        if len(pairs.numbers):
            self.listener(pairs)
            self.notice()

    def notice(self) -> None:
        """There is something to read. Called in any thread."""
        if self._loop is not None and not self._pending:
            self._pending = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """End all waits: the server stops."""
        self.closing = True
        self._wake()

    def _wake(self) -> None:
        self._pending = False
        self._event.set()
        self._event = asyncio.Event()

    def next_wake(self) -> asyncio.Event:
        """What the next wake sets. A reader asks before it reads, so that it misses no wake."""
        return self._event

    async def wait(self, wake: asyncio.Event, seconds: float) -> None:
        """Wait for a wake, at most so long."""
        if not self.closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), seconds)
