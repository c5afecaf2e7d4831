"""Trimming drops old rows and keeps what is live."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import StoreError
from tamis.model.schema import Schema
from tamis.store import Log, SubscriptionSnapshot, cancel, renew, subscribe
from tamis.store.verification import verify
from tests.unit.store.world import SCHEMA, files, fresh, prices, published

pytestmark = pytest.mark.usefixtures("small_segments")


def _live(log: Log) -> list[dict[str, object]]:
    snapshot = SubscriptionSnapshot()
    snapshot.fold(log.changes(0), log.end)
    return list(snapshot.table(log.ids).to_pylist())


def test_what_is_live_stays(log: Log) -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    owned = subscribe(["kim"], ["price < 2"]).append_column("owner", pa.array(["x"]))
    log.change(owned)
    for n in range(6):
        log.publish(prices(n))
        log.change(subscribe([f"id {n}"], [f"price < {n}"]))
    log.change(renew(["id 1"], until))
    log.change(cancel(["id 2"]))
    wider = Schema.from_dict(SCHEMA).create_attribute("size", "integer")
    log.append(schema=wider)
    for n in range(6):
        log.publish(prices(n))
    rows, live, end = published(log), _live(log), log.end
    before = len(files(log))
    begin = log.trim(18)
    assert 14 <= begin <= 18
    assert len(files(log)) < before
    for each in (log, Log.open(log.folder)):
        assert each.begin == begin
        assert each.end == end
        assert _live(each) == live
        assert published(each, begin) == published(each) == [r for r in rows if r[0] >= begin]
        assert each.schema_at(end) == each.schema_at(begin) == wider
        assert each.changes(0, details=True)["owner"].to_pylist()[0] == "x"
        with pytest.raises(StoreError, match=f"first sequence number that it keeps is {begin}"):
            each.events(1)
        with pytest.raises(StoreError, match="was trimmed"):
            each.changes(3)
    assert verify(log).findings == []
    assert log.publish(prices(1)) == range(end, end + 1)
    assert log.trim(18) == begin
    log.compact(log.end)
    assert _live(log) == live


def test_nothing_to_trim(log: Log) -> None:
    assert log.trim(5) == 0
    log.publish(prices(1, 2))
    assert log.trim(2) == 0
    assert published(log) == [(0, 1), (1, 2)]


def test_dead_before_the_old_ones_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = fresh(tmp_path)
    for n in range(12):
        log.publish(prices(n))
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", lambda *given, **options: None)
        assert log.trim(9) == 8
    assert len(files(log)) == 3
    assert published(log) == [(n, n) for n in range(8, 12)]
    assert verify(log).findings == []
    assert log.trim(9) == 8
    assert len(files(log)) == 1


def test_a_first_segment_that_was_deleted_is_damage(tmp_path: Path) -> None:
    log = fresh(tmp_path)
    for n in range(12):
        log.publish(prices(n))
    (log.folder / "segments" / files(log)[0]).unlink()
    with pytest.raises(StoreError, match="is damaged"):
        published(Log.open(log.folder))
    (lost,) = verify(log).lost
    assert (lost.first, lost.end) == (0, 4)
