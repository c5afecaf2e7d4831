"""The cursor of the notifications that go to Kafka, and the dead letters among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tamis.broker.delivery.outbox import TOPICS_CURSOR as _CURSOR
from tamis.broker.delivery.outbox import DeadDelivery, PendingDelivery
from tamis.broker.records import Records
from tamis.store.subscription_snapshot import Id

_MOVE = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_BURY = (
    "INSERT INTO dead_deliveries (subscription, sequence, attempts, error, moment) "
    "VALUES (?, ?, ?, ?, ?)"
)


class TopicOutbox:
    """Deliveries to topics, among the records of a broker."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def cursor(self) -> int | None:
        """The last event whose notifications are acknowledged or dead; None: never begun."""
        rows = self._records.select("SELECT value FROM facts WHERE name = ?", (_CURSOR,))
        return int(rows[0][0]) if rows else None

    def advance(self, cursor: int, dead: Iterable[PendingDelivery], moment: int) -> None:
        """Move the cursor, together with the dead letters below it."""
        rows = [(*each.key, each.attempts, each.error, moment) for each in dead]
        with self._records.transaction() as base:
            base.executemany(_BURY, rows)
            base.execute(_MOVE, (_CURSOR, cursor))

    def dead_of(self, subscription: Id) -> list[DeadDelivery]:
        """The dead letters of a subscription, in the order of their events."""
        rows = self._records.select(
            "SELECT id, subscription, sequence, attempts, error, moment FROM dead_deliveries "
            "WHERE subscription = ? ORDER BY sequence",
            (subscription,),
        )
        return [DeadDelivery(*row) for row in rows]

    def forget(self, ids: Sequence[int]) -> None:
        """Remove dead letters that have arrived after all."""
        with self._records.transaction() as base:
            base.executemany("DELETE FROM dead_deliveries WHERE id = ?", [(each,) for each in ids])
