"""What is to be delivered: a cursor over all notifications, and the exceptions below it.

A notification that is delivered at once leaves no trace. One that failed is a row, until it is
delivered or dead. The cursor moves in the transaction that stores the exceptions below it: a crash
repeats deliveries and loses none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.broker.records import Records
from tamis.errors import BrokerError
from tamis.store.subscription_snapshot import Id

_CURSOR, _WARNED = "delivered", "warned"
TOPICS_CURSOR = "sent_to_kafka"  # of those that go to topics
CURSORS = (_CURSOR, _WARNED, TOPICS_CURSOR)  # the facts that are records
_UPSERT = (
    "ON CONFLICT (subscription, sequence) DO UPDATE SET attempts = excluded.attempts, "
    "due = excluded.due, error = excluded.error"
)
_MOVE = "UPDATE facts SET value = ? WHERE name = ? AND value = ?"
_SET = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_STORE = f"INSERT INTO deliveries VALUES (?, ?, ?, ?, ?) {_UPSERT}"


DeliveryKey = tuple[Id, int]
"""A subscription and a sequence number."""


class PendingDelivery(NamedTuple):
    """A delivery that failed or was put off, and is to be tried again.

    The sequence is that of the event. A warning that a lease ends has minus the end of the lease,
    in microseconds.
    """

    subscription: Id
    sequence: int
    attempts: int
    due: int  # microseconds since 1970
    error: str

    @property
    def key(self) -> DeliveryKey:
        return self.subscription, self.sequence


class DeadDelivery(NamedTuple):
    """A delivery that was given up."""

    id: int
    subscription: Id
    sequence: int
    attempts: int
    error: str
    moment: int


@dataclass
class Settlement:
    """What one transaction stores: rows to put or to drop, dead letters, and the cursor."""

    cursor: int | None = None
    rows: dict[DeliveryKey, PendingDelivery | None] = field(default_factory=dict)
    dead: list[PendingDelivery] = field(default_factory=list)
    released: set[DeliveryKey] = field(default_factory=set)  # of messages that left memory

    @property
    def size(self) -> int:
        return len(self.rows) + len(self.dead)

    def put(self, row: PendingDelivery) -> None:
        self.rows[row.key] = row

    def drop(self, key: DeliveryKey) -> None:
        self.rows[key] = None

    def followed_by(self, later: Settlement) -> Settlement:
        """Both in one."""
        return Settlement(
            later.cursor if later.cursor is not None else self.cursor,
            self.rows | later.rows,
            self.dead + later.dead,
            self.released | later.released,
        )


class Outbox:
    """The deliveries of a broker, among its records."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._at: int | None = None  # the cursor as the deliverer of this process knows it

    def cursor(self) -> int | None:
        """The last event whose notifications are delivered or stored; None: never begun."""
        return self._fact(_CURSOR)

    def warned(self) -> int | None:
        """Warnings of all leases that end up to this moment are sent; None: never begun."""
        return self._fact(_WARNED)

    def _fact(self, name: str) -> int | None:
        rows = self._records.select("SELECT value FROM facts WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else None

    def needed(self) -> list[int]:
        """The first events that something here still needs: each cursor's next, and a retry's."""
        cursors = self._records.select(
            "SELECT value FROM facts WHERE name IN (?, ?)", (_CURSOR, TOPICS_CURSOR)
        )
        # Warnings that leases end need no event.
        retries = self._records.select("SELECT min(sequence) FROM deliveries WHERE sequence >= 0")
        return [int(value) + 1 for (value,) in cursors] + [
            int(value) for (value,) in retries if value is not None
        ]

    def begin(self, start: int) -> int:
        """Where a deliverer goes on: at the cursor, or at `start` the first time."""
        statement = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
        self._records.execute_synced(statement, (_CURSOR, start))
        cursor = self.cursor()
        self._at = start if cursor is None else cursor
        return self._at

    def warn(self, settled: Settlement, moment: int) -> None:
        """Store warnings, together with the moment up to which leases were warned of."""
        with self._records.transaction() as base:
            base.executemany(_STORE, (row for row in settled.rows.values() if row is not None))
            base.execute(_SET, (_WARNED, moment))

    def settle(self, settled: Settlement, moment: int = 0) -> None:
        """Move the cursor, together with everything that is to be known below it.

        Raises `BrokerError` if the cursor is not where this process has left it.
        """
        gone = [key for key, row in settled.rows.items() if row is None]
        kept = [row for row in settled.rows.values() if row is not None]
        with self._records.transaction() as base:
            base.executemany("DELETE FROM deliveries WHERE subscription = ? AND sequence = ?", gone)
            base.executemany(_STORE, kept)
            base.executemany(
                "INSERT INTO dead_deliveries (subscription, sequence, attempts, error, moment) "
                "VALUES (?, ?, ?, ?, ?)",
                ((*each.key, each.attempts, each.error, moment) for each in settled.dead),
            )
            if settled.cursor is not None:
                base.execute(_MOVE, (settled.cursor, _CURSOR, self._at))
                if not base.changes():
                    raise BrokerError("another service sends the webhooks now")
        if settled.cursor is not None:
            self._at = settled.cursor

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

    def dead_count(self) -> int:
        """How many dead letters there are."""
        return int(self._records.select("SELECT count(*) FROM dead_deliveries")[0][0])

    def counts(self) -> list[tuple[Id, int]]:
        """How many deliveries of each subscription wait."""
        rows = self._records.select(
            "SELECT subscription, count(*) FROM deliveries GROUP BY subscription"
        )
        return [(row[0], int(row[1])) for row in rows]

    def dead_counts(self) -> list[tuple[Id, int]]:
        """How many dead letters each subscription has."""
        rows = self._records.select(
            "SELECT subscription, count(*) FROM dead_deliveries GROUP BY subscription"
        )
        return [(row[0], int(row[1])) for row in rows]

    def dead(self, after: int = 0, most: int = 100) -> list[DeadDelivery]:
        """Dead letters in the order in which they died."""
        rows = self._records.select(
            "SELECT id, subscription, sequence, attempts, error, moment FROM dead_deliveries "
            "WHERE id > ? ORDER BY id LIMIT ?",
            (after, most),
        )
        return [DeadDelivery(*row) for row in rows]

    def dead_letter(self, id: int) -> DeadDelivery | None:
        """One dead letter."""
        rows = self._records.select(
            "SELECT id, subscription, sequence, attempts, error, moment FROM dead_deliveries "
            "WHERE id = ?",
            (id,),
        )
        return DeadDelivery(*rows[0]) if rows else None

    def revive(self, subscription: Id, moment: int) -> int:
        """Try the dead letters of a subscription again, from the first attempt on; how many."""
        return self._revive("subscription = ?", subscription, moment)

    def revive_one(self, id: int, moment: int) -> int:
        """Try one dead letter again, from the first attempt on; how many there were."""
        return self._revive("id = ?", id, moment)

    def _revive(self, where: str, value: Id, moment: int) -> int:
        with self._records.transaction() as base:
            base.execute(
                "INSERT INTO deliveries SELECT DISTINCT subscription, sequence, 0, "
                "CAST(? AS bigint), 'tried again on request' "
                f"FROM dead_deliveries WHERE {where} {_UPSERT}",
                (moment, value),
            )
            base.execute(f"DELETE FROM dead_deliveries WHERE {where}", (value,))
            return int(base.changes())
