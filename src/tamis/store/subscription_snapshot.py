"""The live subscriptions at a sequence number: the fold of all changes before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import StoreError
from tamis.store.changes import ID_TYPES, RENEW, SUBSCRIBE, UNTIL, UPDATE

Id = int | str
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS = 1 << 16  # changes that are Python objects at a time
_STALE = 1000  # outdated leases in the heap that are tolerated however few subscriptions there are


class LiveSubscription(NamedTuple):
    """A subscription that is live."""

    added: int  # the sequence number at which it was subscribed
    condition: str
    until: int | None  # when its lease ends, in microseconds since 1970 UTC; None: never
    language: str | None = None  # of the condition; None: that of tamis


class SubscriptionSnapshot(Mapping[Id, LiveSubscription]):
    """Live subscriptions by id, after all changes before `sequence`.

    A second subscribe with a live id replaces it: the first ends and the second begins at that
    sequence number. A renew, cancel or expire of an id that is not live changes nothing; `ignored`
    counts those by kind.

    >>> snapshot = SubscriptionSnapshot()
    >>> snapshot.fold(pa.table({"sequence": [3, 8], "kind": ["subscribe", "cancel"],
    ...     "id": ["ann", "bob"], "condition": ["price < 5", None],
    ...     "until": pa.nulls(2, UNTIL)}), 10)
    >>> snapshot["ann"], snapshot.sequence, snapshot.ignored["cancel"]
    (LiveSubscription(added=3, condition='price < 5', until=None, language=None), 10, 1)
    """

    def __init__(self) -> None:
        self.sequence = 0
        self.ignored: Counter[str] = Counter()
        self._live: dict[Id, LiveSubscription] = {}
        self._leases: list[tuple[int, Id]] = []  # heap; leases that ended or were renewed stay
        self._overdue: dict[Id, int] = {}  # taken from the heap, and not expired yet

    def __getitem__(self, id: Id) -> LiveSubscription:
        return self._live[id]

    def __iter__(self) -> Iterator[Id]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, id: object) -> bool:
        return id in self._live

    def fold(self, changes: pa.Table, end: int | None = None) -> None:
        """Apply changes as `Log.changes` returns them, all that there are before `end`.

        Without `end`, the snapshot moves to the last of the changes.
        """
        lacking = {"sequence", "kind", "id", "condition", "until"} - {*changes.column_names}
        if lacking:
            raise StoreError(
                f"the changes lack {', '.join(sorted(lacking))}; Log.changes returns all columns"
            )
        numbers = np.asarray(changes.column("sequence"))
        last = int(numbers[-1]) + 1 if len(numbers) else self.sequence
        end = last if end is None else end
        early = len(numbers) and int(numbers[0]) < self.sequence
        if early or end < last or not np.all(np.diff(numbers) > 0):
            raise StoreError(
                f"changes are folded once each, in the order of their sequence numbers, from "
                f"{self.sequence} on"
            )
        for batch in changes.to_batches(_ROWS):
            self._fold(batch)
        self.sequence = end
        if len(self._leases) > 2 * len(self._live) + _STALE:
            self._drop_outdated()

    def _fold(self, changes: pa.RecordBatch) -> None:
        live = self._live
        known = "language" in changes.schema.names
        rows = zip(
            changes.column("sequence").to_pylist(),
            changes.column("kind").to_pylist(),
            changes.column("id").to_pylist(),
            changes.column("condition").to_pylist(),
            changes.column("until").cast(pa.int64()).to_pylist(),
            changes.column("language").to_pylist() if known else repeat(None, len(changes)),
            strict=True,
        )
        for number, kind, id, condition, until, language in rows:
            if kind in (SUBSCRIBE, UPDATE):
                live.pop(id, None)  # so that ids stay in the order in which they were added
                live[id] = LiveSubscription(number, condition, until, language)
            elif id not in live:
                self.ignored[kind] += 1
                continue
            elif kind == RENEW:
                live[id] = live[id]._replace(until=until)
            else:
                del live[id]
                continue
            if until is not None:
                heappush(self._leases, (until, id))

    def due(self, now: datetime) -> list[Id]:
        """Return the ids whose lease has ended and that have not expired yet, earliest first."""
        now = now if now.tzinfo else now.replace(tzinfo=UTC)
        moment = (now - _EPOCH) // timedelta(microseconds=1)
        while self._leases and self._leases[0][0] <= moment:
            until, id = heappop(self._leases)
            if self._holds(id, until):
                self._overdue[id] = until
        self._overdue = {id: until for id, until in self._overdue.items() if self._holds(id, until)}
        found = sorted((until, id) for id, until in self._overdue.items() if until <= moment)
        return [id for _, id in found]

    def table(self, ids: str = "text") -> pa.Table:
        """Return all subscriptions in the order in which they were added.

        The columns are id, condition, added, until, language.
        """
        live = self._live.values()
        return pa.table(
            {
                "id": pa.array(list(self._live), ID_TYPES[ids]),
                "condition": pa.array([each.condition for each in live], pa.string()),
                "added": pa.array([each.added for each in live], pa.int64()),
                "until": pa.array([each.until for each in live], pa.int64()).cast(UNTIL),
                "language": pa.array([each.language for each in live], pa.string()),
            }
        )

    def _holds(self, id: Id, until: int) -> bool:
        return (live := self._live.get(id)) is not None and live.until == until

    def _drop_outdated(self) -> None:
        leases = {(until, id) for until, id in self._leases if self._holds(id, until)}
        self._leases = list(leases)
        heapify(self._leases)
