"""Questions for live subscriptions, a page at a time: which ones, in which order, after which."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tamis.store.subscription_snapshot import Id

Order = Literal["oldest", "newest", "ending"]
_SEARCHED = ("condition", "coalesce(name, '')")


class SubscriptionQuery(NamedTuple):
    """Which subscriptions, and in which order.

    `ending` has those whose lease ends, the earliest first. A page begins `after` a subscription:
    its id, and for `ending` also when its lease ends. It ends at `last`, if that is given. Orders
    have indexes, so a page costs the same wherever it is. But `containing` reads all rows until the
    page is full (see `search_part`), and `ending` with an owner reads and sorts all subscriptions
    of that owner.
    """

    owner: str | None = None
    containing: str | None = None
    order: Order = "oldest"
    after: Id | None = None
    until: int | None = None  # of the lease of `after`, in microseconds since 1970
    with_sink: bool = False
    last: tuple[int | None, Id] | None = None  # the end of its lease, and its id

    def sql(self, columns: str, most: int) -> tuple[str, tuple[Any, ...]]:
        """The statement for the state database, and its values."""
        where, values = self._where()
        return f"SELECT {columns} {where} LIMIT ?", (*values, most)

    def place_sql(self, rows: int) -> tuple[str, tuple[Any, ...]]:
        """The place of the row after which so many rows are read, whatever they contain."""
        where, values = self._replace(containing=None)._where()
        return f"SELECT until, id {where} LIMIT 1 OFFSET ?", (*values, rows - 1)

    def _where(self) -> tuple[str, list[Any]]:
        wanted: list[str] = []
        values: list[Any] = []
        if self.owner is not None:
            wanted.append("owner = ?")
            values.append(self.owner)
        if self.containing is not None:
            found = (f"instr({each}, ?) > 0" for each in _SEARCHED)
            wanted.append(f"({' OR '.join(found)})")
            values += [self.containing] * len(_SEARCHED)
        if self.with_sink:
            wanted.append("sink IS NOT NULL")
        if self.order == "ending":
            wanted.append("until IS NOT NULL")
        for sign, place in (
            ("<" if self.order == "newest" else ">", self._after()),
            (">=" if self.order == "newest" else "<=", self.last),
        ):
            if place is None:
                continue
            if self.order == "ending":
                wanted.append(f"(until, id) {sign} (?, ?)")
                values += place
            else:
                wanted.append(f"id {sign} ?")
                values.append(place[1])
        by = {"oldest": "id", "newest": "id DESC", "ending": "until, id"}[self.order]
        where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
        return f"FROM subscriptions {where} ORDER BY {by}", values

    def _after(self) -> tuple[int | None, Id] | None:
        return None if self.after is None else (self.until, self.after)
