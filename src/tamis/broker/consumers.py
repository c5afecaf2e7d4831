"""Named consumers: the broker remembers how far each has read."""

from __future__ import annotations

from tamis.broker.records import Records
from tamis.errors import BrokerError, NotFoundError

_LONGEST = 200  # characters of a name


class Consumers:
    """The cursors of the consumers of each owner."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def cursor(self, owner: str | None, name: str) -> int:
        """How far a consumer has read."""
        rows = self._records.select(
            "SELECT cursor FROM consumers WHERE owner = ? AND name = ?", (owner or "", name)
        )
        if not rows:
            raise NotFoundError(f"there is no consumer {name!r}")
        return int(rows[0][0])

    def set_cursor(self, owner: str | None, name: str, cursor: int) -> None:
        """Remember how far a consumer has read. It is on disk when this returns."""
        if not name or len(name) > _LONGEST or not name.isprintable():
            raise BrokerError(f"the name of a consumer has 1 to {_LONGEST} printable characters")
        if not -1 <= cursor < 2**63:
            raise BrokerError(f"a cursor must be a sequence number or -1, not {cursor}")
        self._records.execute_synced(
            "INSERT INTO consumers VALUES (?, ?, ?) "
            "ON CONFLICT (owner, name) DO UPDATE SET cursor = excluded.cursor",
            (owner or "", name, cursor),
        )
