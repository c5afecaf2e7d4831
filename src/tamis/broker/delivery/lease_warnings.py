"""Warnings before leases end: once for each end, to webhooks and to those who read streams.

A cursor over the ends of leases says up to which end webhooks were sent; it is stored together with
the messages. Of several services on one database, one sends webhooks, and each tells its own
streams, with a cursor in memory. A lease that is shorter than the time ahead is warned of after
three quarters of it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import islice
from threading import Lock
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.delivery.outbox import Outbox, PendingDelivery, Settlement
from tamis.broker.delivery.sinks import Sink
from tamis.broker.state import State, StoredSubscription
from tamis.errors import BrokerError
from tamis.store.subscription_snapshot import Id

_AT_ONCE = 10_000  # leases that are warned of in one look
_RECENT = 100_000  # warnings that streams may still read


class EndingLease(NamedTuple):
    """A lease that ends soon."""

    id: Id
    owner: str | None
    until: int  # microseconds since 1970


class LeaseWarnings:
    """Finds the leases that end soon. Threads may share it."""

    def __init__(self, state: State, outbox: Outbox, clock: Callable[[], int], ahead: int) -> None:
        self._state, self._outbox, self._clock, self._ahead = state, outbox, clock, ahead
        self.listener: Callable[[], object] = lambda: None  # is told that there are new ones
        self._lock = Lock()
        self._short: list[tuple[int, int, Id]] = []  # when to warn, the end, and the id
        self._recent: deque[EndingLease] = deque(maxlen=_RECENT)
        self._count = 0  # of all warnings since the start
        self._told: int | None = None  # streams know of the leases that end up to this moment

    def take(self, changes: pa.Table) -> None:
        """Note the leases of changes that are shorter than the time ahead."""
        now = self._clock()
        until = changes["until"].cast(pa.int64())
        short = pc.and_(pc.greater(until, now), pc.less_equal(until, now + self._ahead))
        chosen = changes.filter(pc.fill_null(short, False))
        ends = chosen["until"].cast(pa.int64()).to_pylist()
        with self._lock:
            # A service that does not deliver never looks: what is over must not pile up.
            while self._short and self._short[0][1] <= now:
                heapq.heappop(self._short)
            for end, id in zip(ends, chosen["id"].to_pylist(), strict=True):
                heapq.heappush(self._short, (end - (end - now) // 4, end, id))

    def look(self) -> None:
        """Warn of the leases that end soon."""
        self._look(self._outbox.warned(), sends=True)

    def watch(self) -> None:
        """Tell streams of the leases that end soon, while another service sends the webhooks."""
        self._look(self._outbox.warned() if self._told is None else self._told, sends=False)

    def _look(self, cursor: int | None, *, sends: bool) -> None:
        now = self._clock()
        found = [each for each in self._due(now) if each is not None]
        if cursor is None:  # the first time: those that end later are warned of in time
            cursor = now
        told = cursor if self._told is None else self._told
        after, latest = min(cursor, told), now + self._ahead
        page = self._state.ending(after, latest, _AT_ONCE)
        if len(page) == _AT_ONCE:  # all that end at the same moment come together
            latest = page[-1].until or latest
            page = self._state.ending(after, latest, None)
        try:
            if sends:
                self._send(found + _ending_after(cursor, page), now, max(cursor, latest))
        except BaseException:  # those are known only here, and are warned of later
            with self._lock:
                for each in found:
                    heapq.heappush(self._short, (now, each.until or now, each.id))
            raise
        self._tell(found + _ending_after(told, page))
        self._told = max(told, latest)

    def _due(self, now: int) -> list[StoredSubscription | None]:
        """Short leases that are warned of now, unless they were renewed or have ended."""
        due: list[tuple[int, Id]] = []
        with self._lock:
            while self._short and self._short[0][0] <= now:
                _, end, id = heapq.heappop(self._short)
                due.append((end, id))
        live = [(end, self._state.subscription(id)) for end, id in due]
        return [each for end, each in live if each is not None and each.until == end]

    def _send(self, leases: list[StoredSubscription], now: int, cursor: int) -> None:
        settled = Settlement()
        for each in leases:
            if each.until is not None and _has_webhook(each.sink):
                settled.put(PendingDelivery(each.id, -each.until, 0, now, ""))
        self._outbox.warn(settled, cursor)

    def _tell(self, leases: list[StoredSubscription]) -> None:
        if not leases:
            return
        with self._lock:
            self._recent.extend(
                EndingLease(each.id, each.owner, each.until)
                for each in leases
                if each.until is not None
            )
            self._count += len(leases)
        self.listener()

    def since(self, count: int) -> tuple[int, list[EndingLease]]:
        """How many warnings there were, and those after the first `count` that still matter."""
        now = self._clock()
        with self._lock:
            new = min(self._count - count, len(self._recent))
            latest = islice(reversed(self._recent), max(0, new))
            return self._count, [each for each in latest if each.until > now]


def _ending_after(moment: int, leases: list[StoredSubscription]) -> list[StoredSubscription]:
    return [each for each in leases if each.until is not None and each.until > moment]


def _has_webhook(sink: str | None) -> bool:
    try:
        return sink is not None and Sink.read(sink).url is not None
    except BrokerError:
        return False
