"""Warnings of leases that end soon, while nobody looks or the database is full."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.broker.delivery.lease_warnings import LeaseWarnings
from tamis.broker.delivery.outbox import Outbox, Settlement
from tamis.broker.state import State
from tamis.errors import FullError
from tamis.store.changes import ALL, SUBSCRIBE, change_schema

SECOND = 1_000_000
HOUR = 3600 * SECOND


class FullOutbox(Outbox):
    """An outbox whose disk is full now and then."""

    full = False

    def warn(self, settled: Settlement, moment: int) -> None:
        if self.full:
            raise FullError("the disk is full")
        super().warn(settled, moment)


class Warned:
    """Warnings with a clock that stands still."""

    def __init__(self, state: State) -> None:
        self.now, self._number = HOUR, 0
        self.outbox = FullOutbox(state)
        self.warnings = LeaseWarnings(state, self.outbox, lambda: self.now, HOUR)
        state.watcher = self.warnings.take
        self._state = state

    def other(self) -> LeaseWarnings:
        """The warnings of another service on the same database."""
        return LeaseWarnings(self._state, self.outbox, lambda: self.now, HOUR)

    def subscribe(self, seconds: int, sink: str | None = None) -> int:
        id = self._number
        until = datetime.fromtimestamp(self.now / SECOND + seconds, UTC)
        row = {"kind": SUBSCRIBE, "id": id, "condition": "price < 5", "until": until, "sink": sink}
        table = pa.Table.from_pylist([row], change_schema("int64", ALL))
        table = table.add_column(0, "sequence", pa.array([id], pa.int64()))
        self._number += 1
        self._state.apply(table, self._number, self.now)
        return id


@pytest.fixture
def warned(tmp_path: Path) -> Iterator[Warned]:
    state = State(tmp_path / "state.db", "int64", "a log")
    yield Warned(state)
    state.close()


def test_short_leases_do_not_pile_up_where_nobody_looks(warned: Warned) -> None:
    for _ in range(100):
        warned.subscribe(10)
        warned.now += 20 * SECOND
    assert len(warned.warnings._short) == 1


def test_a_warning_that_cannot_be_stored_comes_later(warned: Warned) -> None:
    warned.warnings.look()
    id = warned.subscribe(100)
    warned.now += 80 * SECOND
    warned.outbox.full = True
    with pytest.raises(FullError):
        warned.warnings.look()
    warned.outbox.full = False
    warned.warnings.look()
    count, found = warned.warnings.since(0)
    assert (count, [each.id for each in found]) == (1, [id])


def test_streams_hear_of_each_end_once_whichever_service_sends(warned: Warned) -> None:
    """Another service sends, this one takes over, and the other one was ahead."""
    one, other = warned.warnings, warned.other()
    for each in (one, other):
        each.look() if each is one else each.watch()
    ids = []
    for sender, reader in ((one, other), (other, one)):
        ids.append(warned.subscribe(7200))
        warned.now += HOUR + SECOND
        reader.watch()
        sender.look()
        ids.append(warned.subscribe(7200))
        warned.now += HOUR + SECOND
        sender.look()
        sender.watch()
        reader.watch()
        for each in (one, other):
            count, found = each.since(0)
            assert count == len(ids)
            assert ids[-1] in [lease.id for lease in found]


def test_webhooks_of_a_service_that_takes_over_are_sent_once(warned: Warned) -> None:
    one, other = warned.warnings, warned.other()
    one.look()
    other.watch()
    first = warned.subscribe(7200, sink='{"url": "http://a.example"}')
    warned.now += HOUR + SECOND
    other.watch()  # streams are told first
    other.look()
    one.look()
    due = warned.outbox.due(warned.now, 10)
    assert [each.subscription for each in due] == [first]
