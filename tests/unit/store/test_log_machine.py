"""A log and the snapshot in it against plain lists, with lagging readers and merges between."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tamis.store import Log, SubscriptionSnapshot, cancel, changes_table, expire, renew, subscribe
from tests.unit.store.world import fresh, prices, published

_START = datetime(2026, 1, 1, tzinfo=UTC)
IDS = st.integers(0, 5).map(lambda n: f"id {n}")
MINUTES = st.none() | st.integers(0, 9)


def _moment(minutes: int | None) -> datetime | None:
    return None if minutes is None else _START + timedelta(minutes=minutes)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.log = fresh(Path(self.place.name))
        self.reader, self.snapshot = Log.open(self.log.folder), SubscriptionSnapshot()
        self.rows: list[tuple[str, Any, Any, Any]] = []  # by sequence number

    def teardown(self) -> None:
        self.place.cleanup()

    def _appended(self, got: range, rows: list[tuple[str, Any, Any, Any]]) -> None:
        assert got == range(len(self.rows), len(self.rows) + len(rows))
        self.rows += rows

    @rule(given=st.lists(st.integers(0, 99), max_size=4), other=st.booleans())
    def publish(self, given: list[int], other: bool) -> None:
        log = self.reader if other else self.log
        self._appended(log.publish(prices(*given)), [("event", n, None, None) for n in given])

    @rule(given=st.dictionaries(IDS, st.tuples(st.sampled_from("xyz"), MINUTES), max_size=3))
    def subscribe(self, given: dict[str, tuple[str, int | None]]) -> None:
        conditions, until = [c for c, _ in given.values()], [_moment(m) for _, m in given.values()]
        rows = [("subscribe", id, c, _moment(m)) for id, (c, m) in given.items()]
        self._appended(self.log.change(subscribe(given, conditions, until)), rows)

    @rule(ids=st.lists(IDS, max_size=3), minutes=MINUTES)
    def renew(self, ids: list[str], minutes: int | None) -> None:
        rows = [("renew", id, None, _moment(minutes)) for id in ids]
        self._appended(self.log.change(renew(ids, _moment(minutes))), rows)

    @rule(ids=st.lists(IDS, max_size=3), expired=st.booleans())
    def end_some(self, ids: list[str], expired: bool) -> None:
        rows = [("expire" if expired else "cancel", id, None, None) for id in ids]
        self._appended(self.log.change((expire if expired else cancel)(ids)), rows)

    @rule(given=st.lists(st.tuples(st.sampled_from(("subscribe", "cancel")), IDS), max_size=4))
    def change(self, given: list[tuple[str, str]]) -> None:
        rows = [(k, id, "x" if k == "subscribe" else None, None) for k, id in given]
        kinds, ids, conditions, _ = zip(*rows, strict=True) if rows else ((), (), (), ())
        self._appended(self.log.change(changes_table(kinds, ids, conditions)), rows)

    @rule(minutes=st.integers(0, 9))
    def expire_due(self, minutes: int) -> None:
        now = _moment(minutes)
        assert now is not None
        live, _ = self._model(len(self.rows))
        due = [(until, id) for id, (_, _, until) in live.items() if until and until <= now]
        rows = [("expire", id, None, None) for _, id in sorted(due)]
        self._appended(self.log.expire(self.snapshot, now), rows)

    @rule(share=st.floats(0, 1), rows=st.integers(1, 20), other=st.booleans())
    def compact(self, share: float, rows: int, other: bool) -> None:
        (self.reader if other else self.log).compact(int(share * len(self.rows)), rows)

    @rule()
    def reopen(self) -> None:
        self.log = Log.open(self.log.folder)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.rows)))
        end = data.draw(st.integers(start, len(self.rows)))
        wanted = [(n, *self.rows[n]) for n in range(start, end)]
        events = [(n, price) for n, kind, price, *_ in wanted if kind == "event"]
        assert published(self.reader, start, end) == events
        changes = self.reader.changes(start, end).to_pylist()
        assert [tuple(row.values()) for row in changes] == [
            row for row in wanted if row[1] != "event"
        ]
        assert self.reader.counts(start, end) == (len(events), len(changes))

    @rule(data=st.data())
    def fold(self, data: st.DataObject) -> None:
        end = data.draw(st.integers(self.snapshot.sequence, len(self.rows)))
        self.snapshot.fold(self.reader.changes(self.snapshot.sequence, end), end)

    @invariant()
    def the_lives_are_those_of_the_model(self) -> None:
        live, ignored = self._model(self.snapshot.sequence)
        found = self.snapshot.table().to_pylist()
        assert {r["id"]: (r["added"], r["condition"], r["until"]) for r in found} == live
        assert self.snapshot.ignored.total() == ignored

    @invariant()
    def the_log_ends_where_it_should(self) -> None:
        assert self.log.end == self.reader.end == len(self.rows)

    def _model(self, end: int) -> tuple[dict[Any, tuple[int, Any, Any]], int]:
        live: dict[Any, tuple[int, Any, Any]] = {}
        ignored = 0
        for number, (kind, id, condition, until) in enumerate(self.rows[:end]):
            if kind == "subscribe":
                live[id] = (number, condition, until)
            elif kind != "event":
                ignored += id not in live
                if kind == "renew" and id in live:
                    live[id] = (*live[id][:2], until)
                elif kind != "renew":
                    live.pop(id, None)
        return live, ignored


@pytest.fixture(autouse=True)
def _small(small_segments: None) -> None:
    """Many segments."""


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=30)
