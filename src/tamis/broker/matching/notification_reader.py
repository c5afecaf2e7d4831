"""Notifications as subscribers read them: from a cursor on, in the order of the log.

A cursor is the sequence number of the last event that was read. All notifications of an event come
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.broker.matching.notification_files import NotificationPairs
from tamis.broker.matching.readable_matching import ReadableMatching
from tamis.broker.matching.wanted_ids import WantedIds
from tamis.errors import BrokerError
from tamis.replay.pipeline import row_as_json
from tamis.store.log import Log
from tamis.store.pack import appended, microseconds
from tamis.store.published import JSON, without_reserved
from tamis.store.subscription_snapshot import Id

BYTES = 1 << 20  # of events in a page, about: what a stream holds whose reader is slow
REPEATED = 16 << 20  # bytes for which one event may be repeated in a page
_TOGETHER = 100  # rows of the log that are read at once, for the events among them


class TrimmedError(BrokerError):
    """A cursor before the first notification that is kept, or an event before the first."""

    def __init__(self, first: int, message: str | None = None) -> None:
        super().__init__(
            message
            or f"notifications before {first} are not kept any more; read on from {first - 1}"
        )
        self.first = first


class Notification(NamedTuple):
    """An event that satisfies a subscription."""

    sequence: int
    subscription: Id
    event: str | None  # JSON
    time: int | None = None  # when the event was put into the log, in microseconds since 1970


class KeptEvent(NamedTuple):
    """An event of the log."""

    text: str  # JSON
    time: int  # when it was put into the log, in microseconds since 1970


class Page(NamedTuple):
    """Some notifications, and where to read on.

    If the last event is divided, `within` is the last subscription of it that was read.
    """

    notifications: list[Notification]
    cursor: int
    within: Id | None = None


class NotificationReader:
    """Reads the notifications of some subscriptions, or of all."""

    def __init__(self, log: Log, matching: ReadableMatching) -> None:
        self._log, self._matching = log, matching

    @property
    def first(self) -> int:
        """The first sequence number whose notifications are kept."""
        return max(self._log.begin, self._matching.files.begin)

    def page(
        self,
        after: int,
        ids: WantedIds | Iterable[Id] | None = None,
        most: int = 1000,
        *,
        events: bool = True,
    ) -> Page:
        """At least `most` notifications after a cursor, if there are so many.

        An event is not divided, so there may be more. If an event has very many, only the first
        ones have its text: one event may match a million subscriptions of an owner. `ids` are of
        the wanted subscriptions; None: all. With `events`, each has the event and its time.
        """
        if after + 1 < self.first:
            raise TrimmedError(self.first)
        wanted = WantedIds(ids) if ids is not None and not isinstance(ids, WantedIds) else ids
        chosen: list[tuple[int, Id]] = []
        cursor = after
        for pairs in self._matching.notifications(after):
            kept = pairs if wanted is None else _only(pairs, wanted)
            rows = zip(kept.numbers.tolist(), kept.ids.to_pylist(), strict=True)
            full = len(chosen) >= most
            for number, id in rows:
                if len(chosen) >= most and number != chosen[-1][0]:
                    full = True
                    break
                chosen.append((number, id))
            if full:
                return self._with_events(chosen, chosen[-1][0], events)
            cursor = max(cursor, pairs.end - 1)
        return self._with_events(chosen, cursor, events)

    def divided_page(self, after: int, within: Id | None, ids: WantedIds, most: int = 1000) -> Page:
        """At most `most` notifications after a cursor, with their events.

        An event with more is divided: the page ends within it, after a subscription, and the next
        one is asked for with that. The subscriptions of an event come in the order of their ids.
        """
        chosen: list[tuple[int, Id]] = []
        cursor = after
        for pairs in self._matching.notifications(after):
            for number, id in _by_id(_only(pairs, ids)):
                if number == after + 1 and within is not None and id <= within:
                    continue
                if len(chosen) == most:
                    last, seen = chosen[-1]
                    page = self._with_events(chosen, last - 1 if number == last else last, True)
                    cut = len(page.notifications) < len(chosen)
                    return page if cut or number != last else page._replace(within=seen)
                chosen.append((number, id))
            cursor = max(cursor, pairs.end - 1)
        return self._with_events(chosen, cursor, True)

    def event(self, number: int) -> KeptEvent | None:
        """An event; None if the log does not keep it any more."""
        return self._events([number]).get(number) if number >= self._log.begin else None

    def _with_events(self, chosen: Sequence[tuple[int, Id]], cursor: int, events: bool) -> Page:
        """A page of these notifications, or of the first ones if their events are long."""
        if not events:
            return Page([Notification(number, id, None) for number, id in chosen], cursor)
        numbers = sorted({number for number, _ in chosen})
        found: list[Notification] = []
        kept: dict[int, KeptEvent] = {}
        read = size = 0
        for number, id in chosen:
            if found and size > BYTES and number != found[-1].sequence:
                return Page(found, found[-1].sequence)
            if read < len(numbers) and number == numbers[read]:
                kept = self._events(numbers[read : read + _TOGETHER])
                read += _TOGETHER
            event = kept.get(number)
            if event is None:
                found.append(Notification(number, id, None))
                continue
            size += len(event.text)
            text = event.text if size <= REPEATED else None
            found.append(Notification(number, id, text, event.time))
        return Page(found, cursor)

    def _events(self, numbers: list[int]) -> dict[int, KeptEvent]:
        """Events as JSON: as they were published, or their columns. Neighbours are read at once."""
        found: dict[int, KeptEvent] = {}
        at = 0
        while at < len(numbers):
            low = at
            while at < len(numbers) and numbers[at] - numbers[low] < _TOGETHER:
                at += 1
            for first, table in self._log.events(numbers[low], numbers[at - 1] + 1):
                time = microseconds(appended(table))
                for number in numbers[low:at]:
                    if first <= number < first + table.num_rows:
                        found[number] = KeptEvent(event_text(table.slice(number - first, 1)), time)
        return found


def _only(pairs: NotificationPairs, wanted: WantedIds) -> NotificationPairs:
    kept = wanted.chosen(pairs.ids)
    return pairs._replace(numbers=pairs.numbers[kept], ids=pairs.ids.filter(pa.array(kept)))


def _by_id(pairs: NotificationPairs) -> Iterator[tuple[int, Any]]:
    """Pairs in the order of events, and of ids within an event."""
    table = pa.table({"number": pairs.numbers, "id": pairs.ids})
    table = table.sort_by([("number", "ascending"), ("id", "ascending")])
    return zip(table["number"].to_pylist(), table["id"].to_pylist(), strict=True)


def event_text(table: pa.Table) -> str:
    """An event that is one row of a log, as JSON."""
    if JSON in table.column_names:
        return str(table[JSON][0].as_py())
    return row_as_json(without_reserved(table))
