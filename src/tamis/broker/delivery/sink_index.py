"""Which subscriptions have sinks of a kind, and what their notifications say, in memory.

It is asked for every page of notifications: the database would be asked for too many rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.delivery.sinks import Sink
from tamis.broker.matching.wanted_ids import WantedIds
from tamis.broker.notification_body import EVENT, Body
from tamis.errors import BrokerError
from tamis.store.changes import CANCEL, EXPIRE, UPDATE
from tamis.store.subscription_snapshot import Id


class SinkIndex:
    """The subscriptions with sinks, as far as the sequencer has come. Threads may share it.

    `wants` says which sinks count, webhooks or topics.
    """

    def __init__(self, known: Iterable[tuple[Id, str]], wants: Callable[[Sink], bool]) -> None:
        self._lock, self._wants = Lock(), wants
        self._ids: set[Id] = set()
        self._bodies: dict[Id, Body] = {}
        self._ended: deque[tuple[int, Id]] = deque()  # with the numbers at which they ended
        self._wanted: WantedIds | None = None
        for id, text in known:
            self._put(id, text)

    def take(self, changes: pa.Table) -> None:
        """Take in changes as the sequencer commits them."""
        with self._lock:
            said = pc.or_(pc.is_valid(changes["sink"]), pc.equal(changes["kind"], UPDATE))
            puts = changes.filter(said)
            for id, text in zip(puts["id"].to_pylist(), puts["sink"].to_pylist(), strict=True):
                self._put(id, text)
            ends = pc.is_in(changes["kind"], value_set=pa.array((CANCEL, EXPIRE)))
            gone = changes.filter(ends)
            numbers = gone["sequence"].to_pylist()
            for number, id in zip(numbers, gone["id"].to_pylist(), strict=True):
                if id in self._ids:
                    self._ended.append((number, id))

    def _put(self, id: Id, text: str | None) -> None:
        try:
            sink = Sink(None) if text is None else Sink.read(text)
        except BrokerError:  # its deliveries say what is wrong
            sink = Sink("")
        if self._wants(sink) != (id in self._ids):
            self._ids ^= {id}
            self._wanted = None
        if sink.body != EVENT:
            self._bodies[id] = sink.body
        else:
            self._bodies.pop(id, None)

    def wanted(self, after: int) -> WantedIds:
        """The subscriptions with such sinks that were live after a number."""
        with self._lock:
            while self._ended and self._ended[0][0] <= after:
                self._ids.discard(self._ended.popleft()[1])
                self._wanted = None
            if self._wanted is None:
                self._wanted = WantedIds(set(self._ids))
            return self._wanted

    def body(self, id: Id) -> Body:
        """What the notifications of a subscription say about the event."""
        return self._bodies.get(id, EVENT)
