"""Who is subscribed at a sequence number: the fold of all changes before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import StoreError
from tamis.store.changes import ID_TYPES, RENEW, SUBSCRIBE, UNTIL

Id = int | str
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS = 1 << 16  # changes that are Python objects at a time
_STALE = 1000  # entries of leases that were renewed since, which are kept whatever their share


class Life(NamedTuple):
    """A live subscription."""

    added: int  # the sequence number at which it was subscribed
    condition: str
    until: int | None  # microseconds since 1970, UTC, at which its lease runs out; None: never


class Lives(Mapping[Id, Life]):
    """Live subscriptions by id, after all changes before `sequence`.

    A second subscribe of a live id replaces it: the first ends and the second begins at that
    sequence number. A renew, cancel or expire of an id that is not live changes nothing; `ignored`
    counts those by kind.

    >>> lives = Lives()
    >>> lives.fold(pa.table({"sequence": [3, 8], "kind": ["subscribe", "cancel"],
    ...     "id": ["ann", "bob"], "condition": ["price < 5", None],
    ...     "until": pa.nulls(2, UNTIL)}), 10)
    >>> lives["ann"], lives.sequence, lives.ignored["cancel"]
    (Life(added=3, condition='price < 5', until=None), 10, 1)
    """

    def __init__(self) -> None:
        self.sequence = 0
        self.ignored: Counter[str] = Counter()
        self._live: dict[Id, Life] = {}
        self._leases: list[tuple[int, Id]] = []  # heap; also of leases that ended or were renewed
        self._overdue: dict[Id, int] = {}  # taken from the heap, and not expired yet

    def __getitem__(self, id: Id) -> Life:
        return self._live[id]

    def __iter__(self) -> Iterator[Id]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, id: object) -> bool:
        return id in self._live

    def fold(self, changes: pa.Table, end: int | None = None) -> None:
        """Take in changes as `Log.changes` gives them, which are all there are up to before `end`.

        Without `end`, up to the last of them.
        """
        lacking = {"sequence", "kind", "id", "condition", "until"} - {*changes.column_names}
        if lacking:
            raise StoreError(
                f"the changes lack {', '.join(sorted(lacking))}; Log.changes gives all"
            )
        numbers = np.asarray(changes.column("sequence"))
        last = int(numbers[-1]) + 1 if len(numbers) else self.sequence
        end = last if end is None else end
        early = len(numbers) and int(numbers[0]) < self.sequence
        if early or end < last or not np.all(np.diff(numbers) > 0):
            raise StoreError(
                f"changes are folded in the order of their sequence numbers, from {self.sequence} "
                "on and each once"
            )
        for batch in changes.to_batches(_ROWS):
            self._fold(batch)
        self.sequence = end
        if len(self._leases) > 2 * len(self._live) + _STALE:
            self._forget_stale()

    def _fold(self, changes: pa.RecordBatch) -> None:
        live = self._live
        rows = zip(
            changes.column("sequence").to_pylist(),
            changes.column("kind").to_pylist(),
            changes.column("id").to_pylist(),
            changes.column("condition").to_pylist(),
            changes.column("until").cast(pa.int64()).to_pylist(),
            strict=True,
        )
        for number, kind, id, condition, until in rows:
            if kind == SUBSCRIBE:
                live.pop(id, None)  # so that ids stay in the order in which they were added
                live[id] = Life(number, condition, until)
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
        """The ids whose lease has run out by now and that have not expired yet, soonest first."""
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
        """All of them: id, condition, added, until, in the order in which they were added."""
        lives = self._live.values()
        return pa.table(
            {
                "id": pa.array(list(self._live), ID_TYPES[ids]),
                "condition": pa.array([life.condition for life in lives], pa.string()),
                "added": pa.array([life.added for life in lives], pa.int64()),
                "until": pa.array([life.until for life in lives], pa.int64()).cast(UNTIL),
            }
        )

    def _holds(self, id: Id, until: int) -> bool:
        return (life := self._live.get(id)) is not None and life.until == until

    def _forget_stale(self) -> None:
        leases = {(until, id) for until, id in self._leases if self._holds(id, until)}
        self._leases = list(leases)
        heapify(self._leases)
