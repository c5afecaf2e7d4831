"""One read for many streams.

A stream that has caught up joins the others. From then on one task reads the notifications of all
their subscriptions, a page at a time, and hands them out. With a reading of its own for each, a
thousand streams would ask the log and the database a thousand times for every event.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from starlette.concurrency import run_in_threadpool

from tamis.broker.broker import Broker
from tamis.broker.matching.notification_reader import Notification, Page
from tamis.broker.matching.wanted_ids import WantedIds
from tamis.broker.notification_body import Body
from tamis.errors import TamisError
from tamis.service.waiting import Waiting
from tamis.store.subscription_snapshot import Id

PAGE = 10_000  # notifications that are read at once
BEHIND = 1 << 20  # bytes that may wait for a reader
_LOOK = 15.0  # seconds without notifications after which a task looks again

ReadPage = Callable[[int, WantedIds, int], Awaitable[Page]]


class SharedStream:
    """The notifications of one subscription for one reader, from a cursor on.

    After its end, the cursor says up to where it has them: the reader goes on alone from there.
    """

    def __init__(self, id: Id, cursor: int) -> None:
        self.id, self.cursor = id, cursor
        self.ended = False  # more came than may wait, or the reading has failed
        self._waiting: list[bytes] = []
        self._size = 0
        self._filled = asyncio.Event()

    def put(self, number: int, message: bytes) -> None:
        """Take a notification, unless the reader has it already."""
        if number > self.cursor and not self.ended:
            self.cursor = number
            self._waiting.append(message)
            self._size += len(message)
            self._filled.set()
            if self._size > BEHIND:
                self.end()

    def reach(self, cursor: int) -> None:
        """Note that all notifications up to a cursor were put."""
        if not self.ended:
            self.cursor = max(self.cursor, cursor)

    def wake(self) -> None:
        """Let the reader look: there may be something else for it."""
        self._filled.set()

    def end(self) -> None:
        self.ended = True
        self.wake()

    async def take(self, seconds: float) -> bytes:
        """What has come; waits for it, and returns nothing after so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._filled.wait(), seconds)
        message = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        if not self.ended:
            self._filled.clear()
        return message


class SharedReading:
    """The streams that read together: those with the same kind of body."""

    def __init__(
        self, read: ReadPage, written: Callable[[Notification], bytes], waiting: Waiting
    ) -> None:
        self._read, self._written, self._waiting = read, written, waiting
        self._streams: dict[Id, list[SharedStream]] = defaultdict(list)
        self._wanted = WantedIds([])
        self._cursor = -1
        self._turn = asyncio.Lock()  # held while a page is read: nobody joins meanwhile
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._streams.values()))

    async def join(self, stream: SharedStream) -> None:
        """Let a stream read with the others. It should have caught up, or nearly so."""
        async with self._turn:
            if self._task is None:  # a task that waits would not look again at earlier ones
                self._cursor = stream.cursor
            while stream.cursor < self._cursor and not stream.ended:  # they went on meanwhile
                self._give(stream, await self._read(stream.cursor, WantedIds([stream.id]), PAGE))
            self._streams[stream.id].append(stream)
            self._wanted = WantedIds(list(self._streams))
            if self._task is None:
                self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        for some in self._streams.values():
            for stream in some:
                stream.wake()

    def leave(self, stream: SharedStream) -> None:
        """Let a stream go: its reader is gone. It may not have joined."""
        others = [each for each in self._streams.pop(stream.id, ()) if each is not stream]
        if others:
            self._streams[stream.id] = others
        else:
            self._wanted = WantedIds(list(self._streams))

    def _give(self, stream: SharedStream, page: Page) -> None:
        for each in page.notifications:
            stream.put(each.sequence, self._written(each))
        stream.reach(page.cursor)

    async def _run(self) -> None:
        try:
            while self._streams and not self._waiting.closing:
                wake = self._waiting.next_wake()
                async with self._turn:
                    page = await self._read(self._cursor, self._wanted, PAGE)
                    self._hand_out(page)
                if not page.notifications:
                    await self._waiting.wait(wake, _LOOK)
        except TamisError:  # coming back tells each of them what it was
            pass
        finally:
            self._task = None
            for stream in [each for some in self._streams.values() for each in some]:
                stream.end()

    def _hand_out(self, page: Page) -> None:
        for each in page.notifications:
            streams = self._streams.get(each.subscription, ())
            message = self._written(each) if streams else b""
            for stream in streams:
                stream.put(each.sequence, message)
        self._cursor = page.cursor
        for some in self._streams.values():
            for stream in some:
                stream.reach(page.cursor)


class SharedReadings:
    """The readings of a server, one for each kind of body that some stream asks for."""

    def __init__(self, broker: Broker, waiting: Waiting) -> None:
        self._broker, self._waiting = broker, waiting
        self._readings: dict[Body | None, SharedReading] = {}

    def __len__(self) -> int:
        return len(self._readings)

    def wake(self) -> None:
        """Let all readers look. Called in the loop."""
        for reading in self._readings.values():
            reading.wake()

    @asynccontextmanager
    async def joined(
        self, id: Id, cursor: int, body: Body | None, written: Callable[[Notification], bytes]
    ) -> AsyncIterator[SharedStream]:
        """A stream of one subscription that reads with the others, until the block ends."""

        async def read(after: int, wanted: WantedIds, most: int) -> Page:
            page: Page = await run_in_threadpool(
                self._broker.notifications, after, wanted, most, body=body
            )
            return page

        if body not in self._readings:
            self._readings[body] = SharedReading(read, written, self._waiting)
        reading, stream = self._readings[body], SharedStream(id, cursor)
        try:
            await reading.join(stream)
            yield stream
        finally:
            reading.leave(stream)
            if not len(reading) and self._readings.get(body) is reading:
                del self._readings[body]
