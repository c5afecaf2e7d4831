"""Sends notifications to webhooks: one thread with a loop of its own.

Notifications are read page by page, and each message goes into the queue of its sink. No sink waits
for another: what a slow or failing sink cannot take within a second is stored in the outbox and
sent later, and reading goes on. The cursor moves over a page once each of its messages is delivered
or stored, in the transaction that stores them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple

from tamis.broker import metrics
from tamis.broker.delivery import retries
from tamis.broker.delivery.message import DeliveryAttempt, OutgoingMessage, SentPage
from tamis.broker.delivery.outbox import DeliveryKey, Outbox, PendingDelivery, Settlement
from tamis.broker.delivery.sender import TIMEOUT, Sender
from tamis.broker.delivery.sink_address import SinkRules
from tamis.broker.delivery.sink_queue import PATIENCE, SinkQueue
from tamis.store.subscription_snapshot import Id

PAGE = 500  # notifications that are read together
WINDOW = 4 * PAGE  # messages in memory
AT_ONCE = 256  # requests under way
PER_OWNER = 32  # of them for one owner
_LOOK = 1.0  # seconds between two looks at what is due
_SETTLE = 0.1  # seconds between two transactions, unless much is to be stored
_COUNT = 30.0  # seconds between two counts of what waits
_GRACE = 2.0  # seconds for the requests under way when it stops


class MessagePage(NamedTuple):
    """Messages to send, and the cursor after their notifications."""

    messages: list[OutgoingMessage]
    cursor: int
    within: Id | None = None  # the last subscription that was read of the event after the cursor


class DeliverySource(NamedTuple):
    """What a deliverer asks the broker for."""

    page: Callable[[int, Id | None, int], MessagePage]  # of subscriptions with sinks
    message: Callable[[PendingDelivery], OutgoingMessage | None]  # None: it is not wanted any more
    waiting: Callable[[], Counter[str | None]]  # how many deliveries of each owner wait
    look: Callable[[], None]  # for leases that end soon
    identity: str
    clock: Callable[[], int]
    most: int  # deliveries of an owner that may wait
    dead: Callable[[], Counter[str | None]]  # how many dead letters each owner has
    most_dead: int  # dead letters of an owner that are kept


class Deliverer:
    """Delivers from the outbox's cursor on, until it is stopped."""

    def __init__(
        self, source: DeliverySource, outbox: Outbox, rules: SinkRules, start: int
    ) -> None:
        self._source, self._outbox, self._rules = source, outbox, rules
        self._cursor = self._stored = outbox.begin(start)
        self._queues: dict[str, SinkQueue] = {}
        self._owners: dict[str | None, asyncio.Semaphore] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._pages: deque[SentPage] = deque()
        self._within: Id | None = None  # an event with many notifications is read in several pages
        self._passed = self._stored  # the cursor after the last page of which nothing is open
        self._settled = Settlement()  # what the next transaction stores
        self._held: set[DeliveryKey] = set()  # messages in memory that have a row in the outbox
        self._waiting, self._dead = source.waiting(), source.dead()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._news = True  # there may be notifications to read
        self._look_at = self._settle_at = 0.0
        self._count_at = time.monotonic() + _COUNT
        self._stopping = False
        self.delivered = 0
        self.failed = 0  # attempts
        self.failure: BaseException | None = None  # of the last round
        self._files = ThreadPoolExecutor(1, "tamis-webhook-files")
        self._thread = Thread(target=self._run, name="tamis-webhooks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There are new notifications, or rows of the outbox. Called in any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._notice)

    def _notice(self) -> None:
        self._news, self._look_at = True, 0.0
        self._wake.set()

    def stop(self) -> None:
        """End soon; what was not sent is sent after the next start."""
        self._stopping = True
        self.wake()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._deliver())
        finally:
            self._loop.close()
            self._files.shutdown()

    # -- the loop --------------------------------------------------------------------------------

    async def _deliver(self) -> None:
        async with Sender(self._rules, self._source.identity) as sender:
            self._sender = sender
            while not self._stopping:
                (outcome,) = await asyncio.gather(self._round(), return_exceptions=True)
                self.failure = outcome if isinstance(outcome, Exception) else None
                if self.failure is not None:
                    await self._sleep(_LOOK)
                elif outcome is not True:
                    settled = not (self._settled.size or self._pages)
                    await self._sleep(_LOOK if settled else _SETTLE)
            await self._end()

    async def _round(self) -> bool:
        """Read what there is room for, and store what is settled; whether to go on at once."""
        now = time.monotonic()
        self._give_way()
        if now >= self._settle_at or self._settled.size >= PAGE:
            await self._settle()
            self._settle_at = now + _SETTLE
        more = False
        if now >= self._look_at:
            await self._in_thread(self._source.look)
            more = await self._read_due()
            self._look_at = now if more else now + _LOOK
            self._news = True  # nothing wakes it for events without notifications
        if now >= self._count_at:
            self._waiting = await self._in_thread(self._source.waiting)
            self._dead = await self._in_thread(self._source.dead)
            self._count_at = now + _COUNT
        return await self._read_page() or more

    async def _read_page(self) -> bool:
        """Take up a page of notifications, if there is room; whether there was one."""
        if not self._news or self._count() >= WINDOW:
            return False
        self._news = False
        page: MessagePage = await self._in_thread(
            self._source.page, self._cursor, self._within, PAGE
        )
        sent = SentPage(page.cursor, time.monotonic(), set(page.messages), bool(page.messages))
        self._pages.append(sent)
        self._cursor, self._within = page.cursor, page.within
        for message in page.messages:
            message.page = sent
            self._accept(message)
        self._news = self._news or sent.counts
        return sent.counts

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    async def _end(self) -> None:
        """Wait a little for the requests under way: the next start sends the others again."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_GRACE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        (outcome,) = await asyncio.gather(self._settle(), return_exceptions=True)
        self.failure = outcome if isinstance(outcome, Exception) else None

    async def _in_thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """Files and the database are read in one thread: they must not hold up the loop."""
        return await self._loop.run_in_executor(self._files, work, *given)

    # -- queues ----------------------------------------------------------------------------------

    def _count(self) -> int:
        """How many messages are in memory."""
        return sum(len(page.open) for page in self._pages) + len(self._held)

    def _accept(self, message: OutgoingMessage) -> None:
        """Put a message into the queue of its sink, or store it if that is too long."""
        queue = self._queues.setdefault(message.url, SinkQueue())
        delay = queue.delay()
        if delay > PATIENCE:
            self._postpone(message, delay, "the sink is failing" if queue.is_open else "")
            return
        queue.waiting.append(message)
        self._work(queue)

    def _work(self, queue: SinkQueue) -> None:
        """Start as many requests to a sink as it may have."""
        while queue.may_send:
            if queue.is_open:  # what waits is not tried any more
                message, delay = queue.waiting.popleft(), queue.delay()
                self._postpone(message, delay, "the sink is failing")
                continue
            message = queue.waiting.popleft()
            queue.under_way[message] = time.monotonic()
            task = self._loop.create_task(self._send(queue, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, queue: SinkQueue, message: OutgoingMessage) -> None:
        owner = message.subscription.owner
        slots = self._owners.setdefault(owner, asyncio.Semaphore(PER_OWNER))
        async with slots, self._slots:  # who holds one of all slots waits for nothing else
            queue.under_way[message] = time.monotonic()
            (outcome,) = await asyncio.gather(self._sender.send(message), return_exceptions=True)
        if isinstance(outcome, asyncio.CancelledError):
            raise outcome
        # Whatever fails, such as a secret that cannot be made, fails like a sink.
        attempt = (
            DeliveryAttempt(False, str(outcome)[:500])
            if isinstance(outcome, BaseException)
            else outcome
        )
        queue.note(message, attempt)
        self._finish(message, attempt)
        self._work(queue)
        if queue.is_idle:
            self._queues.pop(message.url, None)

    def _give_way(self) -> None:
        """Store the messages that hold the first pages up, so that the cursor moves on.

        Those under way go on. Their rows are of use only if this process ends before they do.
        """
        for page in self._pages:
            if page.open and time.monotonic() - page.read < PATIENCE:
                return
            for message in list(page.open):
                queue = self._queues[message.url]
                if message in queue.under_way:
                    self._store(message, message.pending, 2 * TIMEOUT, leaves=False)
                else:
                    queue.waiting.remove(message)
                    self._postpone(message, max(queue.delay(), PATIENCE), "")

    # -- outcomes --------------------------------------------------------------------------------

    def _finish(self, message: OutgoingMessage, attempt: DeliveryAttempt) -> None:
        pending = message.pending
        metrics.WEBHOOK_ATTEMPTS.labels(attempt.outcome).inc()
        self.delivered += attempt.delivered
        self.failed += not attempt.delivered
        tried = pending._replace(attempts=pending.attempts + 1, error=attempt.error)
        if attempt.delivered:
            self._forget(message)
        elif attempt.gone or tried.attempts >= retries.ATTEMPTS:
            self._bury(message, tried)
        else:
            pause = retries.next_pause(tried.attempts, attempt.asked)
            self._store(message, tried, pause)
        self._wake.set()

    def _postpone(self, message: OutgoingMessage, delay: float, error: str) -> None:
        """Try a message later. That counts as no attempt, and does not go on for ever."""
        pending = message.pending
        pending = pending._replace(error=error or pending.error)
        if self._source.clock() - message.time > retries.GIVE_UP * 1_000_000:
            self._bury(message, pending)
            return
        pause = min(max(delay, PATIENCE), retries.OPEN_FOR + PATIENCE)
        self._store(message, pending, pause * random.uniform(1, 1 + retries.JITTER))

    def _store(
        self, message: OutgoingMessage, row: PendingDelivery, pause: float, *, leaves: bool = True
    ) -> None:
        """Store a message that is due after a pause, unless too many of its owner wait."""
        if not message.stored:
            owner = message.subscription.owner
            if self._waiting[owner] >= self._source.most and leaves:
                self._bury(message, row._replace(error="too many deliveries of the owner wait"))
                return
            self._waiting[owner] += 1
            message.stored = True
        self._settled.put(row._replace(due=self._source.clock() + int(pause * 1e6)))
        self._close(message, leaves=leaves)

    def _bury(self, message: OutgoingMessage, row: PendingDelivery) -> None:
        """Make a dead letter, unless its owner has too many: its notification can be read."""
        owner = message.subscription.owner
        if self._dead[owner] < self._source.most_dead:
            self._dead[owner] += 1
            self._settled.dead.append(row)
        else:
            metrics.WEBHOOKS_DROPPED.inc()
        self._forget(message)

    def _forget(self, message: OutgoingMessage) -> None:
        if message.stored:
            self._waiting[message.subscription.owner] -= 1
            self._settled.drop(message.pending.key)
        self._close(message)

    def _close(self, message: OutgoingMessage, *, leaves: bool = True) -> None:
        """Its page waits no longer for a message, which may leave memory."""
        if message.page is not None:
            message.page.open.discard(message)
            message.page = None
        if leaves:
            self._settled.released.add(message.pending.key)
        else:
            self._held.add(message.pending.key)

    # -- the database ----------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Store what is settled, and move the cursor over the pages of which nothing is open."""
        counts = False
        while self._pages and not self._pages[0].open:
            page = self._pages.popleft()
            self._passed = page.cursor
            counts = counts or page.counts
        # Events without notifications move the cursor in larger steps.
        if not (counts or self._settled.size or self._passed >= self._stored + PAGE):
            return
        settled, self._settled = self._settled, Settlement()
        settled.cursor = self._passed
        try:
            await self._in_thread(self._outbox.settle, settled, self._source.clock())
        except BaseException:
            self._settled = settled.followed_by(self._settled)
            raise
        self._stored = self._passed
        self._held -= settled.released

    async def _read_due(self) -> bool:
        """Take up rows that are due; whether there may be more of them."""
        room = min(WINDOW - self._count(), PAGE)
        if room <= 0:
            return False
        moment, held = self._source.clock(), len(self._held)
        rows: list[PendingDelivery]
        rows = await self._in_thread(self._outbox.due, moment, room + held)
        rows = [row for row in rows if row.key not in self._held][:room]
        self._held.update(row.key for row in rows)
        found: list[OutgoingMessage | None]
        found = await self._in_thread(lambda: [self._source.message(row) for row in rows])
        for row, message in zip(rows, found, strict=True):
            if message is None:
                self._settled.drop(row.key)
                self._settled.released.add(row.key)
                continue
            message.stored = True
            self._accept(message)
        return len(rows) == room
