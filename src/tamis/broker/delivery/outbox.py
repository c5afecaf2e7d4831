"""What is to be delivered: a cursor over all notifications, and the exceptions below it.

A notification that is delivered at once leaves no trace. One that failed is a row, until it is
delivered or dead. The cursor moves in the transaction that stores the exceptions below it: a crash
repeats deliveries and loses none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tamis.broker.records import Records
from tamis.store.subscription_snapshot import Id

_CURSOR = "delivered"
_UPSERT = (
    "ON CONFLICT (subscription, sequence) DO UPDATE SET attempts = excluded.attempts, "
    "due = excluded.due, error = excluded.error"
)
_STORE = f"INSERT INTO deliveries VALUES (?, ?, ?, ?, ?) {_UPSERT}"


class PendingDelivery(NamedTuple):
    """A delivery that failed, and is to be tried again."""

    subscription: Id
    sequence: int
    attempts: int
    due: int  # microseconds since 1970
    error: str


class DeadDelivery(NamedTuple):
    """A delivery that was given up."""

    id: int
    subscription: Id
    sequence: int
    attempts: int
    error: str
    moment: int


class Outbox:
    """The deliveries of a broker, among its records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def cursor(self) -> int | None:
        """The last event whose notifications are delivered or stored; None: never begun."""
        rows = self._records.select("SELECT value FROM facts WHERE name = ?", (_CURSOR,))
        return int(rows[0][0]) if rows else None

    def advance(self, cursor: int, failed: Iterable[PendingDelivery]) -> None:
        """Move the cursor, together with what failed below it."""
        with self._records.transaction() as base:
            base.executemany(_STORE, failed)
            base.execute(
                "INSERT INTO facts VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (_CURSOR, cursor),
            )

    def due(self, moment: int, most: int) -> list[PendingDelivery]:
        """Deliveries to try again now, the longest waiting first."""
        rows = self._records.select(
            "SELECT * FROM deliveries WHERE due <= ? ORDER BY due LIMIT ?", (moment, most)
        )
        return [PendingDelivery(*row) for row in rows]

    def count(self, subscription: Id | None = None) -> int:
        """How many deliveries wait: of one subscription, or of all."""
        where = "" if subscription is None else " WHERE subscription = ?"
        values = () if subscription is None else (subscription,)
        return int(self._records.select(f"SELECT count(*) FROM deliveries{where}", values)[0][0])

    def done(self, delivery: PendingDelivery) -> None:
        """Forget a delivery that succeeded."""
        with self._records.transaction() as base:
            base.execute(*_removed(delivery))

    def again(self, delivery: PendingDelivery) -> None:
        """Store another failure."""
        with self._records.transaction() as base:
            base.execute(_STORE, delivery)

    def bury(self, delivery: PendingDelivery, moment: int) -> None:
        """Give a delivery up: it becomes a dead letter."""
        with self._records.transaction() as base:
            base.execute(*_removed(delivery))
            base.execute(
                "INSERT INTO dead_deliveries (subscription, sequence, attempts, error, moment) "
                "VALUES (?, ?, ?, ?, ?)",
                (delivery.subscription, delivery.sequence, delivery.attempts, delivery.error,
                 moment),
            )  # fmt: skip

    def dead(self, after: int = 0, most: int = 100) -> list[DeadDelivery]:
        """Dead letters in the order in which they died."""
        rows = self._records.select(
            "SELECT id, subscription, sequence, attempts, error, moment FROM dead_deliveries "
            "WHERE id > ? ORDER BY id LIMIT ?",
            (after, most),
        )
        return [DeadDelivery(*row) for row in rows]

    def revive(self, subscription: Id, moment: int) -> int:
        """Try the dead letters of a subscription again, from the first attempt on; how many."""
        with self._records.transaction() as base:
            base.execute(
                "INSERT INTO deliveries SELECT DISTINCT subscription, sequence, 0, "
                "CAST(? AS bigint), 'tried again on request' "
                f"FROM dead_deliveries WHERE subscription = ? {_UPSERT}",
                (moment, subscription),
            )
            base.execute("DELETE FROM dead_deliveries WHERE subscription = ?", (subscription,))
            return int(base.changes())


def _removed(delivery: PendingDelivery) -> tuple[str, tuple[Id, int]]:
    statement = "DELETE FROM deliveries WHERE subscription = ? AND sequence = ?"
    return statement, (delivery.subscription, delivery.sequence)
